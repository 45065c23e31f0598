"""What an answer leads to, status by status, and how much is under way at once."""

from __future__ import annotations

import asyncio
import gzip
from itertools import pairwise

import httpx2
import pytest

from bridge.errors import ApiError, Forbidden, Unanswered
from bridge.rest.answers import Answered
from bridge.rest.client import FORBIDDEN_PAUSE_SECONDS
from bridge.rest.endpoints import Questions
from tests.unit.snapshots.provider import EVENT, SPORTS, Provider, Reply, api
from tests.virtual.loop import run

SECRET = "secret-token"


def failure(provider: Provider, attempts: int = 1) -> str:
    """What a question about the sports ends with."""

    async def story() -> str:
        async with provider.client(api(attempts=attempts)) as client:
            with pytest.raises(ApiError) as caught:
                await client.ask(SPORTS)
        assert caught.value.exit_code == 10
        assert SECRET not in str(caught.value)
        return str(caught.value)

    return run(story())


def test_an_answer_is_read() -> None:
    """It is asked for as JSON, with the token, and comes back in its shape."""
    item = {"id": 1, "language": "en", "translation": "Football"}
    provider = Provider(Reply(body='[{"id":1,"language":"en","translation":"Football"}]'))

    async def story() -> None:
        async with provider.client() as client:
            assert await client.ask(SPORTS) == Answered([item])
            assert (client.requests, client.refusals, client.rate) == (1, 0, 10)

    run(story())
    (request,) = provider.requests
    assert str(request.url) == "https://provider.example/api/translations/en/sports"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["Authorization"] == f"Bearer {SECRET}"


def test_an_unknown_event_has_no_content() -> None:
    """An event that the provider does not know any more."""

    async def story() -> None:
        async with Provider(Reply(404)).client() as client:
            assert await client.ask(EVENT) == Answered(None)

    run(story())


@pytest.mark.parametrize("status", [201, 204, 304, 400, 404, 405, 409, 410, 418, 499])
def test_any_other_status_ends_it_at_once(status: int) -> None:
    """By an error that names request and status and how the body begins."""
    body = b"" if status in (204, 304) else b'{"detail": "no such thing"}'
    provider = Provider(otherwise=Reply(status, body))
    text = failure(provider, attempts=6)
    said = ': {"detail": "no such thing"}' if body else ""
    hint = ". Is BRIDGE_API__BASE_URL (https://provider.example) right?" if status == 404 else ""
    assert text == f"GET /api/translations/en/sports answered HTTP {status}{said}{hint}"
    assert len(provider.requests) == 1


def test_a_bad_request_names_what_was_asked() -> None:
    """All the ids, which are in the path and query."""
    question = Questions(api()).market_type_templates(3, [14, 15])

    async def story() -> None:
        async with Provider(Reply(400)).client() as client:
            with pytest.raises(
                ApiError, match=r"sportId=3&marketTypeIds=14&marketTypeIds=15 answered HTTP 400"
            ):
                await client.ask(question)

    run(story())


def test_a_missing_right_names_the_endpoint() -> None:
    """After one more try, a little later."""
    provider = Provider(otherwise=Reply(403, "no"))

    async def story() -> str:
        async with provider.client() as client:
            with pytest.raises(Forbidden) as caught:
                await client.ask(SPORTS)
        assert caught.value.exit_code == 10
        return str(caught.value)

    assert run(story()) == (
        "the token gives no right to /api/translations/{lang}/sports: "
        "GET /api/translations/en/sports answered HTTP 403: no"
    )
    assert provider.sent_at == [0, FORBIDDEN_PAUSE_SECONDS]


def test_a_lone_403_is_no_missing_right() -> None:
    """The next try is answered, with trouble in between or without."""

    async def story(provider: Provider) -> None:
        async with provider.client() as client:
            assert (await client.ask(SPORTS)).content == []

    run(story(Provider(Reply(403))))
    run(story(Provider(Reply(403), Reply(503))))


def test_a_right_that_is_missing_is_missing_until_an_answer() -> None:
    """Of that endpoint: each 403 behind the second ends its question at once."""
    no, leagues = Reply(403), Questions(api()).listed("league", "en")
    provider = Provider(no, no, no, no, no, Reply(), no, no, no)

    async def story() -> None:
        async with provider.client() as client:
            for question, sent in ((SPORTS, 2), (SPORTS, 3), (leagues, 5)):
                with pytest.raises(Forbidden):
                    await client.ask(question)
                assert len(provider.requests) == sent
            assert (await client.ask(SPORTS)).content == []
            for sent in (8, 9):
                with pytest.raises(Forbidden):
                    await client.ask(SPORTS)
                assert len(provider.requests) == sent

    run(story())


def test_many_that_are_told_so_at_once_are_each_asked_once_more_at_most() -> None:
    """Whoever still waits when another has been told twice is not asked again."""
    provider = Provider(otherwise=Reply(403))

    async def story() -> None:
        async with provider.client(api(concurrency=4)) as client:
            results = await asyncio.gather(*(client.ask(SPORTS) for _ in range(8)), return_exceptions=True)
        assert [type(result) for result in results] == [Forbidden] * 8

    run(story())
    assert 9 <= len(provider.requests) <= 12


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("https://user:pass@elsewhere.example:444/login?state=1", "elsewhere.example"),
        ("//elsewhere.example/x", "elsewhere.example"),
        ("/login", "provider.example"),
        ("https://[", "an invalid address"),
        ("mailto:x", "nowhere"),
    ],
)
def test_a_redirect_is_not_followed(location: str, host: str) -> None:
    """The token does not go elsewhere; the error tells the host and nothing else of the address."""
    provider = Provider(Reply(307, headers={"Location": location}))
    text = failure(provider)
    assert text.startswith(f"GET /api/translations/en/sports answered HTTP 307, which points to {host}. ")
    assert "BRIDGE_API__BASE_URL" in text
    assert "pass" not in text
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<html>", "with invalid JSON"),
        ("[" * 100_000, "with invalid JSON: nested too deep"),
        ('{"id": 1}', "with an unexpected shape: the whole: Input should be a valid list"),
    ],
)
def test_a_body_of_another_shape_ends_it_at_once(body: str, reason: str) -> None:
    """It came whole, so that asking again would bring the same."""
    provider = Provider(otherwise=Reply(body=body))
    assert f"GET /api/translations/en/sports answered {reason}" in failure(provider, attempts=6)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(500, "oops"), "HTTP 500: oops"),
        (Reply(502, "<html>\n  <b>bad gateway</b>"), "HTTP 502: <html> <b>bad gateway</b>"),
        (Reply(503, b"\xff\xfe"), "HTTP 503"),
        (Reply(429), "HTTP 429: []"),
        (Reply(error=httpx2.ConnectError), "in the script"),
        (Reply(error=httpx2.ReadError), "in the script"),
        (Reply(error=httpx2.RemoteProtocolError), "in the script"),
        (Reply(headers={"Content-Encoding": "gzip"}, body=b"no gzip"), "Error -3"),
        (Reply(after=31), "no answer in 30 s"),
        (Reply(body=""), f"{SPORTS} answered with incomplete JSON: it ends after 0 "),
        (Reply(body='[{"id": 1'), f"{SPORTS} answered with incomplete JSON: it ends after 9 "),
        (
            Reply(headers={"Content-Encoding": "gzip"}, body=gzip.compress(b"[]")[:11]),
            f"{SPORTS} answered with incomplete",
        ),
    ],
)
def test_trouble_is_tried_again(reply: Reply, reason: str) -> None:
    """As often as the settings say; then the error tells the last reason. A good answer ends it."""
    provider = Provider(otherwise=reply)
    text = failure(provider, attempts=3)
    assert text.startswith(f"GET /api/translations/en/sports failed, tried 3 times; at last: {reason}")
    assert len(provider.requests) == 3

    async def story() -> None:
        provider = Provider(reply, reply)
        async with provider.client(api(attempts=3)) as client:
            assert (await client.ask(SPORTS)).content == []
        assert client.requests == len(provider.requests) == 3

    run(story())


def test_the_waits_between_tries_grow() -> None:
    """1 to 2 seconds at first, twice as long each time, a minute at most."""
    provider = Provider(otherwise=Reply(500))
    assert "tried 9 times" in failure(provider, attempts=9)
    waits = [after - before for before, after in pairwise(provider.sent_at)]
    for wait, least in zip(waits, (1, 2, 4, 8, 16, 30, 30, 30), strict=True):
        assert least <= wait <= 2 * least


def test_one_try_is_told_as_such() -> None:
    """With a single attempt nothing is waited for."""
    assert "failed, tried once; at last: HTTP 500: []" in failure(Provider(Reply(500)), attempts=1)


def test_the_body_of_an_error_is_told_in_short() -> None:
    """200 characters of a text, without the token that a provider may repeat in it."""
    text = failure(Provider(Reply(400, f"the token {SECRET} " + "ж" * 1000)))
    said = text.partition("HTTP 400: ")[2]
    assert len(said) == 200
    assert said.startswith("the token *** жжж")


@pytest.mark.parametrize("body", [b"\x89PNG\r\n", b"\x1b[2Jgone", b"\x00"])
def test_a_body_that_is_no_text_is_left_out(body: bytes) -> None:
    """Nor does it get to a terminal what steers one."""
    assert failure(Provider(Reply(400, body))).endswith("answered HTTP 400")


@pytest.mark.parametrize(("attempts", "sent"), [(1, 1), (2, 2), (3, 3), (9, 3), (None, 3)])
def test_a_question_may_be_worth_fewer_tries(attempts: int | None, sent: int) -> None:
    """Never more than the settings say."""
    provider, times = Provider(otherwise=Reply(500)), "once" if sent == 1 else f"{sent} times"

    async def story() -> None:
        async with provider.client(api(attempts=3)) as client:
            with pytest.raises(ApiError, match=f"tried {times}; at last: HTTP 500"):
                await client.ask(SPORTS, attempts)

    run(story())
    assert len(provider.requests) == sent


def test_what_is_asked_in_a_body_is_sent_in_one() -> None:
    """As JSON, with its type; all other questions have none."""
    provider = Provider()
    settings = api(template_ids="body")

    async def story() -> None:
        async with provider.client(settings) as client:
            await client.ask(Questions(settings).selection_templates([1, 2]))
            await client.ask(SPORTS)

    run(story())
    (first, second) = provider.requests
    assert (first.method, first.content, first.headers["Content-Type"]) == (
        "GET",
        b'{"selectionIds": [1, 2]}',
        "application/json",
    )
    assert (second.content, "Content-Type" in second.headers) == (b"", False)


def test_so_many_are_under_way_at_once_and_no_more() -> None:
    """However many ask, and they are sent in order."""
    provider = Provider(otherwise=Reply(body='{"id":1,"translations":{}}', after=1.0))
    questions = Questions(api())

    async def story() -> None:
        async with provider.client(api(concurrency=20, requests_per_second=100.0)) as client:
            await asyncio.gather(*(client.ask(questions.single("sport", number)) for number in range(100)))

    run(story())
    assert provider.most_under_way == 20
    assert [int(request.url.path.rpartition("/")[2]) for request in provider.requests] == list(range(100))


def test_a_question_that_waits_for_its_next_try_keeps_its_place() -> None:
    """So that a provider in trouble gets no first tries of all the others meanwhile."""
    provider = Provider(otherwise=Reply(500))

    async def story() -> None:
        async with provider.client(api(concurrency=2, attempts=2)) as client:
            results = await asyncio.gather(*(client.ask(SPORTS) for _ in range(4)), return_exceptions=True)
        assert [type(result) for result in results] == [Unanswered] * 4

    run(story())
    _, second, third, *_ = provider.sent_at
    assert third - second >= 0.9
    assert len(provider.sent_at) == 8


@pytest.mark.parametrize("seconds", [0.05, 0.5, 1.5, 3.05])
def test_a_cancelled_question_leaves_nothing_behind(seconds: float) -> None:
    """While it waits for a place, its turn, an answer or its next try; others go on as if it had not been."""
    provider = Provider(Reply(500, after=1.0), otherwise=Reply(after=1.0))

    async def story() -> None:
        async with provider.client(api(concurrency=2, requests_per_second=1.0)) as client:
            asked = [asyncio.create_task(client.ask(SPORTS)) for _ in range(6)]
            await asyncio.sleep(seconds)
            for task in asked:
                task.cancel()
            await asyncio.wait(asked)
            assert provider.under_way == 0
            async with asyncio.timeout(5):
                answers = await asyncio.gather(client.ask(SPORTS), client.ask(SPORTS))
            assert [answer.content for answer in answers] == [[], []]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story())
