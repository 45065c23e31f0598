"""The token: a 401 lets it be read again and sent once more, and then a person has to act.

Which one of a file counts while it is written or missing is in tests/unit/config/test_secrets.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jws
from joserfc.jwk import OctKey
from pydantic import SecretStr
from structlog.testing import capture_logs

from bridge.errors import ApiError, AuthError, SettingsError
from bridge.masking import MASK
from bridge.rest.client import Client
from bridge.rest.token import Token, expiry, validity_of
from tests.unit.snapshots.provider import AT, SPORTS, Provider, Reply, api, minted, now
from tests.virtual.loop import run

REFUSED = Reply(401, '{"detail": "the token is not valid"}')
GONE = r"HTTP 401.* and its token cannot be read: /.*: No such file"
KNOWN = "not sent, because it was refused before"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("old")
    return path


def put(file: Path, text: str | None) -> None:
    """Write the file, as whoever renews the token does; None removes it."""
    if text is None:
        file.unlink()
    else:
        file.write_text(text)


GOOD = Reply()
SENT: dict[str, tuple[list[Reply], dict[float, str | None], list[dict[float, str]], str]] = {
    "a renewed token is used at once": ([], {1: "new\n"}, [{0: "", 2: ""}], "old new"),
    "renewed while the old is refused": ([Reply(401, after=1.0)], {0.5: "new"}, [{0: ""}], "old new"),
    "renewed in a pause": ([Reply(429, headers={"Retry-After": "600"})], {300: "new"}, [{0: ""}], "old new"),
    "the same token is sent once more": ([REFUSED], {}, [{0: ""}], "old old"),
    "trouble says nothing of the token": ([REFUSED, Reply(503)], {}, [{0: ""}], "old old old"),
    "a new token ends the refusal": (
        [REFUSED, REFUSED],
        {9: "new"},
        [{0: "HTTP 401", 10: ""}],
        "old old new",
    ),
    "without its file a token is sent, but not refused for good": (
        [GOOD, REFUSED, REFUSED],
        {1: None, 9: "new"},
        [{0: "", 2: GONE, 10: ""}],
        "old old old new",
    ),
    "the last accepted token replaces half of a new one": (
        [GOOD, REFUSED],
        {1: "ne", 9: "new"},
        [{0: "", 2: "", 3: "", 10: ""}],
        "old ne old old new",
    ),
    "the rest of a token is waited for": (
        [GOOD, REFUSED, REFUSED],
        {1: "ne", 2.9: "new"},
        [{0: "", 2: ""}],
        "old ne old new",
    ),
    "a file that comes back is read": ([GOOD, REFUSED], {1: None, 4: "new"}, [{0: "", 2: ""}], "old old new"),
    "a token that stays half is refused after some seconds": (
        [GOOD, REFUSED, REFUSED, REFUSED],
        {1: "ne", 7: "new"},
        [{0: "", 2: "HTTP 401", 6: KNOWN, 8: ""}],
        "old ne old ne new",
    ),
    "an accepted token is known to the next run": (
        [GOOD, REFUSED],
        {1: "ne"},
        [{0: ""}, {2: ""}],
        "old ne old",
    ),
}


@pytest.mark.parametrize(("script", "files", "runs", "tokens"), SENT.values(), ids=SENT)
def test_which_tokens_are_sent(
    script: list[Reply],
    files: dict[float, str | None],
    runs: list[dict[float, str]],
    tokens: str,
    file: Path,
) -> None:
    provider = Provider(*script)

    async def story() -> None:
        for at, text in files.items():
            asyncio.get_running_loop().call_at(at, put, file, text)
        for requests in runs:
            async with provider.client(api(token_file=file)) as client:
                for at, error in requests.items():
                    await asyncio.sleep(at - now().monotonic)
                    if error:
                        with pytest.raises((ApiError, AuthError), match=error):
                            await client.ask(SPORTS)
                    else:
                        assert (await client.ask(SPORTS)).content == []

    run(story())
    assert provider.tokens == tokens.split()


@pytest.mark.parametrize(
    ("end", "validity"),
    [
        (AT - 60, "expired at 2026-09-21T14:12:20Z."),
        (AT + 60, "says that it is valid until 2026-09-21T14:14:20Z."),
        (None, "does not say how long it is valid."),
    ],
)
def test_a_token_that_is_refused_twice_is_an_error(end: float | None, validity: str, file: Path) -> None:
    token = minted(end)
    file.write_text(token)
    provider = Provider(otherwise=Reply(401, f"{token} is not valid"))
    [error] = provider.ask(SPORTS, token_file=file)
    assert (type(error), error.exit_code) == (AuthError, 3)
    assert str(error) == (
        f"the provider refuses the token (GET /api/translations/en/sports: HTTP 401: {MASK} is not valid). "
        f"Give a valid one by BRIDGE_API__TOKEN_FILE; this one {validity}"
    )
    assert len(provider.requests) == 2


def test_requests_that_are_refused_at_once_repeat_one() -> None:
    provider = Provider(otherwise=Reply(401, after=1.0))
    results = provider.ask(*[SPORTS] * 11, at_once=True, concurrency=4)
    assert [type(result) for result in results] == [AuthError] * 11
    assert KNOWN in str(results[-1])
    assert len(provider.requests) == 5


@pytest.mark.parametrize(
    ("token", "holds"), [(None, "no token"), (SecretStr("a\nb"), "a text that cannot be a bearer token")]
)
async def test_without_a_usable_token_there_is_no_client(token: SecretStr | None, holds: str) -> None:
    with pytest.raises(SettingsError, match=f"^BRIDGE_API__TOKEN holds {holds}"):
        Client(api(token=token), clock=now, network=httpx2.MockTransport(lambda _: httpx2.Response(200)))


# Which texts are valid, and when the end of a token is logged.


def lines(token: Token, *moments: float) -> list[dict[str, Any]]:
    with capture_logs() as logged:
        for moment in moments:
            token.read(moment)
    return [dict(line) for line in logged]


@pytest.mark.parametrize("text", ["hush\nhush", "hush hush", "Bearer hush", "hüsh", "hush\x00", "hush\x7f"])
def test_a_text_that_no_header_can_hold_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    for settings, name in (
        (api(token=SecretStr(text)), "BRIDGE_API__TOKEN holds a text"),
        (api(token_file=file), "BRIDGE_API__TOKEN_FILE: cannot read .*: it holds a text"),
    ):
        with pytest.raises(SettingsError, match=name) as caught:
            Token(settings).read(AT)
        assert "sh" not in str(caught.value)


def test_a_token_that_ends_soon_is_logged_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = Token(api(token_file=file))
    file.write_text(minted(AT + 1000))
    assert lines(token, AT, AT + 99) == []
    warning = {"log_level": "warning", "event": "token expires soon", "setting": "BRIDGE_API__TOKEN_FILE"}
    assert lines(token, AT + 100, AT + 400, AT + 999) == [warning | {"left": "15m"}]
    file.write_text(minted(AT + 1090))
    assert lines(token, AT + 1000, AT + 1001) == [warning | {"left": "1m 30s"}]


def test_an_expired_token_is_logged() -> None:
    token = Token(api(token=SecretStr(minted(AT))))
    (line,) = lines(token, AT, AT + 1)
    assert line["event"] == "token has expired by this machine's clock"
    assert line["at"] == "2026-09-21T14:13:20Z"


def claims(content: bytes) -> str:
    return jws.serialize_compact({"alg": "HS256"}, content, OctKey.import_key("not-our-business"))


@pytest.mark.parametrize(
    "text",
    [
        "opaque",
        "a.b.c",
        "..",
        "a.b.c.d.e",
        claims(b"no JSON"),
        claims(b"[]"),
        claims(b"{}"),
        minted("tomorrow"),
        minted(None),
        minted(True),
    ],
)
def test_a_token_without_an_end_is_not_logged(text: str) -> None:
    assert expiry(text) is None
    assert lines(Token(api(token=SecretStr(text))), AT) == []
    assert validity_of(text, AT) == "does not say how long it is valid"
