"""From one connection to the next: what is requested, what is committed first, and what ends it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from bridge.clock_skew import Skew
from bridge.errors import ClockError, FeedLost, FeedRefused, FeedUnreached, NotOwner, SettingsError
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import DECIDED_SECONDS
from bridge.records.checkpoint import State
from bridge.records.gap import Cause, FeedGap
from bridge.service.connector import gap_text
from bridge.service.interfaces import FeedConnection
from tests.virtual.desk import Desk, with_desk
from tests.virtual.world import DAY, EPOCH, HOUR


@pytest.mark.parametrize(
    ("revision", "asked"),
    [
        (EPOCH - HOUR, EPOCH - HOUR),
        (EPOCH - 14, EPOCH - 15),  # our clock may be 15 s ahead
        (EPOCH + 15, EPOCH - 15),
    ],
)
@with_desk()
async def test_no_revision_ahead_of_the_providers_clock_is_requested(
    desk: Desk, revision: float, asked: float
) -> None:
    desk.term.position.rewind_to(int(revision))
    assert await desk.connector.connect() is None
    assert desk.provider.asked == [asked]


@with_desk()
async def test_an_attempt_is_committed_before_it_is_made(desk: Desk) -> None:
    await desk.checkpointer.commit()
    assert (desk.kafka.transactions, desk.kafka.checked) == (1, 0)

    async def answer() -> FeedConnection:
        assert (desk.kafka.transactions, desk.kafka.checked) == (2, 1)
        last = desk.kafka.checkpoints[-1]
        assert last.state is State.CONNECTING
        assert [attempt.recovery_seconds for attempt in last.ledger] == [100]
        raise FeedLost("no connection")

    desk.provider.answer = answer
    await desk.connector.connect()
    assert len(desk.provider.asked) == 1


@with_desk()
async def test_an_attempt_is_withdrawn_when_its_commit_takes_long(desk: Desk) -> None:
    desk.kafka.away(DECIDED_SECONDS + 1)
    assert await desk.connector.connect() is None
    assert desk.provider.asked == []
    assert desk.term.limiter.ledger == ()
    await desk.connector.connect()
    assert len(desk.provider.asked) == len(desk.term.limiter.ledger) == 1


class Opened:
    """An accepted connection, as much of it as is used."""

    skew = Skew(-EPOCH, 1 - EPOCH).by(-2 * EPOCH)
    reading_paused = closed = False
    heard_at = 0.0
    waiting = 0
    disconnected = False

    async def disconnect(self) -> None:
        self.disconnected = True


@pytest.mark.parametrize(("takes", "owner"), [(1, False), (21, True)])
@with_desk()
async def test_a_connection_is_not_used_without_leadership_or_after_a_long_handshake(
    desk: Desk, takes: float, owner: bool
) -> None:
    connection = Opened()

    async def answer() -> FeedConnection:
        await asyncio.sleep(takes)
        return connection  # type: ignore[return-value]

    desk.provider.answer, desk.is_owner = answer, owner
    if owner:
        assert await desk.connector.connect() is None
    else:
        with pytest.raises(NotOwner):
            await desk.connector.connect()
    assert connection.disconnected
    assert desk.term.limiter.ledger[-1].answered_at is not None


@pytest.mark.parametrize("takes", [20, 21])
@with_desk()
async def test_an_attempt_that_took_longer_than_it_may_has_been_counted_by_its_end(
    desk: Desk, takes: float
) -> None:
    async def answer() -> FeedConnection:
        await asyncio.sleep(takes)
        raise FeedLost("no answer")

    desk.provider.answer = answer
    assert await desk.connector.connect() is None
    [attempt] = desk.term.limiter.ledger
    assert attempt.answered_at == (EPOCH + takes if takes > 20 else None)


@pytest.mark.parametrize("error", [FeedUnreached("no route"), SettingsError("no such proxy")])
@with_desk()
async def test_an_attempt_that_reached_nobody_is_withdrawn(desk: Desk, error: Exception) -> None:
    async def answer() -> FeedConnection:
        raise error

    desk.provider.answer = answer
    for _ in range(20):
        with contextlib.suppress(SettingsError):
            assert await desk.connector.connect() is None
        assert desk.term.limiter.ledger == ()
    assert {len(it.ledger) for it in desk.kafka.checkpoints if it.state is State.CONNECTING} == {1}
    assert desk.connector.attempts.results["failed"] == (20 if isinstance(error, FeedUnreached) else 0)
    if isinstance(error, FeedUnreached):
        assert asyncio.get_running_loop().time() < 20 * 2
        desk.connector.attempts.ended(FeedLost("a failure"))
        assert desk.connector.next_attempt(desk.clock())[1].until <= desk.clock().wall + 1


@with_desk()
async def test_the_progress_of_a_connection_begins_anew(desk: Desk) -> None:
    async def answer() -> FeedConnection:
        return Opened()  # type: ignore[return-value]

    desk.provider.answer = answer
    desk.term.progress.observe(0.0, 10, EPOCH - 50)
    assert await desk.connector.connect() is not None
    assert desk.term.progress.catch_up(EPOCH) == CatchUp(None, 0.0, None)


@with_desk()
async def test_a_pause_has_the_failure_before_it_in_one_line(desk: Desk) -> None:
    desk.connector.attempts.ended(FeedRefused("HTTP 503", "<h1>\n  Maintenance\n</h1>", status=503))
    state, decision = desk.connector.next_attempt(desk.clock())
    assert state is State.BACKING_OFF
    assert decision.reason == "the provider refused the connection: HTTP 503: <h1> Maintenance </h1>"


@pytest.mark.parametrize(
    ("revision", "asked_time", "safe", "words"),
    [
        (EPOCH + 61, Skew(100, 101), int(EPOCH - HOUR), "1m 40s ahead of ours"),
        (EPOCH + 61, None, None, "start the bridge again"),
        (EPOCH - 4 * DAY, Skew(-2 * DAY, -2 * DAY + 1), None, "behind ours"),
    ],
)
@with_desk()
async def test_a_position_that_only_our_clock_finds_wrong_is_no_gap(
    desk: Desk, revision: float, asked_time: Skew | None, safe: int | None, words: str
) -> None:
    desk.term.position.rewind_to(int(revision))
    desk.provider.asked_time, desk.term.safe_revision = asked_time, safe
    with pytest.raises(ClockError, match=words):
        await desk.connector.connect()
    assert (desk.term.limiter.ledger, desk.kafka.gaps) == ((), [])


def test_the_text_of_a_gap_has_its_bounds_and_its_cause() -> None:
    text = gap_text(FeedGap("f", EPOCH, EPOCH + 3 * HOUR, Cause.MISSING_IN_REPLAY, EPOCH + DAY))
    assert text.startswith("a gap of 3h: ")
    assert "2026-09-21T14:13:20Z to 2026-09-21T17:13:20Z" in text
    assert "MissingInReplay" in text


@with_desk(auth="bearer", auth_value_file=Path("/does/not/exist"))
async def test_a_credential_that_cannot_be_read_costs_no_attempt(desk: Desk) -> None:
    with pytest.raises(SettingsError, match="BRIDGE_FEED__AUTH_VALUE_FILE"):
        await desk.connector.connect()
    assert desk.term.limiter.ledger == ()
    assert desk.kafka.transactions == 0
