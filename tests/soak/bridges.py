"""Two bridges that are measured, and what happens to them each minute."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from bridge.config.kafka import HEARTBEAT_MS, SESSION_MS
from tests.chaos.provider import Provider
from tests.harness import PATIENCE, Bridge, Place, until
from tests.judge import Excuse
from tests.soak.course import Sample

REBALANCE_MINUTES = 10
NOTICE_SECONDS = 5.0
"""How long a former owner that was resumed may stay connected."""
CALM_SECONDS = 10.0
"""After so long without another record nothing is on its way any more."""


class Soaked:
    """A bridge that is measured."""

    def __init__(self, name: str, bridge: Bridge) -> None:
        self.name, self.bridge = name, bridge
        self._commits = (0.0, 0.0)
        """Seconds and number at the last sample."""

    async def metrics(self) -> dict[str, float]:
        """Return its metrics by name, those with labels of their own by name and last label."""
        found = {}
        for family in text_string_to_metric_families((await self.bridge.get("/metrics")).text):
            for sample in family.samples:
                labels = [value for name, value in sample.labels.items() if name != "feed"]
                found[" ".join([sample.name, *labels])] = sample.value
        return found

    async def is_owner(self) -> bool:
        """Return whether it owns the feed and has caught up, as of a second ago."""
        return await self.published() is not None

    async def published(self) -> float | None:
        """Return how many bets are committed; None unless it owns the feed and has caught up."""
        metrics = await self.metrics()
        caught_up = metrics["bridge_state Live"] or metrics["bridge_state Quiet"]
        return metrics["bridge_messages_total published"] if metrics["bridge_leader"] and caught_up else None

    async def sample(self) -> dict[str, Any]:
        """Return what it takes now, and as the owner the mean time of a commit since the last sample."""
        assert self.bridge.process.poll() is None, self.bridge.text()[-2000:]
        metrics = await self.metrics()
        found = {"owner": metrics["bridge_leader"] == 1, **taken(Path("/proc", str(self.bridge.process.pid)))}
        name = "bridge_commit_duration_seconds"
        before, now = self._commits, (metrics[f"{name}_sum"], metrics[f"{name}_count"])
        self._commits = now
        if now[1] < before[1]:  # it counts anew in each term
            before = (0.0, 0.0)
        if found["owner"] and now[1] > before[1] and "bridge_dedup_entries" in metrics:
            found["entries"] = metrics["bridge_dedup_entries"] / 1000
            found["commit_ms"] = round(1000 * (now[0] - before[0]) / (now[1] - before[1]), 2)
        return found


def taken(process: Path) -> dict[str, float]:
    """Return what a process takes, by its directory in /proc."""
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return {
        "rss_mb": round(int(status["VmRSS"].split()[0]) / 1024, 1),
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": int(status["Threads"]),
    }


def limits_scale(minute: float) -> int:
    """How many times faster limits run at both ends: they allow five connections in half a minute."""
    return round(600 / minute)


class Soak:
    """The provider, two bridges, and what happens to them each `minute`, which may be shorter: seconds."""

    def __init__(self, place: Place, provider: Provider, minute: float) -> None:
        self._place, self._provider, self._minute = place, provider, minute
        self.bridges: list[Soaked] = []
        self.excused: list[Excuse] = []
        self.connections = self.rebalances = self.drops = 0

    def start(self, name: str) -> None:
        """Start a bridge with the session time-out of the product."""
        bridge = self._place.bridge(
            FEED__BASE_URL=self._provider.url,
            LIMITS__SCALE=str(limits_scale(self._minute)),
            KAFKA__SESSION_TIMEOUT_MS=str(SESSION_MS),
            KAFKA__HEARTBEAT_INTERVAL_MS=str(HEARTBEAT_MS),
        )
        self.bridges.append(Soaked(name, bridge))

    async def live(self) -> None:
        """Wait until a bridge is live."""
        [first, *_] = self.bridges
        await until(lambda: "Live" in first.bridge.states(), "live", so_far=first.bridge.text)

    async def minutes(self, messages: int, lines: Path) -> list[Sample]:
        """Let the minutes pass until as many were published. Returns a sample of each."""
        samples: list[Sample] = []
        began = time.monotonic()
        while True:
            await asyncio.sleep(self._minute - (time.monotonic() - began) % self._minute)
            published = (await self._provider.get("/state"))["published"]
            attempts = await self._provider.get("/attempts")
            self.connections = sum(attempt["since"] is not None for attempt in attempts)
            sample = {
                "minute": round((time.monotonic() - began) / self._minute, 2),
                "published": published,
                "connections": self.connections,
                "rebalances": self.rebalances,
                **{bridge.name: await bridge.sample() for bridge in self.bridges},
            }
            samples.append(sample)
            with lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(sample) + "\n")
            print(json.dumps(sample), flush=True)
            if published >= messages:
                return samples
            if len(samples) % REBALANCE_MINUTES == 0:
                await self._rebalance()
            else:
                self.drops += bool(await self._provider.get("/connections"))
                # Every other one without a closing handshake.
                await self._provider.post("/faults/drop", abort=bool(len(samples) % 2))

    async def _rebalance(self) -> None:
        """Stop the owner until the other has taken over."""
        owners = [bridge for bridge in self.bridges if (await bridge.metrics())["bridge_leader"] == 1]
        if len(owners) != 1:  # it is moving by itself
            return
        [owner], at = owners, time.time()
        [other] = (bridge for bridge in self.bridges if bridge is not owner)
        owner.bridge.signal(signal.SIGSTOP)
        deadline = time.monotonic() + PATIENCE
        try:
            while not await other.is_owner():
                assert time.monotonic() < deadline, f"{other.name} has not taken over"
                await asyncio.sleep(0.5)
        finally:
            owner.bridge.signal(signal.SIGCONT)
        while (await owner.metrics())["bridge_leader"]:
            assert time.monotonic() < deadline, f"{owner.name} has not noticed"
            await asyncio.sleep(0.5)
        self.excused.append(Excuse(at, time.time() + NOTICE_SECONDS))
        self.rebalances += 1

    async def settled(self) -> None:
        """Wait until an owner that has caught up has published nothing more for long.

        While another takes over there is silence too, before the rest comes.
        """
        last, still_since, owned_at = -1.0, time.monotonic(), time.monotonic()
        while time.monotonic() < still_since + CALM_SECONDS:
            counts = [count for bridge in self.bridges if (count := await bridge.published()) is not None]
            if counts:
                owned_at = time.monotonic()
            assert time.monotonic() < owned_at + PATIENCE, "no bridge owns the feed and has caught up"
            if not counts or counts[0] != last:
                last, still_since = counts[0] if counts else -1.0, time.monotonic()
            await asyncio.sleep(1)
