"""A bridge, a provider and a Kafka in virtual time, with faults, and the assertions at the end.

The bridge's process can be killed at any moment; then only the contents of Kafka survive. Times of the
provider are `EPOCH` plus the loop's; the bridge's wall clock may be set, the monotonic one is the loop's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import groupby
from math import inf
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import orjson
import structlog

from bridge.clock import AnchoredClock, Instant
from bridge.config import BatchSettings, FeedSettings, LimitsSettings, Settings
from bridge.errors import BridgeError, TopologyError
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.gap import Cause
from bridge.records.topics import declare
from bridge.service.interfaces import Dependencies, GiveUp
from bridge.service.owner import FeedOwner
from bridge.service.status import Status
from bridge_sandbox.provider.bets import message
from bridge_sandbox.provider.faults import Clear, Fault
from bridge_sandbox.provider.feed import Policy, Provider
from bridge_sandbox.provider.rate_limits import Limits
from bridge_sandbox.provider.stream import StreamSettings
from bridge_sandbox.provider.world.entities import Sizes
from bridge_sandbox.provider.world.entities import World as Entities
from tests.streams import CachedStream
from tests.virtual.feed import UNKNOWN, Feed, Network
from tests.virtual.kafka import CODECS, Kafka, MemoryWriter
from tests.virtual.loop import as_test, run
from tests.virtual.truth import Truth

EPOCH = 1_790_000_000.0
T = TypeVar("T")

BY_FAULT = "refused by a fault"
HOUR, DAY = 3600.0, 86_400.0
FEED = FeedSettings(name="f", base_url="http://provider.example", on_gap="continue")
_SCALED = (
    "idle_timeout_seconds",
    "live_after_pings_seconds",
    "safety_margin_seconds",
    "max_out_of_orderness_seconds",
    "max_clock_skew_seconds",
    "connect_timeout_seconds",
)
ENTITIES = Entities(1, EPOCH, Sizes(sports=2, regions=2, leagues=2, competitors=10, events=20))


class Leadership:
    """Leadership of the running process, until its `term` ends or it is `lost` without notice."""

    term = 1
    lost = False

    def holds(self, term: int) -> bool:
        """Return whether the term lasts."""
        return term == self.term

    def confirm(self, _give_up: GiveUp) -> bool:
        """Return what the coordinator knows."""
        return not self.lost


class World:
    """The world. `rate` is in messages a second, `ahead` the seconds by which the provider's clock is ahead.

    `history` is how many seconds the provider had been publishing, `burst` the number of bets at a time.
    `scale` is the factor by which all limits and margins are shorter, `feed` holds settings of the
    bridge's `[feed]`, `max_records` is the size of a batch, `odd` the share of odd messages.
    """

    def __init__(
        self,
        *,
        rate: float = 0.2,
        seed: int = 1,
        scale: float = 1,
        history: float = 0,
        ahead: float = 0,
        policy: Policy | None = None,
        burst: int = 1,
        feed: Mapping[str, Any] = MappingProxyType({}),
        max_records: int = 5000,
        odd: float = 0,
    ) -> None:
        random.seed(seed)  # of the pauses after a failure
        self.random = random.Random(seed)
        self.scale = scale
        self._loop = asyncio.get_running_loop()
        shorter = {name: getattr(FEED, name) / scale for name in _SCALED}
        self.settings = Settings(
            feed=FEED.model_copy(update=shorter | dict(feed)),
            limits=LimitsSettings(scale=scale),
            batch=BatchSettings(max_age_ms=500, max_records=max_records),
        )
        published = StreamSettings(
            rate=rate, burst=burst, resettle=0.3, max_out_of_orderness_seconds=2 / scale, odd=odd
        )
        stream = CachedStream(ENTITIES, EPOCH - history, published)
        if ahead:
            stream.clock.step(-inf, ahead)
        policy = policy or Policy()
        pace = {"ping_seconds": 10 / scale, "replay_rate": min(policy.replay_rate, 50)}
        policy = policy.model_copy(update=pace)
        self.provider = Provider(stream, Limits(scale), policy)
        self.network = Network()
        self.set_by = 0.0
        """How far the bridge's wall clock was set."""
        self.slept = 0.0
        """For how long its machine was paused, all in all: its monotonic clock stood still meanwhile."""
        self.feed = Feed(self.provider, self.network, self.clock, EPOCH)
        self.anchored: AnchoredClock | None = None
        """The clock of all terms; None makes one for each process."""
        self.leadership = Leadership()
        self.leadership_changed = asyncio.Event()
        self.kafka = Kafka(declare(self.settings))
        self.kafka.look_for_other_feeds = self._look_for_other_feeds
        self.status = Status("f", self.clock)
        self.other_feed: Literal["", "before", "meanwhile", "unknown"] = ""
        """Whether another feed used the topics before the start, or is seen only after the first commit;
        or leadership is lost before that is known."""
        self.processes = 0
        """Started so far."""
        self._before = 0
        """How many transactions there were when the process began."""
        self.owner: FeedOwner | None = None
        self.committed: Checkpoint | None = None
        """By the process that starts, in a former term."""
        self._process: asyncio.Task[None] | None = None

    # Time.

    def clock(self) -> Instant:
        """Return the clocks of the bridge's machine."""
        monotonic = self._loop.time()
        return Instant(EPOCH + monotonic + self.slept + self.set_by, monotonic)

    def pause(self, seconds: float) -> None:
        """Pause the bridge's machine, as a hypervisor does; then set its wall clock right."""
        self.slept += seconds
        self.feed.paused(seconds)

    # The process.

    def start(self, **feed: Any) -> None:
        """Start the process, with other settings of the feed if given."""
        assert self._process is None
        if feed:
            self.settings = self.settings.model_copy(
                update={"feed": self.settings.feed.model_copy(update=feed)}
            )
        self.processes += 1
        self._before = self.kafka.transactions
        clock = self.anchored or AnchoredClock(self.clock)
        self.status = Status("f", clock)
        dependencies = Dependencies(
            settings=self.settings,
            status=self.status,
            owner_id="me",
            topics=self.kafka.topics,
            codecs=CODECS,
            stored=self.kafka.stored,
            leadership=self.leadership,
            leadership_changed=self.leadership_changed,
            writer=lambda _: MemoryWriter(self.kafka, self._refuse_other_feeds),
            connect=self.feed.connect,
            ask_time=self.feed.ask_time,
            clock=clock,
        )
        self.owner = FeedOwner(dependencies, self.committed)
        self._process = self._loop.create_task(self.owner.run())

    def _refuse_other_feeds(self) -> None:
        if self.other_feed == "before" or (
            self.other_feed == "meanwhile" and self.kafka.transactions > self._before
        ):
            raise TopologyError("another feed uses the topics")

    def _look_for_other_feeds(self) -> None:
        self._refuse_other_feeds()
        if self.other_feed == "unknown":
            self.leadership.term += 1  # nothing wakes the one that waits for it

    @property
    def runs(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and not self._process.done()

    async def kill(self) -> None:
        """Kill the process as SIGKILL does. Raises the error with which the process had ended before."""
        self.feed.cut()
        self.kafka.process_died()
        process, self._process = self._process, None
        assert process is not None
        if process.done():
            process.result()
        process.cancel()
        for _ in range(20):  # by then it would commit what has come, but nothing that it does has an effect
            await asyncio.sleep(0)
        process.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await process

    async def end(self) -> None:
        """Release everything."""
        if self._process is not None:
            await self.kill()

    async def stop(self) -> None:
        """Stop the process as SIGTERM does."""
        process, self._process = self._process, None
        assert process is not None
        process.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await process

    def lose_leadership(self) -> None:
        """Let the coordinator assign the partition to another process."""
        self.leadership.term += 1
        self.leadership_changed.set()

    async def ended(self) -> BridgeError:
        """Return the error with which the process ends by itself."""
        assert self._process is not None
        done, _ = await asyncio.wait({self._process}, timeout=3 * HOUR)
        assert done, "it goes on"
        error, self._process = self._process.exception(), None
        assert isinstance(error, BridgeError)
        return error

    # What befalls it.

    def inflict(self, fault: Fault) -> None:
        """Inflict a fault of the provider."""
        self.provider.inflict(fault, self.feed.moment())
        self.feed.poke()

    def unreachable(self, seconds: float) -> None:
        """Take the network down for these seconds."""
        self.network.down_until = self._loop.time() + seconds
        self.feed.cut()

    # What must hold.

    @property
    def last(self) -> Checkpoint:
        """Return the last committed checkpoint."""
        value = self.kafka.checkpoint()
        assert value is not None
        return Checkpoint.from_avro(CODECS.checkpoints.decode(value))

    @property
    def states(self) -> list[State]:
        """Return the committed states, each as often as it was entered."""
        return [state for state, _ in groupby(checkpoint.state for checkpoint in self.kafka.checkpoints)]

    async def until(self, *states: State, within: float = 3 * HOUR) -> Checkpoint:
        """Wait until the running process commits a state."""
        await self.reached(
            lambda: self.kafka.transactions > self._before and self.last.state in states,
            f"none of {states}",
            within,
        )
        return self.last

    async def reached(self, condition: Callable[[], bool], otherwise: str, within: float = 3 * HOUR) -> None:
        """Wait for a condition. Fails after so many seconds, and as the process does if it ends."""
        deadline = self._loop.time() + within
        while not condition():
            assert self._loop.time() < deadline, f"{otherwise} in {within:g} s"
            assert self._process is not None
            if self._process.done():
                self._process.result()
            await asyncio.sleep(0.73)  # not in step with the feed, which would have a new bet each time

    async def entered(self, state: State, act: Callable[[], None]) -> None:
        """Wait until the running process enters a state; `act` at that very moment."""
        entered, become = asyncio.Event(), self.status.become

        def observed(new: State, *args: Any, **details: Any) -> bool:
            changed = become(new, *args, **details)
            if changed and new is state:
                act()
                entered.set()
            return changed

        setattr(self.status, "become", observed)  # noqa: B010
        await entered.wait()

    async def check(self, *causes: Cause, since: float | None = None) -> int:
        """End all faults, let the bridge catch up, and stop it; Kafka has all messages once, in order.

        All means since its first connection attempt, or since a revision that it had committed before
        the provider received that attempt, except those in a gap. Gaps were declared only for these
        causes. No limit was broken, and no attempt was refused but for a fault or a token. Returns
        the number of expected messages.
        """
        self.inflict(Clear())
        await self.reached(lambda: self.feed.caught_up, "not caught up")
        await self.stop()
        assert [gap.cause for gap in self.kafka.gaps] == list(causes), self.kafka.gaps
        assert self.provider.breaches == []
        refused = [a.reason for a in self.provider.attempts if a.since is None]
        assert {*refused} <= {BY_FAULT, UNKNOWN}
        self._check_counters()
        return Truth(self.provider, self.feed.moment(), self.kafka.gaps, since).compare(self.kafka)

    def _check_counters(self) -> None:
        counters, topics = self.last.counters, self.kafka.topics
        assert counters.balanced
        assert counters.published == len(self.kafka.records(topics.bets.name))
        assert counters.dead_lettered == len(self.kafka.records(topics.deadletters.name))


def settled(number: int, at: float) -> bytes:
    """Return a message of a new bet with this settlementTime, Unix seconds."""
    return orjson.dumps(message(ENTITIES, 10**9 + number, 1, int(at * 1e6), 0))


def play(story: Callable[[World], Awaitable[T]], **settings: Any) -> T:
    """Run a story in a world of its own. Keywords are those of `World`."""

    async def live() -> T:
        world = World(**settings)
        try:
            return await story(world)
        finally:
            await world.end()

    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        return run(live())
    finally:
        structlog.configure(**before)


def in_world(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turn a story into a test, which plays it in a world of its own."""
    return lambda story: as_test(story, partial(play, **settings), supplied=1)
