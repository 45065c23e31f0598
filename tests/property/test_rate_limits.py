"""No sequence of outages, crashes and clock steps makes the limiter break a limit of the provider.

The provider's own book-keeping is the simulator's, which shares no code with the limiter. Time is
virtual: an attempt is made up to ten seconds after it was decided and reaches the provider up to the
connect time-out later, if at all. It is judged by a clock that differs from ours by no more than the skew
that the limiter knows of. Who takes over may be another machine, with a clock as wrong as that.

What nobody can know is left out: that the wall clock was set by more while no process ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clock import Instant
from bridge.config import LimitsSettings
from bridge.feed.rate_limits import Attempt, Limiter
from bridge_sandbox.provider.rate_limits import Limits

BEGAN = 1_790_000_000.0
TIMEOUT, DECIDED = 10.0, 10.0
"""Longest attempt, and longest time until it begins, seconds."""


class World:
    """A bridge that connects when it is allowed to, loses connections and crashes, in virtual time."""

    ends: tuple[str, ...] = (
        "accepted",
        "accepted",
        "closed",
        "refused",
        "crash",
        "killed",
        "lost",
        "unreached",
    )
    """How an attempt may end."""

    def __init__(
        self, random: Random, *, skew: float = 0.0, scale: float = 1.0, may_overflow: bool = False
    ) -> None:
        self.random = random
        self._skew = skew
        self._scale = scale
        self._may_overflow = may_overflow
        self._settings = LimitsSettings(scale=scale, bucket_may_overflow=may_overflow)
        self.time = BEGAN
        """What the provider's clock says."""
        self.wall = random.uniform(-skew, skew)
        """What ours is ahead of it."""
        self._asleep = 0.0
        """What the monotonic clock is behind: it does not know how long the machine has been suspended."""
        self.revision: int | None = None
        self.arrivals: list[tuple[float, int]] = []
        """When each attempt reached the provider, and with what revision."""
        self.limiter = self.process()

    def process(self, ledger: Iterable[Attempt] = ()) -> Limiter:
        """Start a process now."""
        made = Limiter(self._settings, TIMEOUT / self._scale, self._skew, ledger)
        made.usage(self.now)
        return made

    def take_over(self) -> None:
        """Another process reads the ledger from the checkpoint; it may run on another machine."""
        if self._skew:
            self.wall = self.random.choice([self.wall, -self._skew, self._skew])
        self._asleep = self.random.uniform(-1e6, 1e6)
        self.limiter = self.process(replace(attempt, own=False) for attempt in self.limiter.ledger)

    @property
    def now(self) -> Instant:
        return Instant(self.time + self.wall, self.time - self._asleep)

    def pass_time(self, seconds: float) -> None:
        """Let an outage or a good connection pass; the clocks may change at its end."""
        self.time += seconds / self._scale
        match self.random.choice(["nothing", "nothing", "set", "suspended"]):
            case "set":
                self.wall = self.random.uniform(-self._skew, self._skew)
            case "suspended":
                asleep = self.random.choice([1.0, 290.0, 1790.0, 100_000.0]) / self._scale
                self.time += asleep
                self._asleep += asleep

    def connect(self) -> None:
        """Wait until it is allowed, sometimes asking again before, then connect."""
        while (until := self.limiter.decide(self.now, self.revision).until) > self.now.wall:
            look_anew = self.random.choice([30.0, 1e9]) / self._scale
            self.time += max(1e-6, min(until - self.now.wall, look_anew))
        if self.revision is not None:  # what is older is a gap
            self.revision = max(self.revision, self.limiter.oldest_replayable(self.now.wall))
        self.limiter.attempt(self.now, self.revision)
        delay = self.random.choice([0.0, DECIDED * self.random.random(), DECIDED])  # Kafka's is real time
        delay += self.random.choice([0.0, 0.1, TIMEOUT * self.random.random(), TIMEOUT]) / self._scale
        self.arrivals.append((self.time + delay, self.revision or 0))
        match self.random.choice(self.ends):
            case "accepted" | "closed" | "killed" as end:
                self.time += delay
                self.limiter.answered(self.now, refused=False)
                self.revision = int(self.now.wall) - 90
                if end == "closed":
                    self.time += 1.0 / self._scale
                    self.limiter.answered(self.now, refused=True)
                if end == "killed":
                    self.take_over()
            case "refused":
                self.time += delay
                self.limiter.answered(self.now, refused=True)
            case "crash":
                self.time += self.random.choice([0.0, 2.0]) / self._scale
                self.take_over()
            case "unreached":
                self.arrivals.pop()
                self.time += delay
                self.limiter.withdraw()
            case "lost":
                self.time += DECIDED + TIMEOUT / self._scale

    def breaches(self) -> list[str]:
        """Return the provider's errors for the attempts, in the order of their arrival."""
        book = Limits(self._scale, bucket_may_overflow=self._may_overflow)
        for at, revision in sorted(self.arrivals):
            book.attempt(at, revision)
        return [breach.reason for breach in book.breaches]


class Lasting(World):
    """A bridge whose process never ends, and whose attempts all reach the provider."""

    ends = World.ends[:-1]

    def take_over(self) -> None:
        """Nobody does."""


SEEDS = st.integers(0, 2**32)
OUTAGES = st.lists(
    st.sampled_from([0.0, 1.0, 60.0, 300.0, 880.0, 1500.0, 3000.0, 3490.0, 3599.0, 5000.0, 300_000.0])
    | st.floats(0, 3700),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=300)
@given(
    SEEDS,
    OUTAGES,
    st.sampled_from([0.0, 1.5, 15.0, 200.0]),
    st.sampled_from([1.0, 1.0, 10.0]),
    st.booleans(),
)
def test_no_limit_is_ever_broken(
    seed: int, outages: list[float], skew: float, scale: float, may_overflow: bool
) -> None:
    """Whatever the lengths of connections and outages, and whatever was answered, lost or never sent.

    With the bucket as the bridge reads it, and word by word.
    """
    world = World(Random(seed), skew=skew, scale=scale, may_overflow=may_overflow)
    for seconds in outages:
        world.connect()
        world.pass_time(seconds)
    assert len(world.arrivals) <= len(outages)
    assert world.breaches() == []


@settings(deadline=None)
@given(SEEDS, st.lists(st.tuples(st.floats(0, 1900), st.floats(-1e6, 1e6)), min_size=1, max_size=30))
def test_a_clock_set_by_any_amount_breaks_no_window(seed: int, moves: list[tuple[float, float]]) -> None:
    world = World(Random(seed))
    for seconds, wall in moves:
        world.revision = None
        world.connect()
        world.limiter.usage(world.now)
        world.time += seconds
        world.wall = wall
        world.limiter.usage(world.now)
    assert world.breaches() == []


def test_a_thousand_crashes_break_no_limit() -> None:
    world = World(Random(1), skew=3.0)
    for _ in range(1000):
        world.connect()
    assert world.breaches() == []


@settings(deadline=None)
@given(SEEDS, st.sampled_from([1.5, 5.0, 15.0]), st.sampled_from([0, 60, 5000, 400_000]))
def test_hosts_whose_clocks_differ_take_over_from_each_other(seed: int, skew: float, recovery: int) -> None:
    world = World(Random(seed), skew=skew)
    for _ in range(40):
        world.revision = None if recovery == 400_000 else int(world.time) - recovery
        world.connect()
        world.take_over()
    assert world.breaches() == []


@settings(deadline=None)
@given(SEEDS, st.lists(st.sampled_from([None, 0, 60, 3595, 5000, 259_190, 400_000]), max_size=40))
def test_revisions_of_every_age_break_no_limit(seed: int, recoveries: list[int | None]) -> None:
    world = World(Random(seed), skew=1.5)
    for recovery in recoveries:
        world.revision = None if recovery is None else int(world.time) - recovery
        world.connect()
    assert world.breaches() == []


@settings(deadline=None)
@given(SEEDS, OUTAGES, st.sampled_from([0.0, 5.0, 200.0]), st.none() | st.integers(-100, 4000))
def test_a_shortened_ledger_decides_as_the_whole_one(
    seed: int, outages: list[float], skew: float, ask: int | None
) -> None:
    """The attempts that `attempt` drops would have changed no decision of the process that drops them."""
    world = Lasting(Random(seed), skew=skew)
    whole = world.process()
    for seconds in outages:
        world.revision = None if ask is None else int(world.now.wall - ask)
        world.connect()
        whole.usage(world.now)  # moves what it has, by the clocks as they are now
        whole.ledger = (*whole.ledger, world.limiter.ledger[-1])
        world.time += seconds
        revision = None if ask is None else int(world.now.wall - ask)
        assert world.limiter.decide(world.now, revision) == whole.decide(world.now, revision)


@settings(deadline=None)
@given(
    SEEDS,
    OUTAGES,
    st.none() | st.integers(-100, 400_000),
    st.lists(st.floats(0, 1), max_size=5),
    st.booleans(),
)
def test_the_limiter_returns_the_earliest_time(
    seed: int, outages: list[float], ask: int | None, shares: list[float], may_overflow: bool
) -> None:
    world = World(Random(seed), may_overflow=may_overflow)
    limits = LimitsSettings(bucket_may_overflow=may_overflow)
    for seconds in outages:
        world.connect()
        world.time += seconds
    start, ledger = world.now.wall, world.limiter.ledger
    revision = None if ask is None else int(start - ask)

    def until(wall: float) -> float:
        return Limiter(limits, TIMEOUT, 0.0, ledger).decide(Instant(wall, wall), revision).until

    answer = until(start)
    assert start <= answer <= start + 2 * 3600
    assert until(answer) == answer
    for share in [*shares, 1.0]:
        moment = start + (answer - 0.002 - start) * share
        if start <= moment < answer:
            assert moment < until(moment) <= answer + 0.002
