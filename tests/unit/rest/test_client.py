"""What an answer leads to, status by status, and how many requests are in flight."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx2
import pytest

from bridge.errors import ApiError, ClockError, Forbidden, Unanswered
from bridge.masking import MASK
from bridge.rest.answers import Answered
from bridge.rest.client import FORBIDDEN_PAUSE_SECONDS
from bridge.rest.endpoints import Questions
from tests.unit.snapshots.provider import AT, SPORTS, Provider, Reply, api
from tests.virtual.loop import run

SECRET = "secret-token"
EMPTY: Answered[list[object]] = Answered([])


def failure(provider: Provider, attempts: int = 1) -> str:
    """The error that a request for the sports ends with."""
    [error] = provider.ask(SPORTS, attempts=attempts)
    assert isinstance(error, ApiError)
    assert error.exit_code == 10
    assert SECRET not in str(error)
    return str(error)


def test_an_answer_is_read() -> None:
    provider = Provider(Reply(body='[{"id":1,"language":"en","translation":"Football"}]'))
    assert provider.ask(SPORTS) == [Answered([{"id": 1, "language": "en", "translation": "Football"}])]
    (request,) = provider.requests
    assert str(request.url) == "https://provider.example/api/translations/en/sports"
    assert request.headers["Accept"] == "application/json"
    assert request.headers["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("status", [201, 204, 304, 400, 404, 405, 409, 410, 418, 499])
def test_any_other_status_is_an_error_at_once(status: int) -> None:
    body = b"" if status in (204, 304) else b'{"detail": "no such thing"}'
    provider = Provider(otherwise=Reply(status, body, headers={"Retry-After": "40"}))
    text = failure(provider, attempts=6)
    excerpt = ': {"detail": "no such thing"}' if body else ""
    hint = ". Is BRIDGE_API__BASE_URL (https://provider.example) right?" if status == 404 else ""
    assert text == f"GET /api/translations/en/sports answered HTTP {status}{excerpt}{hint}"
    assert len(provider.requests) == 1


def test_a_missing_right_names_the_endpoint() -> None:
    provider = Provider(otherwise=Reply(403, "no"))
    assert failure(provider) == (
        "the token gives no right to /api/translations/{lang}/sports: "
        "GET /api/translations/en/sports answered HTTP 403: no"
    )
    assert provider.sent_at == [0, FORBIDDEN_PAUSE_SECONDS]


@pytest.mark.parametrize("script", [[Reply(403)], [Reply(403), Reply(503)]])
def test_a_single_403_is_no_missing_right(script: list[Reply]) -> None:
    assert Provider(*script).ask(SPORTS) == [EMPTY]


def test_a_missing_right_stays_missing_until_an_answer() -> None:
    no, leagues = Reply(403), Questions(api()).listed("league", "en")
    provider = Provider(no, no, no, no, no, Reply(), no, no, no)
    results = provider.ask(SPORTS, SPORTS, leagues, SPORTS, SPORTS, SPORTS)
    refused = [type(result) is Forbidden for result in results]
    assert refused == [True, True, True, False, True, True]
    assert provider.gaps == pytest.approx([2, 0.1, 0.1, 2, 0.1, 0.1, 2, 0.1])


def test_requests_that_get_403_at_once_are_each_repeated_at_most_once() -> None:
    provider = Provider(otherwise=Reply(403))
    results = provider.ask(*[SPORTS] * 8, at_once=True, concurrency=4)
    assert [type(result) for result in results] == [Forbidden] * 8
    assert len(provider.requests) == 9


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
    provider = Provider(Reply(307, headers={"Location": location}))
    text = failure(provider)
    assert text.startswith(f"GET /api/translations/en/sports answered HTTP 307, which points to {host}. ")
    assert "BRIDGE_API__BASE_URL" in text
    assert "pass" not in text
    assert len(provider.requests) == 1


@pytest.mark.parametrize("body", ["gone", '{"id": 1}'])
def test_an_invalid_body_is_an_error_at_once(body: str) -> None:
    provider = Provider(otherwise=Reply(body=body))
    assert f"{SPORTS} answered with " in failure(provider, attempts=6)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(500, "oops"), "HTTP 500: oops"),
        (Reply(502, "<html>\n  <b>bad gateway</b>"), "HTTP 502: <html> <b>bad gateway</b>"),
        (Reply(503, b"\xff\xfe"), "HTTP 503"),
        (Reply(429), "HTTP 429: []"),
        (Reply(408), "HTTP 408: []"),
        (Reply(421), "HTTP 421: []"),
        (Reply(425), "HTTP 425: []"),
        (Reply(body="\n<html>"), f"{SPORTS} answered with a page of HTML"),
        (Reply(body="<p>" * 100_000), f"{SPORTS} answered with a page of HTML"),
        (Reply(error=httpx2.ReadError), "in the script"),
        (Reply(headers={"Content-Encoding": "gzip"}, body=b"no gzip"), "Error -3"),
        (Reply(after=31), "no answer in 30s"),
        (Reply(body='[{"id": 1'), f"{SPORTS} answered with incomplete JSON: it ends after 9 "),
    ],
)
def test_a_failure_is_retried(reply: Reply, reason: str) -> None:
    provider = Provider(otherwise=reply)
    text = failure(provider, attempts=3)
    assert text.startswith(f"GET /api/translations/en/sports failed, tried 3 times; at last: {reason}")
    assert len(provider.requests) == 3
    assert Provider(reply, reply).ask(SPORTS, attempts=3) == [EMPTY]


def test_a_refusal_that_asks_to_wait_is_a_pause() -> None:
    pause = Reply(403, headers={"Retry-After": "40"})
    provider = Provider(pause, pause)
    assert provider.ask(SPORTS, attempts=3) == [EMPTY]
    assert provider.gaps == [40, 40]
    [error] = Provider(otherwise=pause).ask(SPORTS, attempts=2)
    assert type(error) is Unanswered


def test_the_waits_between_attempts_grow() -> None:
    provider = Provider(otherwise=Reply(500))
    assert "tried 9 times" in failure(provider, attempts=9)
    for wait, least in zip(provider.gaps, (1, 2, 4, 8, 16, 30, 30, 30), strict=True):
        assert least <= wait <= 2 * least


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        (f"the token {SECRET} " + "ж" * 1000, f": the token {MASK} " + "ж" * 179),
        (b"\x89PNG\r\n", ""),
        (b"\x1b[2Jgone", ""),
        (b"\x00", ""),
    ],
)
def test_an_error_shows_the_beginning_of_a_text(body: str | bytes, excerpt: str) -> None:
    assert failure(Provider(Reply(400, body))).endswith(f"answered HTTP 400{excerpt}")


@pytest.mark.parametrize(("attempts", "sent"), [(1, 1), (2, 2), (3, 3), (9, 3), (None, 3)])
def test_a_request_may_have_fewer_attempts(attempts: int | None, sent: int) -> None:
    provider, times = Provider(otherwise=Reply(500)), "once" if sent == 1 else f"{sent} times"

    async def story() -> None:
        async with provider.client(api(attempts=3)) as client:
            with pytest.raises(ApiError, match=f"tried {times}; at last: HTTP 500"):
                await client.ask(SPORTS, attempts)

    run(story())
    assert len(provider.requests) == sent


def test_a_body_is_sent_as_json() -> None:
    provider = Provider()
    templates = Questions(api(template_ids="body")).selection_templates([1, 2])
    provider.ask(templates, SPORTS)
    assert [(x.method, x.content, x.headers.get("Content-Type")) for x in provider.requests] == [
        ("GET", b'{"selectionIds": [1, 2]}', "application/json"),
        ("GET", b"", None),
    ]


def test_requests_in_flight_are_limited() -> None:
    provider = Provider(otherwise=Reply(body='{"id":1,"translations":{}}', after=1.0))
    requests = (Questions(api()).single("sport", number) for number in range(100))
    provider.ask(*requests, at_once=True, concurrency=20, requests_per_second=100.0)
    assert provider.most_under_way == 20
    assert [int(request.url.path.rpartition("/")[2]) for request in provider.requests] == list(range(100))


def test_a_request_keeps_its_place_between_attempts() -> None:
    provider = Provider(otherwise=Reply(500))
    results = provider.ask(*[SPORTS] * 4, at_once=True, concurrency=2, attempts=2)
    assert [type(result) for result in results] == [Unanswered] * 4
    assert provider.gaps[1] >= 0.9
    assert len(provider.sent_at) == 8


@pytest.mark.parametrize("seconds", [0.05, 0.5, 1.5, 3.05])
def test_a_cancelled_request_leaves_nothing_behind(seconds: float) -> None:
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
                for answer in await asyncio.gather(client.ask(SPORTS), client.ask(SPORTS)):
                    assert answer.content == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story())


# The `Date` of the answers: a clock that is certainly wrong ends a run.


def dated(*offsets: int, **headers: str) -> Reply:
    """An answer by a clock that is these seconds ahead of ours."""
    moments = (format_datetime(datetime.fromtimestamp(AT + offset, UTC), usegmt=True) for offset in offsets)
    return Reply(headers=[*(("Date", moment) for moment in moments), *headers.items()])


@pytest.mark.parametrize(
    ("reply", "limit", "skew"),
    [
        (dated(3600), 300, "1h ahead of ours"),
        (dated(-3600), 300, "59m 59s behind ours"),
        (replace(dated(3600), status=401), 300, "ahead of ours"),
        (replace(dated(3600), status=503), 300, "ahead of ours"),
        (replace(dated(3600), body="<html>"), 300, "ahead of ours"),
        (dated(-3600, Age="60"), 300, "58m 59s behind ours"),
        # What may be right changes nothing.
        (dated(), 300, ""),
        (dated(300), 300, ""),
        (dated(-301), 300, ""),
        (dated(3600, 0), 300, ""),
        (replace(dated(3600), after=3400.0), 300, ""),
        (dated(-3600, Age="3600"), 300, ""),
        (dated(-3600, Age="9" * 5000), 300, ""),
        (Reply(headers={"Date": "tomorrow"}), 300, ""),
        (Reply(headers={"Date": "Mon, 99 Sep 99999 99:99:99 GMT"}), 300, ""),
        (dated(3600), 3601, ""),
        (dated(-3600), 3601, ""),
    ],
)
def test_a_clock_that_is_certainly_wrong_is_an_error(reply: Reply, limit: int, skew: str) -> None:
    provider = Provider(reply)
    [answer] = provider.ask(SPORTS, timeout_seconds=3600, max_clock_skew_seconds=limit)
    assert len(provider.requests) == 1
    if not skew:
        assert answer == EMPTY
        return
    assert isinstance(answer, ClockError)
    assert answer.exit_code == 9
    assert f"BRIDGE_API__MAX_CLOCK_SKEW_SECONDS) = {limit}" in str(answer)
    assert "the provider's clock is " in str(answer)
    assert skew in str(answer)
