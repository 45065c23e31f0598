"""Drills: the shortest campaigns in which the faults show. The sound bridge is clean in each of them.

A drill is played on the ground that it has prepared: a simulator and the topics of its own. It never fails
for what a bridge does or does not do; the judge does. It says which processes ended, and not by its doing,
and what it has waited for in vain.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bridge.config import age_seconds
from bridge_sandbox.provider.faults import Clear, Drop, Forget, Garbage, Pause, Refuse, Slow
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.broken.fault import SOUND, Fault
from tests.harness import END_SECONDS, Bridge, Place, until
from tests.judge import Case, Excuse, Report, judge, missing
from tests.processes import Process, start_python

ROOT = Path(__file__).parents[2]
PLAIN = {"PYTHONPATH": f"{ROOT / 'tests' / 'plain'}:{ROOT}"}
"""The environment in which rules of the bridge can be replaced."""

CONNECTED_SECONDS = 60.0
"""How long a drill waits for what a sound bridge does on a busy machine; a broken one may never do it."""
SETTLED_SECONDS = 8.0
"""How long nothing more may come before a broken bridge that is live has published all that it will."""
PATIENCE_SECONDS = 60.0
"""The same of one that is not live, and of the sound bridge, which a busy machine may delay."""
_DEFAULTS: Mapping[str, Any] = {
    "port": 0,
    "control_port": 0,
    "rate": 100,
    "resettle": 0.3,
    "odd": 0.03,
    "ping_seconds": 0.3,
    "limits_scale": 1000,
}
_BRIDGE = {
    "KAFKA__SESSION_TIMEOUT_MS": "2000",
    "KAFKA__HEARTBEAT_INTERVAL_MS": "300",
    "FEED__ON_GAP": "continue",
    "FEED__MAX_OUT_OF_ORDERNESS_SECONDS": "2",
    "FEED__SAFETY_MARGIN_SECONDS": "3",
    "FEED__MAX_CLOCK_SKEW_SECONDS": "1",
    "FEED__LIVE_AFTER_PINGS_SECONDS": "2",
    "FEED__CONNECT_TIMEOUT_SECONDS": "1",
    "FEED__START": "1m",
}


GAP_SECONDS = 12 + 1 + 1 + 2 + 1.0
"""What a gap may cover of what the provider remembers: an attempt may arrive 12 s and the connect time-out
after it was decided, by a clock that is off by a second, and ages are rounded up (decision 0010)."""


POSITION_SECONDS = 10.0
"""How far the last position may be behind the end of the stream, beside the margins of the bridge: until it
is live again, which takes two seconds of pings."""


@dataclass(eq=False)
class Ground:
    """Where a drill is played: topics, a simulator, and the processes of a bridge."""

    place: Place
    feed: Simulator
    fault: Fault
    settings: Mapping[str, str]
    excused: list[Excuse] = field(default_factory=list)
    _killed: set[Bridge] = field(default_factory=set)
    """Those that the drill has killed, or that an interruption kills."""
    _told: set[Bridge] = field(default_factory=set)
    """Those that were told to end."""
    unmet: list[str] = field(default_factory=list)
    """What was waited for in vain."""

    def bridge(self, interruption: str = "") -> Bridge:
        """Start a bridge."""
        self.place.start = partial(start, self.fault, interruption)
        scale = f"{self.feed.settings.limits_scale:g}"
        bridge = self.place.bridge(
            FEED__BASE_URL=self.feed.url, **_BRIDGE | {"LIMITS__SCALE": scale} | dict(self.settings)
        )
        if {"before", "after"} & set(interruption.split()):
            self._killed.add(bridge)
        return bridge

    def kill(self, bridge: Bridge) -> None:
        """Kill a bridge."""
        self._killed.add(bridge)
        bridge.kill()

    async def end(self) -> None:
        """Tell all bridges to end, and kill those that do not."""
        for bridge in self.place.bridges:
            if bridge.process.poll() is None:
                self._told.add(bridge)
                bridge.signal(signal.SIGCONT)
                bridge.signal(signal.SIGTERM)
        await self.wait("the end", lambda: not self._states(), END_SECONDS)
        for bridge in self.place.bridges:
            bridge.kill()  # which `ended` then tells

    def ended(self) -> dict[str, int]:
        """Return the exit codes that the drill has not caused, by the name of the log."""
        codes = {bridge: bridge.process.poll() for bridge in self.place.bridges}
        return {
            bridge.log.stem: code
            for bridge, code in codes.items()
            if code is not None
            and not (bridge in self._killed and code == -signal.SIGKILL)
            # One that is told to end before it listens to signals dies of it.
            and not (bridge in self._told and code in (0, -signal.SIGTERM))
        }

    async def wait(
        self, what: str, condition: Callable[[], bool], seconds: float = CONNECTED_SECONDS
    ) -> bool:
        """Wait until it holds; return whether it came to that."""
        try:
            await until(condition, what, seconds)
        except AssertionError:
            self.unmet.append(what)
            return False
        return True

    async def connected(self, more_than: int = 0) -> bool:
        """Wait until there was more than this number of attempts, and there is a connection."""
        return await self.wait(
            "a connection",
            lambda: len(self.feed.connections) > more_than and self.feed._provider.active is not None,
        )

    async def live(self, bridge: Bridge) -> bool:
        """Wait until the bridge is live, or has ended; return whether it came to be live, and runs."""
        await self.wait("live", lambda: "Live" in bridge.states() or bridge.process.poll() is not None)
        return "Live" in bridge.states() and bridge.process.poll() is None

    async def died(self, bridge: Bridge) -> None:
        """Wait until an interruption has killed the bridge; kill it if it never comes to that."""
        await self.wait("the death", lambda: bridge.process.poll() is not None)
        self.kill(bridge)

    def bet(self, payout: float, version: int, bet: str, settled_at: float | None = None) -> dict[str, Any]:
        """Return a message with a bet that the provider could send."""
        message = _sample(self.feed)
        at = self.feed.now() if settled_at is None else settled_at
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{at % 1:.6f}"[2:] + "Z"
        message["data"] |= {
            "betId": bet,
            "payout": payout,
            "settlementVersion": version,
            "settlementTime": text,
        }
        return message

    def send(self, message: Mapping[str, Any]) -> None:
        """Publish a message."""
        self.feed.inject(orjson.dumps(message))

    async def case(self) -> Case:
        """End the stream; return the case when nothing more comes."""
        self.feed.stop_publishing()
        case, work = self._case(), self.place.directory
        before, since = -1, time.monotonic()
        while left := await asyncio.to_thread(missing, case, work):
            if left != before:
                before, since = left, time.monotonic()
            patience = SETTLED_SECONDS if self._is_settled() else PATIENCE_SECONDS
            if time.monotonic() - since > patience and not self._waits():
                break
            await asyncio.sleep(0.3)
        await asyncio.sleep(1.0)  # what is doubled may still be on its way
        return self._case()

    def _case(self) -> Case:
        cluster = self.place.cluster
        return Case(
            bootstrap_servers=cluster.bootstrap_servers,
            registry_url=cluster.registry_url,
            prefix=self.place.prefix,
            control_url=str(self.feed.control_url),
            limits_scale=self.feed.settings.limits_scale,
            excused=tuple(self.excused),
            start_age=age_seconds({**_BRIDGE, **self.settings}["FEED__START"]),
            gap_margin=GAP_SECONDS,
            position_margin=self._margins() + POSITION_SECONDS,
        )

    def _margins(self) -> float:
        names = ("MAX_OUT_OF_ORDERNESS", "SAFETY_MARGIN", "MAX_CLOCK_SKEW")
        return sum(float({**_BRIDGE, **self.settings}[f"FEED__{name}_SECONDS"]) for name in names)

    def _is_settled(self) -> bool:
        """Whether a broken bridge has caught up, or none is left that could."""
        states = self._states()
        return self.fault is not SOUND and (not states or bool({"Live", "Quiet"} & states))

    def _waits(self) -> bool:
        """Whether a running bridge waits for a limit, and so may go on."""
        return bool({"WaitingForLimit", "BackingOff"} & self._states())

    def _states(self) -> set[str]:
        """Return the states of the bridges that run."""
        running = [bridge for bridge in self.place.bridges if bridge.process.poll() is None]
        return {(bridge.states() or [""])[-1] for bridge in running}


def start(
    fault: Fault,
    interruption: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
) -> Process:
    """Start a command of a bridge with a fault. It dies with the test run."""
    arguments = ["-m", "tests.broken.start", fault.name, interruption, *command[1:]]
    return start_python(arguments, {**environment, **PLAIN}, stdout, stderr)


def _sample(feed: Simulator) -> dict[str, Any]:
    """Return a bet of the stream with a map of several entries."""
    for it in feed.published():
        if it.bet_id is not None and b'"bog"' in it.body:
            message: dict[str, Any] = orjson.loads(it.body)
            return message
    raise AssertionError("the stream has no such bet yet")


@dataclass(frozen=True)
class Drill:
    """A drill: its simulator, settings of the bridge that differ, and what happens."""

    story: Callable[[Ground], Awaitable[None]]
    provider: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


async def play(
    drill: Drill, place: Place, fault: Fault, seed: int
) -> tuple[Report, dict[str, int], list[str]]:
    """Play a drill and judge it. Returns also the exit codes that it has not caused, and what was in vain."""
    async with Simulator(SimulatorSettings(**{**_DEFAULTS, **drill.provider, "seed": seed})) as feed:
        ground = Ground(place, feed, fault, drill.settings)
        await drill.story(ground)
        case = await ground.case()
        await ground.end()
        work = place.directory / "judge"
        work.mkdir()
        return await asyncio.to_thread(judge, case, Path(work)), ground.ended(), ground.unmet


async def _replay(ground: Ground) -> None:
    """A history, two seconds live, and odd messages of every kind."""
    bridge = ground.bridge()
    if not await ground.live(bridge):
        return
    feed = ground.feed
    feed.inflict(Garbage(count=12))
    feed.inflict(Garbage(body='{"settled":{"betId":"in another envelope"}}'))
    feed.inflict(Garbage(body='{"pingId":null,"data":null}'))
    first = ground.bet(1.5, 1, "the same bet")
    ground.send(first)
    for item in first["data"]["selections"] or ():
        if item.get("parameters"):
            item["parameters"] = dict(reversed(item["parameters"].items()))
    await asyncio.sleep(1.0)
    ground.send(first)
    await asyncio.sleep(1.0)


async def _reconnections(ground: Ground) -> None:
    """Changes of one bet, live; then connections that are cut, so that each replay repeats what is known."""
    bridge, feed = ground.bridge(), ground.feed
    if not await ground.live(bridge):
        return
    await asyncio.sleep(6.5)  # longer than what was received before it went live may be a repetition
    settled_at = feed.now()
    for payout, version in ((1.0, 2), (2.0, 2), (1.0, 2), (9.0, 1)):
        ground.send(ground.bet(payout, version, "there and back", settled_at))
        await asyncio.sleep(0.3)
    feed.inflict(Garbage(count=6))
    for payout in (1.0, 2.0, 3.0):
        ground.send(ground.bet(payout, 1, "corrected twice"))
    await asyncio.sleep(1.0)
    for abort in (True, False):
        attempts = len(feed.connections)
        feed.inflict(Drop(abort=abort))
        await ground.connected(attempts)
        await asyncio.sleep(2.5)


async def _kills(ground: Ground) -> None:
    """Killed with a complete transaction that is not committed, right behind a commit, and at random."""
    points = (
        "bridge.kafka.transactions:TransactionalWriter._deliver_all after 12",
        "bridge.kafka.transactions:TransactionalWriter._attempt after 9",
    )
    for point in points:
        bridge = ground.bridge(point)
        await ground.connected(len(ground.feed.connections))
        for _ in range(100):  # some in each transaction
            ground.feed.inflict(Garbage())
            await asyncio.sleep(0.05)
            if bridge.process.poll() is not None:
                break
        await ground.died(bridge)
    bridge = ground.bridge()
    await ground.live(bridge)
    await asyncio.sleep(1.0)
    ground.kill(bridge)
    ground.bridge()
    await ground.connected(len(ground.feed.connections))
    await asyncio.sleep(0.5)


async def _unanswered(ground: Ground) -> None:
    """Commits that took place without an answer, that have to be aborted, that have no markers, that did not.

    One of those that are aborted has another producer's aborted transaction beside it. The last kind comes
    last: after an abort, the bridge reads the last few seconds again, and mends them.
    """
    aborted = "10 contested,14 unmarked,18 unanswered,22 aborted,26 unmarked"
    bridge = ground.bridge(f"commits 6 unanswered,{aborted},30 unsent,34 unsent")
    await ground.live(bridge)
    await ground.wait("all commits", lambda: bridge.text().count("a test: unsent") == 2)
    await asyncio.sleep(1.0)


async def _standby(ground: Ground) -> None:
    """Two bridges; the one that is connected is killed."""
    first = ground.bridge()
    await ground.live(first)
    ground.bridge()
    await asyncio.sleep(10.0)
    attempts = len(ground.feed.connections)
    killed = time.time()
    ground.kill(first)
    ground.excused.append(Excuse(killed - 0.5, killed + 0.5))
    await ground.connected(attempts)
    await asyncio.sleep(1.0)


async def _stopped_owner(ground: Ground, interruption: str = "") -> None:
    """Two bridges; the one that is connected is stopped until the other one has taken over, then resumed."""
    first = ground.bridge(interruption)
    await ground.live(first)
    second = ground.bridge()
    await ground.wait("a standby", lambda: "Standby" in second.states())
    await asyncio.sleep(1.0)
    began, attempts = time.time(), len(ground.feed.connections)
    first.signal(signal.SIGSTOP)
    await ground.connected(attempts)
    await ground.live(second)
    first.signal(signal.SIGCONT)
    ground.excused.append(Excuse(began, time.time() + 2.0))
    await asyncio.sleep(6.0)


async def _late_notice(ground: Ground) -> None:
    """The same, and the one that is resumed learns three seconds late that it was replaced."""
    await _stopped_owner(ground, "bridge.ownership.election:LeaderElection._revoked delay 3")


async def _slow_replay(ground: Ground) -> None:
    """A slow replay with a pause, in which some settlementTimes lie near the time of the replay."""
    feed = ground.feed
    await asyncio.sleep(1.0)
    for place in range(40):
        await asyncio.sleep(0.1)
        ground.send(ground.bet(1.0, 1, f"ahead {place}", feed.now() + 3.0 + place / 4))
    await asyncio.sleep(4.0)
    bridge = ground.bridge()
    if not await ground.connected():
        return
    await asyncio.sleep(1.5)
    feed.inflict(Pause(seconds=2.0))
    await ground.live(bridge)


async def _slow_feed(ground: Ground) -> None:
    """Live, while the provider sends fewer messages than it publishes."""
    bridge = ground.bridge()
    await ground.live(bridge)
    ground.feed.inflict(Slow(per_second=70, seconds=4.0))
    await asyncio.sleep(5.0)


async def _drops(ground: Ground) -> None:
    """Every connection is cut as soon as it is there."""
    bridge, feed = ground.bridge(), ground.feed
    if not await ground.connected():
        return
    end = time.monotonic() + 14.0
    while time.monotonic() < end and bridge.process.poll() is None:
        if feed._provider.active is not None:
            feed.inflict(Drop(abort=True))
        await asyncio.sleep(0.05)


async def _refusals(ground: Ground) -> None:
    """Attempts that the provider refuses for a limit, as far as the bridge can tell."""
    bridge = ground.bridge()
    if not await ground.live(bridge):
        return
    ground.feed.inflict(Refuse(count=2, status=429))
    attempts = len(ground.feed.connections)
    ground.feed.inflict(Drop(abort=True))
    await ground.connected(attempts + 2)
    await asyncio.sleep(1.0)


async def _crash_at_the_handshake(ground: Ground) -> None:
    """Killed when the provider has accepted the connection, and started again."""
    for _ in range(2):
        bridge = ground.bridge("bridge.feed.rate_limits:Limiter.answered before 1")
        await ground.died(bridge)
    ground.bridge()


async def _outage(ground: Ground) -> None:
    """Down for longer than the provider remembers."""
    bridge = ground.bridge()
    await ground.live(bridge)
    await asyncio.sleep(2.0)
    ground.kill(bridge)
    await asyncio.sleep(46.0)
    await ground.live(ground.bridge())


async def _forgotten(ground: Ground) -> None:
    """What is published while the bridge is down is forgotten, and the next one dies before that shows."""
    bridge = ground.bridge()
    await ground.live(bridge)
    await asyncio.sleep(2.0)
    ground.kill(bridge)
    await asyncio.sleep(3.0)
    ground.feed.inflict(Forget())
    ground.feed.inflict(Slow(per_second=0.5, seconds=30))
    bridge = ground.bridge()
    await ground.connected(len(ground.feed.connections))
    await asyncio.sleep(1.5)  # one bet is published
    ground.kill(bridge)
    ground.feed.inflict(Clear())
    bridge = ground.bridge()
    await ground.connected(len(ground.feed.connections))
    await ground.live(bridge)
    await asyncio.sleep(9.0)


_LIMITS = {"limits_scale": 100, "rate": 50}
DRILLS = {
    "replay": Drill(_replay, {"history_seconds": 15}),
    "reconnections": Drill(_reconnections, {"history_seconds": 5}),
    "kills": Drill(_kills, {"history_seconds": 5}),
    "unanswered commits": Drill(_unanswered, {"history_seconds": 5}),
    "standby": Drill(_standby, {"history_seconds": 5}),
    "stopped owner": Drill(_stopped_owner, {"history_seconds": 5, "second": "replace"}),
    "late notice": Drill(_late_notice, {"history_seconds": 20, "second": "replace", "rate": 10}),
    "slow replay": Drill(_slow_replay, {"history_seconds": 3, "replay_rate": 180}),
    "slow feed": Drill(_slow_feed, {"history_seconds": 5}),
    "drops": Drill(
        _drops, _LIMITS | {"history_seconds": 40}, {"FEED__START": "26s", "FEED__SAFETY_MARGIN_SECONDS": "20"}
    ),
    "refusals": Drill(
        _refusals,
        _LIMITS | {"history_seconds": 5},
        {"FEED__START": "18s", "FEED__SAFETY_MARGIN_SECONDS": "15"},
    ),
    "large recoveries": Drill(
        _drops, _LIMITS | {"history_seconds": 70}, {"FEED__START": "65s", "FEED__SAFETY_MARGIN_SECONDS": "60"}
    ),
    "crash at the handshake": Drill(
        _crash_at_the_handshake,
        _LIMITS | {"history_seconds": 40},
        {"FEED__START": "26s", "FEED__SAFETY_MARGIN_SECONDS": "20"},
    ),
    "outage": Drill(
        _outage,
        {"history_seconds": 5, "limits_scale": 7000, "rate": 30},
        {"FEED__START": "5s", "FEED__SAFETY_MARGIN_SECONDS": "1"},
    ),
    "forgotten": Drill(_forgotten, {"history_seconds": 5}),
}
"""By name."""
