"""Two bridges on three brokers, and what happens to them."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import suppress
from datetime import datetime
from random import Random

from confluent_kafka import ElectionType, KafkaException

from bridge.config import FeedSettings
from bridge.config.kafka import HEARTBEAT_MS, SESSION_MS
from bridge_sandbox.cluster.process import Server
from tests.chaos.owners import FEED, Members
from tests.chaos.provider import Provider
from tests.handover.figures import Handover, handover, is_by_owner
from tests.handover.watcher import Watcher
from tests.harness import PATIENCE, Bridge, Place, until
from tests.judge import Excuse

SCALE = 100
"""Time in the limits runs so many times faster at both ends."""
BEHIND_SECONDS = 2.0
"""Once each partition shows bets that are younger, there is no hand-over."""
APART_SECONDS = 12.0
"""From one connection to the next event: by then a limit that runs `SCALE` times faster is free again."""
NOTICE_SECONDS = 1.0
"""Within so long the provider has noticed that a killed owner has gone."""
OBSERVED_SECONDS = {"coordinator": 15.0}
"""How long to look at least: the rest of a broker's session may bring a second stall."""


def excused(kind: str, at: float, closed: float) -> list[Excuse]:
    """Return when a connection may replace another one: while an owner cannot close its own.

    A stopped one has closed it by `closed`. Nothing excuses two bridges whose owner is told to end, or whose
    coordinator dies.
    """
    ends = {"SIGKILL": at + NOTICE_SECONDS, "SIGSTOP": closed}
    return [Excuse(at, ends[kind])] if kind in ends else []


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
