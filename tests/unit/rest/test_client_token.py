"""What a 401 leads to: the token is read again and tried once more, and then a person has to act."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx2
import pytest
from pydantic import SecretStr

from bridge.errors import ApiError, AuthError, SettingsError
from bridge.rest.client import Client
from tests.unit.snapshots.provider import AT, SPORTS, Provider, Reply, api, minted, now
from tests.virtual.loop import run

REFUSED = Reply(401, '{"detail": "the token is not valid"}')


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("old")
    return path


def put(file: Path, text: str | None) -> None:
    """What somebody else does to the file meanwhile; None removes it."""
    if text is None:
        file.unlink()
    else:
        file.write_text(text)


def test_a_renewed_token_is_used_at_once(file: Path) -> None:
    """From the next request on."""
    provider = Provider()

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            await client.ask(SPORTS)
            put(file, "new\n")
            await client.ask(SPORTS)

    run(story())
    assert provider.tokens == ["old", "new"]


def test_a_token_that_was_renewed_meanwhile_is_tried(file: Path) -> None:
    """The old one was refused while the new one was being written."""
    provider = Provider(Reply(401, after=1.0))

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            asking = asyncio.create_task(client.ask(SPORTS))
            await asyncio.sleep(0.5)
            put(file, "new")
            assert (await asking).content == []

    run(story())
    assert provider.tokens == ["old", "new"]


def test_a_token_that_was_renewed_in_a_pause_is_used_after_it(file: Path) -> None:
    """It is read when the request is sent, not when its wait begins."""
    provider = Provider(Reply(429, headers={"Retry-After": "600"}))

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            asking = asyncio.create_task(client.ask(SPORTS))
            await asyncio.sleep(300)
            put(file, "new")
            assert (await asking).content == []

    run(story())
    assert provider.tokens == ["old", "new"]


def test_the_same_token_is_tried_once_more() -> None:
    """A provider may err; it is not asked a third time."""
    provider = Provider(REFUSED)

    async def story() -> None:
        async with provider.client() as client:
            assert (await client.ask(SPORTS)).content == []

    run(story())
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (AT - 60, "expired at 2026-09-21T14:12:20Z."),
        (AT + 60, "says that it is valid until 2026-09-21T14:14:20Z."),
        (None, "does not say how long it is valid."),
    ],
)
def test_a_token_that_is_refused_twice_ends_it(end: float | None, said: str, file: Path) -> None:
    """With the name of the setting and what the token says of itself, but not the token."""
    token = minted(end)
    file.write_text(token)
    provider = Provider(otherwise=Reply(401, f"{token} is not valid"))

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            with pytest.raises(AuthError) as caught:
                await client.ask(SPORTS)
        assert caught.value.exit_code == 3
        assert str(caught.value) == (
            "the provider refuses the token (GET /api/translations/en/sports: HTTP 401: *** is not valid). "
            f"Give a valid one by BRIDGE_API__TOKEN_FILE; this one {said}"
        )

    run(story())
    assert len(provider.requests) == 2


def test_many_that_are_refused_make_one_more_try() -> None:
    """Not one each; and who asks later with that token is told without a request."""
    provider = Provider(otherwise=Reply(401, after=1.0))

    async def story() -> None:
        async with provider.client(api(concurrency=4)) as client:
            results = await asyncio.gather(*(client.ask(SPORTS) for _ in range(10)), return_exceptions=True)
            assert [type(result) for result in results] == [AuthError] * 10
            with pytest.raises(AuthError, match="not sent, because it was refused before"):
                await client.ask(SPORTS)
        assert client.requests == 5

    run(story())


def test_a_new_token_makes_a_refused_client_good_again(file: Path) -> None:
    """What was refused was the token."""
    provider = Provider(REFUSED, REFUSED)

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            with pytest.raises(AuthError):
                await client.ask(SPORTS)
            put(file, "new")
            assert (await client.ask(SPORTS)).content == []

    run(story())
    assert provider.tokens == ["old", "old", "new"]


def test_trouble_during_the_second_try_is_only_trouble() -> None:
    """It says nothing of the token."""
    provider = Provider(REFUSED, Reply(503))

    async def story() -> None:
        async with provider.client() as client:
            assert (await client.ask(SPORTS)).content == []

    run(story())
    assert len(provider.requests) == 3


def test_while_the_file_is_gone_the_last_token_is_used(file: Path) -> None:
    """Where it is refused then, that is not for want of another: the next run may have it."""
    provider = Provider(Reply(), REFUSED, REFUSED)

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            await client.ask(SPORTS)
            put(file, None)
            with pytest.raises(ApiError, match=r"HTTP 401.* and its file cannot be read: No such file"):
                await client.ask(SPORTS)
            put(file, "new")
            assert (await client.ask(SPORTS)).content == []

    run(story())
    assert provider.tokens == ["old", "old", "old", "new"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"base_url": None}, "api.base_url is not set. Set BRIDGE_API__BASE_URL"),
        ({"token": None}, "api.token is not set. Set BRIDGE_API__TOKEN_FILE"),
        ({"token": SecretStr("a\nb")}, "BRIDGE_API__TOKEN holds a text that cannot be a bearer token"),
    ],
)
async def test_without_address_or_token_there_is_no_client(changes: dict[str, object], reason: str) -> None:
    """Which is said before anything is asked."""
    with pytest.raises(SettingsError, match=re.escape(reason)):
        Client(api(**changes), clock=now, network=httpx2.MockTransport(lambda _: httpx2.Response(200)))


def test_a_token_that_is_half_written_is_not_the_end(file: Path) -> None:
    """The last good one is tried in its place, and the rest of the new one soon."""
    provider = Provider(Reply(), REFUSED)

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            await client.ask(SPORTS)
            put(file, "ne")
            assert (await client.ask(SPORTS)).content == []
            assert (await client.ask(SPORTS)).content == []
            put(file, "new")
            assert (await client.ask(SPORTS)).content == []

    run(story())
    assert provider.tokens == ["old", "ne", "old", "old", "new"]


def test_the_rest_of_a_token_is_waited_for(file: Path) -> None:
    """Where the last good one is good no more."""
    provider = Provider(Reply(), REFUSED, REFUSED)

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            await client.ask(SPORTS)
            put(file, "ne")
            asking = asyncio.create_task(client.ask(SPORTS))
            await asyncio.sleep(0.9)
            put(file, "new")
            assert (await asking).content == []

    run(story())
    assert provider.tokens == ["old", "ne", "old", "new"]


def test_a_file_that_comes_back_is_read(file: Path) -> None:
    """It was away when the old token was refused, and for a while after."""
    provider = Provider(Reply(), REFUSED)

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            await client.ask(SPORTS)
            put(file, None)
            asking = asyncio.create_task(client.ask(SPORTS))
            await asyncio.sleep(2)
            put(file, "new")
            assert (await asking).content == []

    run(story())
    assert provider.tokens == ["old", "old", "new"]


def test_a_token_that_stays_half_is_refused_in_the_end(file: Path) -> None:
    """After some seconds: there is nobody who writes the rest."""
    provider = Provider(Reply(), otherwise=REFUSED)

    async def story() -> float:
        async with provider.client(api(token_file=file)) as client:
            await client.ask(SPORTS)
            put(file, "ne")
            with pytest.raises(AuthError):
                await client.ask(SPORTS)
            ended = now().monotonic
            with pytest.raises(AuthError, match="not sent, because it was refused before"):
                await client.ask(SPORTS)
        return ended

    assert 3 <= run(story()) < 5
    assert provider.tokens == ["old", "ne", "old", "ne"]


def test_a_good_token_outlives_the_run_that_it_was_good_in(file: Path) -> None:
    """The next run has a client of its own."""
    provider = Provider(Reply(), REFUSED)

    async def story() -> None:
        for text in ("old", "ne"):
            put(file, text)
            async with provider.client(api(token_file=file)) as client:
                assert (await client.ask(SPORTS)).content == []

    run(story())
    assert provider.tokens == ["old", "ne", "old"]


@pytest.mark.parametrize("text", ["two words", "nul\x00", "", None])
def test_what_can_be_no_token_is_not_sent(text: str | None, file: Path) -> None:
    """The last one is, in this run and the next."""
    provider = Provider()

    async def story() -> None:
        async with provider.client(api(token_file=file)) as client:
            put(file, text)
            assert (await client.ask(SPORTS)).content == []
        async with provider.client(api(token_file=file)) as client:
            assert (await client.ask(SPORTS)).content == []

    run(story())
    assert provider.tokens == ["old", "old"]
