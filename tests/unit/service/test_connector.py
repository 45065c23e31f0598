"""From one connection to the next: what is asked for, what is written down first, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from bridge.clock import Clock
from bridge.clock_skew import Skew
from bridge.config import FeedSettings
from bridge.errors import ClockError, FeedLost, FeedRefused, GapError, NotOwner, SettingsError
from bridge.feed.protocol import Request
from bridge.feed.rate_limits import DECIDED_SECONDS
from bridge.service.connector import gap_text
from bridge.service.interfaces import Connection
from bridge.state.checkpoint import State
from bridge.state.gap import Cause, Gap
from tests.virtual.desk import Desk, at_desk, with_desk
from tests.virtual.world import DAY, EPOCH, HOUR


class Provider:
    """Refuses everybody, after a while, and remembers what it was asked."""

    def __init__(self, takes: float = 0.0) -> None:
        self.takes = takes
        self.asked: list[int] = []
        self.cancelled = False
        self.on_connect: Callable[[], None] = lambda: None

    async def connect(
        self, _settings: FeedSettings, asked: Request, _wake: Callable[[], None], _clock: Clock
    ) -> Connection:
        self.asked.append(int(parse_qs(urlsplit(asked.url).query)["revision"][0]))
        self.on_connect()
        try:
            await asyncio.sleep(self.takes)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        raise FeedLost("no connection")


@pytest.mark.parametrize(
    ("revision", "asked"),
    [
        (EPOCH - HOUR, EPOCH - HOUR),
        (EPOCH - 14.0, EPOCH - 15),  # our clock may be ahead by so much
        (EPOCH + 15.0, EPOCH - 15),
    ],
)
def test_what_is_asked_for_is_the_position_unless_that_may_lie_ahead(revision: float, asked: float) -> None:
    """Of the provider's clock, as far as the two may differ."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        assert await desk.connector.connect() is None

    at_desk(story, revision=revision, connect=provider.connect)
    assert provider.asked == [asked]


def test_a_first_dial_asks_for_zero() -> None:
    """Once: the checkpoint of that attempt promises its position, so the next ones ask from there on."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        for _ in range(3):
            await desk.connector.connect()
        assert {checkpoint.revision for checkpoint in desk.kafka.checkpoints} == {EPOCH - 30}
        assert [attempt.initial for attempt in desk.limiter.ledger] == [True, False, False]

    at_desk(story, connect=provider.connect, first=True)
    assert provider.asked == [0, EPOCH - 30, EPOCH - 30]


def test_an_attempt_is_committed_before_it_is_made() -> None:
    """With the state in which it is."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        def look() -> None:
            last = desk.kafka.checkpoints[-1]
            assert last.state is State.CONNECTING
            assert [attempt.recovery_seconds for attempt in last.ledger] == [100]

        provider.on_connect = look
        await desk.connector.connect()
        assert len(provider.asked) == 1

    at_desk(story, connect=provider.connect)


def test_a_decision_that_has_grown_old_is_taken_back() -> None:
    """Kafka took long for the checkpoint: no attempt was made or counted."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        desk.kafka.away(DECIDED_SECONDS + 1)
        assert await desk.connector.connect() is None
        assert provider.asked == []
        assert desk.limiter.ledger == ()
        await desk.connector.connect()
        assert len(provider.asked) == len(desk.limiter.ledger) == 1

    at_desk(story, connect=provider.connect)


def test_a_credential_that_cannot_be_read_costs_no_attempt(tmp_path: Path) -> None:
    """Nothing is written and nothing dialled."""

    async def story(desk: Desk) -> None:
        with pytest.raises(SettingsError, match="BRIDGE_FEED__AUTH_VALUE_FILE"):
            await desk.connector.connect()
        assert desk.limiter.ledger == ()
        assert desk.kafka.transactions == 0

    at_desk(story, auth="bearer", auth_value_file=tmp_path / "none")


class Opened:
    """A connection that was let in."""

    skew = Skew(-EPOCH, 1 - EPOCH).by(-2 * EPOCH)
    reading_paused = closed = False
    heard_at = 0.0
    waiting = 0

    def __init__(self) -> None:
        self.hung_up = False

    async def disconnect(self) -> None:
        self.hung_up = True


@pytest.mark.parametrize("trouble", ["lost", "late"])
def test_whoever_stood_still_while_dialling_does_not_use_the_connection(trouble: str) -> None:
    """He may have lost the feed, and not have heard of it yet; and what he had decided is too old."""
    connection = Opened()

    async def connect(_settings: FeedSettings, _asked: Request, _wake: object, _clock: Clock) -> Connection:
        await asyncio.sleep(21 if trouble == "late" else 1)
        return connection  # type: ignore[return-value]  # as much of it as is used

    async def story(desk: Desk) -> None:
        desk.still_owner = trouble == "late"
        if trouble == "late":
            assert await desk.connector.connect() is None
        else:
            with pytest.raises(NotOwner):
                await desk.connector.connect()
        assert connection.hung_up
        assert desk.limiter.ledger[-1].answered_at is not None

    at_desk(story, connect=connect)


def test_cancelling_ends_the_attempt_that_is_under_way() -> None:
    """At once, and its socket is closed by then."""
    provider = Provider(takes=60)

    async def story(desk: Desk) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await desk.connector.connect()
        assert asyncio.get_running_loop().time() == 1.0
        assert provider.cancelled

    at_desk(story, connect=provider.connect)


def test_cancelling_ends_a_wait() -> None:
    """Nothing is dialled behind it."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        for _ in range(5):
            desk.limiter.attempt(desk.clock(), int(EPOCH) - 100)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await desk.connector.connect()
        assert desk.status.state is State.WAITING_FOR_LIMIT

    at_desk(story, connect=provider.connect)
    assert provider.asked == []


@with_desk()
async def test_the_later_of_limit_and_pause_decides(desk: Desk) -> None:
    """And gives the reason."""
    await desk.connector.connect()
    decision = desk.connector.decide(desk.clock())
    assert decision.reason == "a pause after a failure"
    assert EPOCH + 0.5 <= decision.until <= EPOCH + 1
    for _ in range(4):
        desk.limiter.attempt(desk.clock(), int(EPOCH) - 100)
    decision = desk.connector.decide(desk.clock())
    assert decision.reason == "5 proper connections in 300 s"
    assert decision.until > EPOCH + 300


def test_how_attempts_end_is_counted() -> None:
    """One that was refused, by a status that means `not now`, and others."""
    ends = [FeedLost("gone"), FeedRefused("HTTP 429", status=429), FeedRefused("HTTP 500", status=500)]

    async def connect(*_: object) -> Connection:
        raise ends[0]

    async def story(desk: Desk) -> None:
        while ends:
            assert await desk.connector.connect() is None
            ends.pop(0)
        assert desk.connector.connections == {"failed": 2, "refused": 1}
        assert [attempt.refused for attempt in desk.limiter.ledger] == [False, True, False]
        assert [attempt.answered_at is None for attempt in desk.limiter.ledger] == [True, False, False]

    at_desk(story, connect=connect)


def test_a_position_in_the_future_is_a_gap_from_what_is_certain() -> None:
    """Declared once, with the attempt, which asks from there on: what the provider still has is not lost."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        for _ in range(3):  # the first is not made: the limiter decided about another recovery
            await desk.connector.connect()
        gap = Gap("f", EPOCH - HOUR, EPOCH + 16, Cause.POSITION_IN_FUTURE, EPOCH)
        assert desk.kafka.gaps == [gap]
        assert {checkpoint.revision for checkpoint in desk.kafka.checkpoints} == {EPOCH - HOUR}

    at_desk(story, revision=EPOCH + 16, certain=int(EPOCH - HOUR), connect=provider.connect)
    assert provider.asked == [EPOCH - HOUR] * 2


@with_desk(revision=EPOCH + 16, certain=int(EPOCH - HOUR), on_gap="stop")
async def test_with_stop_a_position_in_the_future_stops_the_bridge(desk: Desk) -> None:
    """With the gap, and a position that is true."""
    with pytest.raises(GapError, match="PositionInFuture"):
        await desk.connector.connect()
    last = desk.kafka.checkpoints[-1]
    assert (last.state, last.revision) == (State.STOPPED_ON_GAP, EPOCH - HOUR)
    assert len(desk.kafka.gaps) == 1


@pytest.mark.parametrize(
    ("asked_time", "certain", "words"),
    [(Skew(100, 101), int(EPOCH - HOUR), "100 s ahead of ours"), (None, None, "start the bridge again")],
)
def test_a_position_that_only_our_clock_finds_in_the_future_is_no_gap(
    asked_time: Skew | None, certain: int | None, words: str
) -> None:
    """The provider's is asked first; and without a guard that reaches back nothing is asked for again."""

    async def story(desk: Desk) -> None:
        desk.asked_time = asked_time
        with pytest.raises(ClockError, match=words):
            await desk.connector.connect()
        assert (desk.limiter.ledger, desk.kafka.gaps) == ((), [])

    at_desk(story, revision=EPOCH + 61, certain=certain)


OLD = EPOCH - 4 * DAY


@pytest.mark.parametrize("asked", [None, Skew(-14.0, -13.0)])
def test_with_stop_a_position_that_is_too_old_is_a_gap(asked: Skew | None) -> None:
    """Committed before anything is dialled; the error says what is lost and what to do."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        desk.asked_time = asked
        with pytest.raises(GapError, match=r"a gap of 1d.*BRIDGE_FEED__ON_GAP"):
            await desk.connector.connect()
        last = desk.kafka.checkpoints[-1]
        assert last.state is State.STOPPED_ON_GAP
        assert desk.kafka.gaps == [Gap("f", OLD, last.revision, Cause.TOO_OLD, EPOCH)]

    at_desk(story, revision=OLD, connect=provider.connect, on_gap="stop")
    assert provider.asked == []


def test_with_continue_a_gap_is_not_declared_before_somebody_answers() -> None:
    """It grows as long as nobody does: what is asked for is the edge of memory, and that moves on."""
    provider = Provider(takes=20)

    async def story(desk: Desk) -> None:
        for _ in range(3):
            await desk.connector.connect()
        assert desk.kafka.gaps == []
        assert {checkpoint.revision for checkpoint in desk.kafka.checkpoints} == {OLD}

    at_desk(story, revision=OLD, connect=provider.connect)
    assert len(set(provider.asked)) == 3


@pytest.mark.parametrize("on_gap", ["stop", "continue"])
def test_a_provider_that_cannot_be_asked_for_the_time_is_not_dialled(on_gap: str) -> None:
    """Nor is a gap declared: it is one more failure, with a pause behind it."""
    provider = Provider()

    async def story(desk: Desk) -> None:
        desk.asked_time = FeedLost("away")
        assert await desk.connector.connect() is None
        assert desk.kafka.gaps == []
        assert desk.limiter.ledger == ()
        assert desk.connector.decide(desk.clock()).reason == "a pause after a failure"

    at_desk(story, revision=OLD, connect=provider.connect, on_gap=on_gap)
    assert provider.asked == []


@with_desk(revision=OLD)
async def test_a_position_that_only_our_clock_finds_too_old_is_no_gap(desk: Desk) -> None:
    """The provider's clock is asked first."""
    desk.asked_time = Skew(-2 * DAY, -2 * DAY + 1)
    with pytest.raises(ClockError, match="behind ours"):
        await desk.connector.connect()
    assert desk.kafka.gaps == []


def test_a_gap_is_told_with_its_bounds() -> None:
    """In words, and with its cause."""
    gap = Gap("f", EPOCH, EPOCH + 3 * HOUR, Cause.MISSING_IN_REPLAY, EPOCH + DAY)
    text = gap_text(gap)
    assert text.startswith("a gap of 3h: ")
    assert "2026-09-21T14:13:20Z to 2026-09-21T17:13:20Z" in text
    assert "MissingInReplay" in text
