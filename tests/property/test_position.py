"""However a provider sends and a bridge reads, what the revision promises has been received.

The provider publishes in order; a connection first replays, with pauses in which it only pings, and then
sends live. Live it may become slower than it publishes, and pause then. The bridge may stop reading. What it
may not do without: in a pause of the replay the next message, and in one of a slow feed the last, is older
than the out-of-orderness (and the skew between the clocks, which is known), because closer to now no one can
distinguish a pause from a quiet feed; and the first message that comes so late has a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clock_skew import Skew
from bridge.config import FeedSettings
from bridge.feed.position import Position

MARGIN, OUT_OF_ORDER, AFTER_PINGS = 30.0, 60.0, 120.0
SETTINGS = FeedSettings(
    safety_margin_seconds=MARGIN,
    max_out_of_orderness_seconds=OUT_OF_ORDER,
    live_after_pings_seconds=AFTER_PINGS,
)
BEGAN = 1_790_000_000.0
NO_TIME = -62_135_596_800.0
PING_SECONDS = 5.0


@dataclass(frozen=True)
class Published:
    """A message of the provider."""

    at: float
    settled: float | None
    """None for what is not understood."""


@st.composite
def timelines(draw: st.DrawFn) -> list[Published]:
    """Up to some hundred messages, in bursts and after silences, settled up to OUT_OF_ORDER before."""
    at, found = BEGAN, []
    for _ in range(draw(st.integers(1, 12))):
        gap = draw(st.sampled_from([0.0, 0.1, 1.0, 7.0, 30.0, 100.0, 700.0, 4000.0]))
        step = draw(st.sampled_from([0.0, 0.01, 0.5, 1.0, 3.0]))
        at += gap
        for _ in range(draw(st.integers(1, 70))):
            at += step
            kind = draw(st.integers(0, 9))
            delay = draw(st.sampled_from([0.0, 0.5, 10.0, 59.0, OUT_OF_ORDER]))
            late = draw(st.sampled_from([61.0, 89.0, 91.0, 3600.0, 90_000.0]))
            settled = {0: NO_TIME, 1: None, 2: at - late}.get(kind, at - delay)
            found.append(Published(at, settled))
    return found


@settings(deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([1, 7, 48, 49, 50, 51, 120]), st.integers(-300, 3000), st.integers(-9, 9))
        | st.none(),
        max_size=30,
    )
)
def test_catching_up_follows_the_lowest_of_the_last_50_plausible_times(
    steps: list[tuple[int, int, int] | None],
) -> None:
    position, now = Position(SETTINGS, int(BEGAN)), BEGAN + 100_000
    revision, last = BEGAN, list[float]()
    for step in steps:
        if step is None:
            position.connected(Skew(0, 0))
            last.clear()
            continue
        count, first, distance = step
        for number in range(count):
            settled = BEGAN + first + number * distance
            position.data(now, settled)
            if settled > revision:
                last.append(settled)
            if len(last) >= 50:
                revision = max(revision, min(last[-50:]) - MARGIN)
            assert position.revision == revision


@dataclass
class Reader:
    """The bridge: hands what it reads to the position and checks the promise each time."""

    messages: list[Published]
    position: Position
    ahead: float
    """What the provider's clock, in which all times here are, is ahead of ours."""
    received: int = 0
    """All messages before this one have been received, on this connection or on one before."""

    @property
    def margin(self) -> float:
        """What is older than that when it comes cannot be taken for what is near now, seconds."""
        return OUT_OF_ORDER + abs(self.ahead)

    def read(self, at: float, message: int | None) -> None:
        """A message by its number, or a ping."""
        before, at = self.position.revision, at - self.ahead
        if message is None:
            self.position.ping(at)
        else:
            settled = self.messages[message].settled
            if settled is None:
                self.position.invalid(at)
            else:
                self.position.data(at, settled)
            self.received = max(self.received, message + 1)
        assert before <= self.position.revision <= at
        if self.received < len(self.messages):
            assert self.messages[self.received].at >= self.position.revision


_PAUSES = st.sampled_from([0.0, 0.0, 0.0, 10.0, 130.0, 600.0])
_SLOW_PAUSES = st.sampled_from([0.0, 130.0, 600.0, 3500.0])
_STOPS = st.sampled_from([0.0, 0.0, 14.0, 16.0, 100.0, 600.0])


@settings(deadline=None, max_examples=40)
@given(data=st.data(), messages=timelines())
def test_everything_before_the_revision_has_been_received(
    data: st.DataObject, messages: list[Published]
) -> None:
    ahead = data.draw(st.sampled_from([0.0, 0.0, 20.0, -20.0]), "skew")
    reader = Reader(messages, Position(SETTINGS, int(BEGAN) - 200), ahead)
    now = BEGAN + data.draw(
        st.sampled_from([0.0, 50.0, 1000.0, 90_000.0]), "outage before the first connection"
    )
    for _ in range(data.draw(st.integers(1, 3), "connections")):
        now = connect(data, reader, now)
        now += data.draw(st.sampled_from([0.0, 30.0, 5000.0]), "outage")


@settings(deadline=None, max_examples=40)
@given(data=st.data(), messages=timelines())
def test_a_live_feed_that_falls_behind_and_pauses_promises_nothing(
    data: st.DataObject, messages: list[Published]
) -> None:
    ahead = data.draw(st.sampled_from([0.0, 20.0, -20.0]), "skew")
    reader = Reader(messages, Position(SETTINGS, int(BEGAN) - 200), ahead)
    reader.position.connected(Skew(ahead, ahead))
    at_once = data.draw(st.integers(0, len(messages) - 1), "messages sent at once")
    for number in range(at_once):
        reader.read(messages[number].at, number)
    now, number = messages[at_once].at, at_once
    while number < len(messages):
        now = max(now, messages[number].at)
        reader.read(now, number)
        now, number = fall_behind(data, reader, now, number + 1)


def connect(data: st.DataObject, reader: Reader, now: float) -> float:
    """One connection, from the replay of everything since the revision to its end; returns when it ends."""
    messages, position = reader.messages, reader.position
    position.connected(Skew(reader.ahead, reader.ahead))
    number = next((n for n, m in enumerate(messages) if m.at >= position.revision), len(messages))
    now, number = replay(data, reader, now, number)
    until = now + data.draw(st.sampled_from([0.0, 20.0, 400.0, 4000.0]), "seconds live")
    while now < until:
        if data.draw(st.integers(0, 5), "falls behind?") == 0:
            now, number = fall_behind(data, reader, now, number)
        stop = data.draw(_STOPS, "stop of reading")
        waiting = now + stop
        # The queue keeps its order: pings and data as they were sent, all read at the same moment.
        if stop > MARGIN / 2:
            position.catch_up()
        sent_at = now
        while sent_at <= waiting:
            while number < len(messages) and messages[number].at <= sent_at:
                reader.read(waiting, number)
                number += 1
            reader.read(waiting, None)
            sent_at += PING_SECONDS
        while number < len(messages) and messages[number].at <= waiting:
            reader.read(waiting, number)
            number += 1
        now = ping(reader, waiting, PING_SECONDS)
        if data.draw(st.integers(0, 30), "lost?") == 0:
            break
        if number == len(messages) or messages[number].at > now + 30:
            following = messages[number].at if number < len(messages) else until
            now = ping(reader, now, min(following, until) - now - PING_SECONDS)
    return now


def replay(data: st.DataObject, reader: Reader, now: float, number: int) -> tuple[float, int]:
    """What was published before, from this message on; returns when it ends, and the next message."""
    messages = reader.messages
    pace = data.draw(st.sampled_from([0.0, 0.001, 0.2]), "seconds a replayed message")
    while number < len(messages) and messages[number].at <= now:
        if data.draw(st.integers(0, 40), "pause?") == 0 and now - messages[number].at > reader.margin:
            now = ping(reader, now, data.draw(_PAUSES, "pause"))
        now += pace
        reader.read(now, number)
        number += 1
    return now, number


def fall_behind(data: st.DataObject, reader: Reader, now: float, number: int) -> tuple[float, int]:
    """The provider sends slowly, pings after data, until it pauses; returns when, and the next message."""
    pace = data.draw(st.sampled_from([0.1, 1.0, 20.0, 50.0]), "seconds a message of a slow feed")
    count = data.draw(st.integers(1, 70), "messages of a slow feed")
    is_late = False
    for message in reader.messages[number : number + count]:
        if message.settled is None and not is_late:
            break
        now = max(now, message.at) + pace
        reader.read(now, number)
        number += 1
        if message.settled is not None:
            is_late = now - message.at > reader.margin
    if is_late:
        now = ping(reader, now, data.draw(_SLOW_PAUSES, "pause of a slow feed"))
    return now, number


def ping(reader: Reader, now: float, seconds: float) -> float:
    """Send nothing but pings for this long."""
    end = max(now, now + seconds)
    while now + PING_SECONDS <= end:
        now += PING_SECONDS
        reader.read(now, None)
    return end
