"""However a provider sends and a bridge reads, what the revision promises has been received.

The provider publishes in order; a connection first replays, with pauses in which it only pings, and then
sends live. The bridge may stop reading. What it may not do without: in a pause of the replay the next
message is older than the disorder (and the skew between the clocks, which is known), because closer to
now no one can tell a pause from a quiet feed.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.feed.position import Position, PositionSettings

OVERLAP, DISORDER, QUIET = 30.0, 60.0, 120.0
BEGAN = 1_790_000_000.0
NO_TIME = -62_135_596_800.0
PING_SECONDS = 5.0


@dataclass(frozen=True)
class Published:
    """A message of the provider."""

    at: float
    settled: float | None


@st.composite
def timelines(draw: st.DrawFn) -> list[Published]:
    """Up to some hundred messages, in bursts and after silences, settled up to the disorder before."""
    at, found = BEGAN, []
    for _ in range(draw(st.integers(1, 12))):
        gap = draw(st.sampled_from([0.0, 0.1, 1.0, 7.0, 30.0, 100.0, 700.0, 4000.0]))
        step = draw(st.sampled_from([0.0, 0.01, 0.5, 1.0, 3.0]))
        at += gap
        for _ in range(draw(st.integers(1, 70))):
            at += step
            kind = draw(st.integers(0, 9))
            delay = draw(st.sampled_from([0.0, 0.5, 10.0, 59.0, DISORDER]))
            late = draw(st.sampled_from([61.0, 89.0, 91.0, 3600.0, 90_000.0]))
            settled = {0: NO_TIME, 1: None, 2: at - late}.get(kind, at - delay)
            found.append(Published(at, settled))
    return found


@dataclass
class Reader:
    """The bridge: hands what it reads to the position and checks the promise each time."""

    messages: list[Published]
    position: Position
    ahead: float
    """What the provider's clock, in which all times here are, is ahead of ours."""
    received: int = 0
    """All messages before this one have been received, on this connection or on one before."""

    def read(self, at: float, message: int | None) -> None:
        """A message by its number, or a ping."""
        before, at = self.position.revision, at - self.ahead
        if message is None:
            self.position.ping(at)
        else:
            self.position.data(at, self.messages[message].settled)
            self.received = max(self.received, message + 1)
        assert before <= self.position.revision <= at
        if self.received < len(self.messages):
            assert self.messages[self.received].at >= self.position.revision


_PAUSES = st.sampled_from([0.0, 0.0, 0.0, 10.0, 130.0, 600.0])
_STOPS = st.sampled_from([0.0, 0.0, 14.0, 16.0, 100.0, 600.0])


@settings(deadline=None, max_examples=80)
@given(data=st.data(), messages=timelines())
def test_everything_before_the_revision_has_been_received(
    data: st.DataObject, messages: list[Published]
) -> None:
    """After each single message or ping: a crash right then and a replay from the revision lose nothing."""
    ahead = data.draw(st.sampled_from([0.0, 0.0, 20.0, -20.0]), "skew")
    reader = Reader(messages, Position(PositionSettings(OVERLAP, DISORDER, QUIET), int(BEGAN) - 200), ahead)
    now = BEGAN + data.draw(st.sampled_from([0.0, 50.0, 1000.0, 90_000.0]), "outage before the first dial")
    for _ in range(data.draw(st.integers(1, 3), "connections")):
        now = connect(data, reader, now)
        now += data.draw(st.sampled_from([0.0, 30.0, 5000.0]), "outage")


def connect(data: st.DataObject, reader: Reader, now: float) -> float:
    """One connection, from the replay of everything since the revision to its end; returns when it ends."""
    messages, position = reader.messages, reader.position
    position.connected(reader.ahead)
    number = next((n for n, m in enumerate(messages) if m.at >= position.revision), len(messages))
    margin = DISORDER + abs(reader.ahead)
    pace = data.draw(st.sampled_from([0.0, 0.001, 0.2]), "seconds a replayed message")
    while number < len(messages) and messages[number].at <= now:  # the replay
        if data.draw(st.integers(0, 40), "pause?") == 0 and now - messages[number].at > margin:
            now = ping(reader, now, data.draw(_PAUSES, "pause"))
        now += pace
        reader.read(now, number)
        number += 1
    until = now + data.draw(st.sampled_from([0.0, 20.0, 400.0, 4000.0]), "seconds live")
    while now < until:
        stop = data.draw(_STOPS, "stop of reading")
        waiting = now + stop
        # The queue keeps its order: pings and data as they were sent, all read at the same moment.
        if stop > OVERLAP / 2:
            position.stalled()
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


def ping(reader: Reader, now: float, seconds: float) -> float:
    """Nothing but pings for so long."""
    end = max(now, now + seconds)
    while now + PING_SECONDS <= end:
        now += PING_SECONDS
        reader.read(now, None)
    return end
