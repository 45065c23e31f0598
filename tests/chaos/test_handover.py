"""How long a hand-over takes, on three real brokers: from the event to the first new bet that is visible.

Two bridges have the product's own session time-out and margins. The one that owns the feed is ended
(SIGTERM), killed (SIGKILL) or stopped (SIGSTOP, resumed when the other has taken over), or the broker that
coordinates the owner group is killed. A `read_committed` consumer polls all the time. Time in the limits runs
`SCALE` times faster at both ends, so that the provider allows as many connections; none waits for a limit.

All times are compared as they are: those of the events and sights, the provider's, and those at which bridges
have received messages. They are this machine's clock; `same_clock` fails if the provider's has moved away.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from math import ceil
from random import Random
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, ElectionType, KafkaException, TopicPartition

from benchmarks import report
from bridge.config import FeedSettings
from bridge.kafka.clients import HEARTBEAT_MS, SESSION_MS
from bridge.sandbox import cluster as dev
from bridge.sandbox.cluster.process import Server
from tests.chaos.owners import FEED, Members, judged
from tests.chaos.provider import Provider
from tests.chaos.rounds import ROOT, Rounds
from tests.harness import PATIENCE, Bridge, Place, until
from tests.judge import Excuse
from tests.processes import start_cold

FULL = 50
TIMES = int(os.environ.get("TIMES", FULL))
SEED = int(os.environ.get("SEED", "1"))
RATE = 200
SCALE = 100
PARTITIONS = 6
CLOCK_SECONDS = 0.1
"""At most so far apart may the provider's clock and this process's be."""
BEHIND_SECONDS = 2.0
"""Once each partition shows bets that are younger, there is no hand-over."""
APART_SECONDS = 12.0
"""From one connection to the next event: by then a limit that runs `SCALE` times faster is free again."""
GOALS = {
    "SIGTERM": 3.0,
    "SIGKILL": SESSION_MS / 1000 + 3,
    "SIGSTOP": SESSION_MS / 1000 + 3,
    "coordinator": None,
}
"""Each event with the seconds within which the first new bet is to be visible, if there is a goal."""
EVENTS = {
    "SIGTERM": "SIGTERM of the owner",
    "SIGKILL": "SIGKILL of the owner",
    "SIGSTOP": "SIGSTOP of the owner",
    "coordinator": "SIGKILL of the group's coordinator",
}
NOTICE_SECONDS = 1.0
"""Within so long the provider has noticed that a killed owner has gone."""
OBSERVED_SECONDS = {"coordinator": 15.0}
"""How long to look at least: the rest of a broker's session may bring a second stall."""
PAGE = ROOT / "docs" / "reliability.md"


class Sight(NamedTuple):
    """A bet that has become visible; Unix seconds."""

    at: float
    published: float
    """By the provider."""
    received: float
    """By the bridge that has written it, in whole milliseconds."""


class Handover(NamedTuple):
    """One event, in seconds from it."""

    connected: float | None
    """Until the provider accepted the successor; None if the owner kept its connection."""
    visible: float
    """Until the first new bet was visible: published after the event and, of a successor, written by it."""
    longest: float
    """The longest that a bet published after the event has waited to be visible."""


def excused(kind: str, at: float, closed: float) -> list[Excuse]:
    """Return when a connection may replace another one: while an owner cannot close its own.

    A stopped one has closed it by `closed`. Nothing excuses two bridges whose owner is told to end, or whose
    coordinator dies.
    """
    ends = {"SIGKILL": at + NOTICE_SECONDS, "SIGSTOP": closed}
    return [Excuse(at, ends[kind])] if kind in ends else []


def is_by_owner(sight: Sight, since: float) -> bool:
    """Whether a bet was written by the one that is the owner since then: it has received it later.

    What the owner before it has committed can be seen late.
    """
    return sight.received > since


def handover(at: float, connected: float | None, sights: Sequence[Sight]) -> Handover:
    """Compute the figures of an event from what was seen after it; all times in Unix seconds."""
    new = [sight for sight in sights if sight.published > at]
    first = min(sight.at for sight in new if is_by_owner(sight, connected or at))
    longest = max(sight.at - sight.published for sight in new)
    return Handover(None if connected is None else connected - at, first - at, longest)


class Watcher:
    """A `read_committed` consumer on its own thread, which notes when each bet is seen first.

    A betId ends with the number of the message that settled the bet first, which says when it was published.
    The client has a connection to each broker, so a killed one delays only what is behind its partitions.
    """

    def __init__(self, place: Place, origin: float) -> None:
        self._origin = origin
        self._topic = f"{place.prefix}.bets"
        self._consumer = Consumer(
            {
                "bootstrap.servers": place.cluster.bootstrap_servers,
                "group.id": "watcher",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._sights: dict[int, Sight] = {}
        self._newest = dict.fromkeys(range(PARTITIONS), 0.0)
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Begin once the topic is there."""
        self._thread.start()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def since(self, at: float) -> list[Sight]:
        """Return the first sight of each bet published later, and forget those before."""
        with self._lock:
            self._sights = {slot: sight for slot, sight in self._sights.items() if sight.published > at}
            return list(self._sights.values())

    @property
    def oldest(self) -> float:
        """When the newest bet was published that was seen in the partition that is furthest behind."""
        with self._lock:
            return min(self._newest.values())

    def _run(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, p, 0) for p in range(PARTITIONS)])
        while not self._ending.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:  # a broker that is away comes back
                continue
            now, key, partition = time.time(), message.key(), message.partition()
            assert isinstance(key, bytes)
            slot = int(key.replace(b"-", b"")[16:], 16)
            published = self._origin + slot / RATE
            received = message.timestamp()[1] / 1000
            with self._lock:
                self._sights.setdefault(slot, Sight(now, published, received))
                self._newest[partition or 0] = max(self._newest[partition or 0], published)
        self._consumer.close()


class Pair:
    """Two bridges on three brokers, and what may happen to them."""

    def __init__(self, place: Place, provider: Provider, watcher: Watcher) -> None:
        self._place, self._provider, self._watcher = place, provider, watcher
        self._members = Members(place)
        self._admin = place.admin()
        self._connections = 1
        """Accepted so far."""
        self.excused: list[Excuse] = []

    def start(self) -> None:
        """Start a bridge with the defaults of what a hand-over depends on."""
        self._place.bridge(
            FEED__BASE_URL=self._provider.url,
            LIMITS__SCALE=str(SCALE),
            KAFKA__SESSION_TIMEOUT_MS=str(SESSION_MS),
            KAFKA__HEARTBEAT_INTERVAL_MS=str(HEARTBEAT_MS),
            FEED__MAX_CLOCK_SKEW_SECONDS=str(FeedSettings.model_fields["max_clock_skew_seconds"].default),
        )

    async def steady(self) -> Bridge:
        """Wait for an owner, a standby, all replicas, and bets that arrive in time. Returns the owner."""
        deadline = time.monotonic() + PATIENCE
        while True:
            group, owner = await self._members.group(), await self._members.owner()
            calm = len(group.members) == 2 and not group.joining
            calm = calm and time.time() - self._watcher.oldest < BEHIND_SECONDS
            if calm and owner and await asyncio.to_thread(self._replicated):
                return owner
            assert time.monotonic() < deadline, (group, owner, time.time() - self._watcher.oldest)
            await asyncio.sleep(0.5)

    async def measure(self, kind: str, random: Random) -> Handover:
        """Let the event happen once, and look until the hand-over is over; then make up for it."""
        owner = await self.steady()
        coordinator = await asyncio.to_thread(self._coordinator)
        accepted = await self._accepted()
        assert len(accepted) == self._connections, "a hand-over that nothing has caused"
        await asyncio.sleep(max(0.0, accepted[-1] + APART_SECONDS - time.time()) + random.uniform(0, 3))
        at = time.time()
        if kind == "coordinator":
            await asyncio.to_thread(coordinator.stop, kill=True)
        else:
            owner.signal(signal.Signals[kind])
        observed = at + OBSERVED_SECONDS.get(kind, 0.0)
        deadline = time.monotonic() + PATIENCE
        while True:
            connected = next((it for it in await self._accepted() if it > at), None)
            seen = [sight.at for sight in self._watcher.since(at) if is_by_owner(sight, connected or at)]
            # Then every partition shows what came after it: no bet has waited for longer.
            over = seen and self._watcher.oldest > min(seen) and time.time() > observed
            if over and (connected or kind == "coordinator"):
                break
            assert time.monotonic() < deadline, f"no hand-over after {kind}"
            await asyncio.sleep(0.1)
        found = handover(at, connected, self._watcher.since(at))
        assert not self._limited(at), "it has waited for a limit, which the product's own allow"
        if kind == "coordinator":
            await asyncio.to_thread(self._place.cluster.restart, coordinator.name)
            await self._elect()
        elif kind == "SIGSTOP":
            owner.signal(signal.SIGCONT)
            await until(lambda: owner.states()[-1] == "Standby", "that it stands by", so_far=owner.text)
        else:
            code = await owner.wait()
            assert code == (0 if kind == "SIGTERM" else -signal.SIGKILL), owner.text()
            self.start()
        self.excused += excused(kind, at, time.time())
        self._connections = len(await self._accepted())
        return found

    async def _accepted(self) -> list[float]:
        """When connections were accepted."""
        return [it["at"] for it in await self._provider.get("/attempts") if it["status"] == 101]

    def _limited(self, at: float) -> bool:
        """Whether a bridge has waited for a limit since then."""
        lines = (line for bridge in self._place.bridges for line in bridge.lines())
        waits = (line["timestamp"] for line in lines if line.get("state") == "WaitingForLimit")
        return any(datetime.fromisoformat(it).timestamp() > at for it in waits)

    async def _elect(self) -> None:
        """Let each broker lead a third of the partitions again, or the next one that is killed leads none."""
        deadline = time.monotonic() + PATIENCE
        while True:
            if await asyncio.to_thread(self._replicated):
                with suppress(KafkaException):  # what leads already needs no election
                    # In confluent-kafka 2.16 it fails with any argument by name, such as a time-out.
                    await asyncio.to_thread(self._admin.elect_leaders(ElectionType.PREFERRED).result)
                if await asyncio.to_thread(self._is_led_by_the_first):
                    return
            assert time.monotonic() < deadline, "no election"
            await asyncio.sleep(0.5)

    def _is_led_by_the_first(self) -> bool:
        """Whether the first replica leads each partition."""
        topics = self._admin.list_topics(timeout=PATIENCE).topics.values()
        return all(p.leader == p.replicas[0] for topic in topics for p in topic.partitions.values())

    def _coordinator(self) -> Server:
        """The broker that coordinates the owner group."""
        group = f"{self._place.prefix}.{FEED}.owner"
        for _ in range(int(PATIENCE)):
            # One that has asked before goes on asking a former coordinator. It must outlive its answer.
            admin = self._place.admin()
            with suppress(KafkaException):
                described = admin.describe_consumer_groups([group])[group].result(PATIENCE)
                return self._place.cluster.servers[f"kafka-{described.coordinator.id}"]
            time.sleep(1)
        raise AssertionError(f"{group} has no coordinator")

    def _replicated(self) -> bool:
        """Whether all replicas of all partitions are in sync."""
        topics = self._admin.list_topics(timeout=PATIENCE).topics.values()
        return all(len(p.isrs) == len(p.replicas) for topic in topics for p in topic.partitions.values())


async def same_clock(provider: Provider) -> None:
    """Fail if the provider's clock is not this process's."""
    before = time.time()
    now = (await provider.get("/state"))["now"]
    apart = max(before - now, now - time.time())
    assert apart < CLOCK_SECONDS, f"the provider's clock is {apart:.3f} s away: the figures are wrong"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dev.Cluster]:
    """Three brokers and a registry."""
    with dev.start(tmp_path_factory.mktemp("brokers"), kafka_port=0, registry_port=0, brokers=3) as running:
        yield running


async def hand_over(place: Place, kind: str, times: int) -> dict[str, Any]:
    """Measure an event so many times, and have the whole feed judged."""
    random = Random(f"{SEED} {kind}")
    settings = {"seed": SEED, "rate": RATE, "limits_scale": SCALE, "second": "replace", "ping_seconds": 1}
    provider = await Provider.start(place, **settings, compression="none")  # which would take it longer
    state = await provider.get("/state")
    with Watcher(place, state["origin"]) as watcher:
        pair = Pair(place, provider, watcher)
        pair.start()
        await until(lambda: "Live" in place.bridges[-1].states(), "live", so_far=place.bridges[-1].text)
        watcher.begin()
        pair.start()
        found = []
        for number in range(times):
            found.append(await pair.measure(kind, random))
            print(json.dumps({"event": kind, "number": number + 1, **found[-1]._asdict()}), flush=True)
        await pair.steady()
        await same_clock(provider)
        judgement = await judged(place, provider, scale=SCALE, seed=SEED, excused=tuple(pair.excused))
    return {"event": kind, "handovers": [it._asdict() for it in found], **judgement.json()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
@pytest.mark.parametrize("kind", GOALS)
async def test_handover(kind: str, cluster: dev.Cluster) -> None:
    """Nothing is lost, doubled or undeclared; how long it took is a figure, and no condition."""
    rounds = Rounds("handover", {"times": TIMES, "seed": SEED})
    if (result := rounds.result(kind)) is None:
        directory = rounds.begin(kind)
        place = Place(cluster, f"handover-{kind.lower()}", directory, start=start_cold)
        try:
            result = await hand_over(place, kind, TIMES)
        finally:
            for bridge in place.bridges:
                bridge.kill()
        rounds.finish(kind, result)
    handovers = [Handover(**it) for it in result["handovers"]]
    figures = {"campaign": "handover", **result, "handovers": len(handovers), **summary(handovers)}
    print(json.dumps(figures), flush=True)
    assert result["anomalies"] == {}
    results = {kind: it for kind in GOALS if (it := rounds.result(kind)) and not it["anomalies"]}
    if TIMES >= FULL and len(results) == len(GOALS):
        write(results)


def summary(handovers: Sequence[Handover]) -> dict[str, Any]:
    """Return median and 99th percentile of each figure, seconds; those that are known."""
    columns = {
        name: sorted(it for handover in handovers if (it := getattr(handover, name)) is not None)
        for name in Handover._fields
    }
    return {
        name: {"p50": share(values, 0.5), "p99": share(values, 0.99)}
        for name, values in columns.items()
        if values
    }


def share(values: Sequence[float], part: float) -> float:
    """Return the smallest value that this part of the sorted values does not exceed."""
    return values[max(0, ceil(part * len(values)) - 1)]


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures of all events as a table in Markdown."""
    rows = []
    for kind, goal in GOALS.items():
        handovers = [Handover(**it) for it in results[kind]["handovers"]]
        found = summary(handovers)
        cells = [
            " / ".join(f"{it:.2f}" for it in found[name].values()) if name in found else "–"
            for name in Handover._fields
        ]
        if (changes := sum(it.connected is not None for it in handovers)) not in (0, len(handovers)):
            cells[0] += f" (of {changes})"
        met = "–" if goal is None else f"{sum(it.visible <= goal for it in handovers)} within {goal:g} s"
        rows.append([EVENTS[kind], f"{len(handovers)}", *cells, met])
    head = ["event", "times", "connected, s", "first new bet visible, s", "longest wait of a bet, s", "goal"]
    return report.table(head, rows)


def write(results: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the table into the page."""
    cells = f"Each cell: median / 99th percentile, which is the longest of {FULL}."
    report.put(PAGE, "handover", f"{table(results)}\n{cells} {results['SIGTERM']['machine']}\n")
