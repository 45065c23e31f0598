"""When the client sends: evenly, and after a 429 later and slower."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bridge.errors import ProviderPause
from bridge.rest.pacing import SLOWEST_SHARE, TIMER_SECONDS, Pace
from tests.unit.snapshots.provider import DATE, SPORTS, Provider, Reply
from tests.virtual.loop import run

IN_A_MINUTE = {"Retry-After": "Mon, 21 Sep 2026 14:14:20 GMT", "Date": DATE}


def logged(provider: Provider, times: int, **changes: Any) -> list[dict[str, Any]]:
    """Ask this often at once. Returns the lines of the log."""
    with capture_logs() as lines:
        provider.ask(*[SPORTS] * times, at_once=True, **changes)
    return [dict(line) for line in lines]


def test_requests_are_sent_evenly_and_no_burst_follows_slow_answers() -> None:
    provider = Provider(otherwise=Reply(after=0.25))
    assert logged(provider, 50, requests_per_second=5.0, concurrency=10) == []
    assert provider.gaps == pytest.approx([0.2] * 49)
    provider = Provider(*[Reply(after=3.0)] * 3)
    logged(provider, 8, requests_per_second=5.0, concurrency=1)
    assert provider.gaps == pytest.approx([3.0] * 3 + [0.2] * 4)


@pytest.mark.parametrize("headers", [{"Retry-After": "60"}, IN_A_MINUTE])
@pytest.mark.parametrize("status", [429, 503])
def test_nothing_is_sent_before_retry_after_is_over(status: int, headers: dict[str, str]) -> None:
    provider = Provider(
        Reply(), Reply(), Reply(status, headers=headers, after=0.05), otherwise=Reply(after=0.5)
    )
    logged(provider, 20, requests_per_second=10.0, concurrency=4)
    before = [moment for moment in provider.sent_at if moment < 0.25]
    assert len(before) == 3
    assert min(moment for moment in provider.sent_at if moment > 0.25) == pytest.approx(60.25)
    assert len(provider.sent_at) == 21


def test_a_refusal_halves_the_rate_until_answers_raise_it() -> None:
    provider = Provider(*[Reply()] * 10, Reply(429))
    logged(provider, 200, requests_per_second=10.0, concurrency=4)
    slowed = provider.gaps[10:]
    assert slowed[0] == pytest.approx(0.2)
    assert all(after <= before + 1e-6 for before, after in pairwise(slowed))
    assert slowed[-1] == pytest.approx(0.1)
    assert sum(gap > 0.1001 for gap in slowed) == 1 + 50


def test_a_spell_of_failures_is_logged_once() -> None:
    limited = {
        "log_level": "warning",
        "event": "rate limited by the provider",
        "rate": 5.0,
        "pause": "3s",
    }
    retried = {
        "log_level": "warning",
        "event": "request failed, retrying",
        "endpoint": "/api/translations/{lang}/sports",
        "reason": "HTTP 429: []",
        "pause": "3s",
    }
    refused = Reply(429, headers={"Retry-After": "3"})
    assert logged(Provider(*[refused] * 10), 20, attempts=20) == [limited, retried]
    [line] = logged(Provider(*[Reply(502, "bad gateway")] * 20), 20, attempts=20)
    assert (line["event"], line["reason"]) == (retried["event"], "HTTP 502: bad gateway")

    provider = Provider(refused, Reply(), refused)

    async def story() -> None:
        async with provider.client() as client:
            await client.ask(SPORTS)
            await asyncio.sleep(61)
            await client.ask(SPORTS)

    with capture_logs() as lines:
        run(story())
    assert [line["event"] for line in lines] == [limited["event"], retried["event"]] * 2


REPLIES = st.builds(
    Reply,
    status=st.sampled_from([200, 200, 200, 404, 429, 429, 500, 503]),
    headers=st.sampled_from(
        [{}, {"Retry-After": "0"}, {"Retry-After": "7"}, {"Retry-After": "200"}, IN_A_MINUTE]
    ),
    after=st.sampled_from([0.0, 0.01, 0.3, 5.0, 40.0]),
    error=st.sampled_from([None, None, None, httpx2.ReadError, httpx2.RemoteProtocolError]),
)


@settings(deadline=None, max_examples=40)
@given(
    script=st.lists(REPLIES, max_size=30),
    rate=st.sampled_from([0.5, 5.0, 300.0]),
    concurrency=st.integers(1, 6),
)
def test_rate_and_pauses_are_kept(script: list[Reply], rate: float, concurrency: int) -> None:
    provider = Provider(*script)
    changes = {"requests_per_second": rate, "attempts": 100, "max_clock_skew_seconds": 86_400}
    provider.ask(*[SPORTS] * 12, at_once=True, concurrency=concurrency, **changes)
    assert all(gap >= 1 / rate - 1e-8 for gap in provider.gaps)
    answered = [
        (sent + reply.after, reply)
        for sent, reply in zip(provider.sent_at, script, strict=False)
        if reply.error is None and reply.after < 30 and reply.status in (429, 500, 503)
    ]
    for moment, reply in answered:
        header = dict(reply.headers).get("Retry-After", "0")
        held_until = moment + (60.0 if "GMT" in header else float(header))
        assert not [sent for sent in provider.sent_at if moment + 1e-8 < sent < held_until - 1e-8]


@pytest.mark.parametrize("after", ["43200", "9" * 400])
def test_a_pause_of_hours_ends_all_requests(after: str) -> None:
    refused = Reply(429, headers={"Retry-After": after})
    provider = Provider(Reply(), refused, otherwise=Reply(429))
    answers = provider.ask(*[SPORTS] * 8, at_once=True, requests_per_second=5.0, concurrency=4)
    [_, *errors] = sorted(answers, key=lambda answer: isinstance(answer, ProviderPause))
    for error in errors:
        assert isinstance(error, ProviderPause)
        assert (error.exit_code, error.seconds, "before" in str(error)) == (10, float(after), True)
    assert len(provider.sent_at) <= 3


def test_a_timer_that_fires_slightly_early_is_on_time() -> None:
    pace = Pace(1)
    pace.sent(0.0)
    assert pace.left(1 - TIMER_SECONDS / 2) == 0
    assert pace.left(1 - TIMER_SECONDS * 3) > 0


def test_refusals_of_requests_in_flight_count_once() -> None:
    pace = Pace(8)
    for moment in (1.0, 1.125, 1.25):
        pace.sent(moment)
    for moment in (1.0, 1.125, 1.25):
        pace.refused(2.0, sent_at=moment)
    assert pace.rate == 4
    pace.sent(2.25)
    pace.refused(2.5, sent_at=2.25)
    assert pace.rate == 2


def test_the_rate_has_a_floor() -> None:
    pace = Pace(64)
    for moment in range(1, 100):
        pace.refused(float(moment), sent_at=float(moment))
    assert pace.rate == 64 * SLOWEST_SHARE
