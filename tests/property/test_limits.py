"""No sequence of outages and crashes makes the limiter break a limit of the provider.

The provider's own book-keeping is the simulator's, which shares no code with the limiter. Time is
virtual: a decision to dial reaches the provider up to the connect time-out later, if at all.
"""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.config import LimitsSettings
from bridge.feed.limits import Limiter
from bridge.simulator.limits import Limits

BEGAN = 1_790_000_000.0
TIMEOUT = 10.0
MEMORY = 259_200.0


class Bridge:
    """A bridge that dials when it is let in, loses connections and crashes, in virtual time."""

    def __init__(self, random: Random, scale: float) -> None:
        self._random = random
        self._settings = LimitsSettings(scale=scale)
        self._scale = scale
        self.now = BEGAN
        self.limiter = Limiter(self._settings, TIMEOUT / scale)
        self.revision: int | None = None
        self.arrivals: list[tuple[float, int]] = []
        """When each attempt reached the provider, and with what revision."""
        self.dials = 0

    def pass_time(self, seconds: float) -> None:
        self.now += seconds / self._scale

    def dial(self) -> None:
        """Wait until it is let in, at times looking anew before, then dial."""
        while (decision := self.limiter.decide(self.now, self.revision)).until > self.now:
            self.now = min(decision.until, self.now + self._random.choice([30.0, 1e9]) / self._scale)
        revision = self.revision
        self.limiter.attempt(self.now, revision)
        self.dials += 1
        delay = self._random.choice([0.0, 0.1, TIMEOUT * self._random.random(), TIMEOUT]) / self._scale
        self.arrivals.append((self.now + delay, revision or 0))
        match self._random.choice(["accepted", "accepted", "refused", "crash", "lost"]):
            case "accepted":
                self.now += delay
                self.limiter.answered(self.now, refused=False)
                self.revision = int(self.now) - 90
            case "refused":
                self.now += delay
                self.limiter.answered(self.now, refused=True)
            case "crash":  # the ledger is read back from the checkpoint
                self.pass_time(self._random.choice([0.0, 2.0]))
                self.limiter = Limiter(self._settings, TIMEOUT / self._scale, self.limiter.ledger)
            case "lost":
                self.now += TIMEOUT / self._scale
        if self.revision is not None:  # a revision older than the memory would be a gap
            oldest = int(self.now - MEMORY / self._scale) + int(3 * TIMEOUT)
            self.revision = max(self.revision, oldest)


def breaches(bridge: Bridge, scale: float) -> list[str]:
    """What the provider says of the attempts, in the order in which they reached it."""
    limits = Limits(scale)
    for at, revision in sorted(bridge.arrivals):
        limits.attempt(at, revision)
    return [breach.reason for breach in limits.breaches]


_OUTAGES = st.lists(
    st.sampled_from([0.0, 1.0, 60.0, 300.0, 880.0, 1500.0, 3000.0, 3500.0, 3599.0, 5000.0, 90_000.0])
    | st.floats(0, 3700),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32), outages=_OUTAGES, scale=st.sampled_from([1.0, 1.0, 10.0]))
def test_no_limit_is_ever_broken(seed: int, outages: list[float], scale: float) -> None:
    """However long it was connected or away in between, whatever was answered, lost or never sent."""
    bridge = Bridge(Random(seed), scale)
    for seconds in outages:
        bridge.dial()
        bridge.pass_time(seconds)
    assert bridge.dials == len(outages)
    assert breaches(bridge, scale) == []


def test_a_thousand_crashes_break_no_limit() -> None:
    """A bridge that is restarted as soon as it has crashed, a thousand times."""
    bridge = Bridge(Random(1), 1.0)
    for _ in range(1000):
        bridge.dial()
    assert breaches(bridge, 1.0) == []


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), outages=_OUTAGES, ask=st.floats(0, 4000))
def test_a_shortened_ledger_decides_as_the_whole_one(seed: int, outages: list[float], ask: float) -> None:
    """What `attempt` drops from the ledger would have changed no decision."""
    bridge = Bridge(Random(seed), 1.0)
    whole = Limiter(LimitsSettings(), TIMEOUT)
    for seconds in outages:
        bridge.dial()
        whole.ledger = (*whole.ledger, bridge.limiter.ledger[-1])
        bridge.pass_time(seconds)
        moment, revision = bridge.now, int(bridge.now - ask)
        assert bridge.limiter.decide(moment, revision) == whole.decide(moment, revision)
