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
from bridge.records.gap import Cause, Gap
from bridge.service.connector import gap_text
from bridge.service.interfaces import Connection
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
    desk.term.position.take_back(int(revision))
    assert await desk.connector.connect() is None
    assert desk.provider.asked == [asked]


@with_desk(start="0")
async def test_attempts_request_revision_zero_until_all_that_it_replays_has_come(desk: Desk) -> None:
    for _ in range(3):
        await desk.connector.connect()
    desk.connector.attempts.ended(FeedLost("with pauses as after a refusal"))
    assert desk.connector.next_attempt(desk.clock())[1].until > desk.clock().wall + 30
    with pytest.raises(FeedLost, match="asking for all since the first attempt"):
        desk.connector.caught_up()
    await desk.connector.connect()
    assert {checkpoint.revision for checkpoint in desk.kafka.checkpoints} == {EPOCH - 30}
    assert [it.starting for it in desk.kafka.checkpoints if it.state is State.CONNECTING] == [True] * 3 + [
        False
    ]
    assert [attempt.initial for attempt in desk.term.limiter.ledger] == [True, True, True, False]
    assert desk.provider.asked == [0, 0, 0, EPOCH - 30]


@with_desk(start="0")
async def test_a_first_attempt_that_is_accepted_needs_no_other(desk: Desk) -> None:
    desk.provider.answer = Opened.accept
    assert await desk.connector.connect() is not None
    desk.connector.caught_up()
    desk.connector.attempts.ended(FeedLost("later"))
    assert await desk.connector.connect() is not None
    assert desk.provider.asked == [0, EPOCH - 30]


@with_desk()
async def test_an_attempt_is_committed_before_it_is_made(desk: Desk) -> None:
    await desk.checkpointer.commit()
    assert (desk.kafka.transactions, desk.kafka.checked) == (1, 0)

    async def answer() -> Connection:
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


@with_desk()
async def test_another_feed_is_looked_for_before_each_attempt_until_something_is_received(desk: Desk) -> None:
    await desk.checkpointer.commit()
    for looks in (1, 2):
        await desk.connector.connect()
        assert desk.looks == looks
    desk.term.counters.received = desk.term.counters.pings = 1
    await desk.connector.connect()
    assert desk.looks == 2


@with_desk(auth="bearer", auth_value_file=Path("/does/not/exist"))
async def test_a_credential_that_cannot_be_read_costs_no_attempt(desk: Desk) -> None:
    with pytest.raises(SettingsError, match="BRIDGE_FEED__AUTH_VALUE_FILE"):
        await desk.connector.connect()
    assert desk.term.limiter.ledger == ()
    assert desk.kafka.transactions == 0


class Opened:
    """An accepted connection."""

    skew = Skew(-EPOCH, 1 - EPOCH).by(-2 * EPOCH)
    reading_paused = closed = False
    heard_at = 0.0
    waiting = 0
    disconnected = False

    @classmethod
    async def accept(cls) -> Connection:
        return cls()  # type: ignore[return-value]  # as much of it as is used

    async def disconnect(self) -> None:
        self.disconnected = True


@pytest.mark.parametrize(("takes", "owner"), [(1, False), (21, True)])
@with_desk()
async def test_a_connection_is_not_used_without_leadership_or_after_a_long_handshake(
    desk: Desk, takes: float, owner: bool
) -> None:
    connection = Opened()

    async def answer() -> Connection:
        await asyncio.sleep(takes)
        return connection  # type: ignore[return-value]  # as much of it as is used

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
    async def answer() -> Connection:
        await asyncio.sleep(takes)
        raise FeedLost("no answer")

    desk.provider.answer = answer
    assert await desk.connector.connect() is None
    [attempt] = desk.term.limiter.ledger
    assert attempt.answered_at == (EPOCH + takes if takes > 20 else None)


@pytest.mark.parametrize("error", [FeedUnreached("no route"), SettingsError("no such proxy")])
@with_desk()
async def test_an_attempt_that_reached_nobody_is_withdrawn(desk: Desk, error: Exception) -> None:
    async def answer() -> Connection:
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
    async def answer() -> Connection:
        return Opened()  # type: ignore[return-value]  # as much of it as is used

    desk.provider.answer = answer
    desk.term.progress.observe(0.0, 10, EPOCH - 50)
    assert await desk.connector.connect() is not None
    assert desk.term.progress.catch_up(EPOCH) == CatchUp(None, 0.0, None)


@pytest.mark.parametrize(("attempts", "asked"), [(0, 1), (5, 0)], ids=["an attempt", "a wait for a limit"])
@with_desk()
async def test_cancelling_ends_at_once(desk: Desk, attempts: int, asked: int) -> None:
    open_sockets = 0

    async def answer() -> Connection:
        nonlocal open_sockets
        open_sockets += 1
        try:
            return await asyncio.Future()
        finally:
            open_sockets -= 1

    desk.provider.answer = answer
    for _ in range(attempts):
        desk.term.limiter.attempt(desk.clock(), int(EPOCH) - 100)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await desk.connector.connect()
    assert asyncio.get_running_loop().time() == 10.0
    assert (len(desk.provider.asked), open_sockets) == (asked, 0)
    assert desk.status.state is (State.WAITING_FOR_LIMIT if attempts else State.CONNECTING)


@with_desk()
async def test_the_later_of_limit_and_pause_decides_and_gives_the_reason(desk: Desk) -> None:
    await desk.connector.connect()
    _, decision = desk.connector.next_attempt(desk.clock())
    assert decision.reason == "no connection"
    assert EPOCH + 0.5 <= decision.until <= EPOCH + 1
    for _ in range(4):
        desk.term.limiter.attempt(desk.clock(), int(EPOCH) - 100)
    _, decision = desk.connector.next_attempt(desk.clock())
    assert decision.reason == "5 proper connection attempts in 5m"
    assert decision.until > EPOCH + 300


@with_desk()
async def test_a_pause_has_the_failure_before_it_in_one_line(desk: Desk) -> None:
    desk.connector.attempts.ended(FeedRefused("HTTP 503", "<h1>\n  Maintenance\n</h1>", status=503))
    state, decision = desk.connector.next_attempt(desk.clock())
    assert state is State.BACKING_OFF
    assert decision.reason == "the provider refused the connection: HTTP 503: <h1> Maintenance </h1>"


@with_desk()
async def test_attempts_are_counted_by_how_they_end(desk: Desk) -> None:
    ends = [FeedLost("gone"), FeedRefused("HTTP 429", status=429), FeedRefused("HTTP 500", status=500)]

    async def answer() -> Connection:
        raise ends[len(desk.provider.asked) - 1]

    desk.provider.answer = answer
    for _ in ends:
        assert await desk.connector.connect() is None
    assert desk.connector.attempts.results == {"failed": 2, "refused": 1}
    assert [attempt.refused for attempt in desk.term.limiter.ledger] == [False, True, False]
    assert [attempt.answered_at is None for attempt in desk.term.limiter.ledger] == [True, False, False]


@pytest.mark.parametrize(
    ("revision", "asked_time", "certain", "words"),
    [
        (EPOCH + 61, Skew(100, 101), int(EPOCH - HOUR), "1m 40s ahead of ours"),
        (EPOCH + 61, None, None, "start the bridge again"),
        (EPOCH - 4 * DAY, Skew(-2 * DAY, -2 * DAY + 1), None, "behind ours"),
    ],
)
@with_desk()
async def test_a_position_that_only_our_clock_finds_wrong_is_no_gap(
    desk: Desk, revision: float, asked_time: Skew | None, certain: int | None, words: str
) -> None:
    desk.term.position.take_back(int(revision))
    desk.provider.asked_time, desk.term.certain_revision = asked_time, certain
    with pytest.raises(ClockError, match=words):
        await desk.connector.connect()
    assert (desk.term.limiter.ledger, desk.kafka.gaps) == ((), [])


def test_the_text_of_a_gap_has_its_bounds_and_its_cause() -> None:
    text = gap_text(Gap("f", EPOCH, EPOCH + 3 * HOUR, Cause.MISSING_IN_REPLAY, EPOCH + DAY))
    assert text.startswith("a gap of 3h: ")
    assert "2026-09-21T14:13:20Z to 2026-09-21T17:13:20Z" in text
    assert "MissingInReplay" in text
