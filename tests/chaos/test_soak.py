"""Ten million messages at a steady rate, a reconnection each minute, and another owner every ten minutes.

Two bridges live as long as the campaign. Every ten minutes the owner is stopped (SIGSTOP) until the other has
taken over, so that each is the owner and the standby again and again: what a term leaves behind would add up.
Each minute is a line of JSON in `.chaos/soak/run/samples.jsonl`. `MINUTE` shortens the minute, in seconds.
A soak that was interrupted begins anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from benchmarks import plot, report
from bridge.kafka.clients import HEARTBEAT_MS, SESSION_MS
from bridge.sandbox import cluster as dev
from tests.chaos.owners import judged
from tests.chaos.provider import Provider
from tests.chaos.rounds import ROOT, Rounds
from tests.harness import PATIENCE, Bridge, Place, until
from tests.judge import Excuse
from tests.processes import start_cold

FULL = 10_000_000
MESSAGES = int(os.environ.get("MESSAGES", FULL))
RATE = int(os.environ.get("RATE", "2500"))
MINUTE = float(os.environ.get("MINUTE", "60"))
SEED = int(os.environ.get("SEED", "1"))
SCALE = round(600 / MINUTE)
"""Time in the limits runs so many times faster at both ends: they allow five connections in half a minute."""
REBALANCE_MINUTES = 10
NOTICE_SECONDS = 5.0
"""How long a former owner that was resumed may stay connected."""
CALM_SECONDS = 10.0
"""After so long without another record nothing is on its way any more."""
JUDGE_MEGABYTES = 512
"""The peak of this process, which judges, is to be below, for whatever number of messages."""
ENOUGH = 30
"""Minutes of 60 s; of fewer or shorter ones nobody can say whether they are flat."""
PAGE = ROOT / "docs" / "reliability.md"
PLOTS = ROOT / "docs" / "reliability"


class Quantity(NamedTuple):
    """What is measured each minute."""

    name: str
    title: str
    unit: str
    most: float | None
    """At most so many times the median of the middle third may be that of the last: then it is flat.

    None: it is counted, and the least of the last third must not be above that of the middle third. One that
    is left behind by each term is hardly seen in a ratio.
    """
    of_owner: bool = False
    """Whether only an owner has it."""

    @property
    def statistic(self) -> str:
        """What is compared."""
        return "least" if self.most is None else "median"


QUANTITIES = (
    Quantity("rss_mb", "resident memory", "MB", 1.05),
    Quantity("descriptors", "descriptors", "", None),
    Quantity("threads", "threads", "", None),
    Quantity("entries", "entries of the deduplicator", "thousand", 1.1, of_owner=True),
    # Commits wait for a machine that is shared with the broker, the provider and whatever else it does.
    Quantity("commit_ms", "time of a commit", "ms", 1.5, of_owner=True),
)
Sample = Mapping[str, Any]


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


class Soak:
    """The provider, two bridges, and what happens to them."""

    def __init__(self, place: Place, provider: Provider) -> None:
        self._place, self._provider = place, provider
        self.bridges: list[Soaked] = []
        self.excused: list[Excuse] = []
        self.connections = self.rebalances = 0

    def start(self, name: str) -> None:
        """Start a bridge with the session time-out of the product."""
        bridge = self._place.bridge(
            FEED__BASE_URL=self._provider.url,
            LIMITS__SCALE=str(SCALE),
            KAFKA__SESSION_TIMEOUT_MS=str(SESSION_MS),
            KAFKA__HEARTBEAT_INTERVAL_MS=str(HEARTBEAT_MS),
        )
        self.bridges.append(Soaked(name, bridge))

    async def live(self) -> None:
        """Wait until a bridge is live."""
        [first, *_] = self.bridges
        await until(lambda: "Live" in first.bridge.states(), "live", so_far=first.bridge.text)

    async def minutes(self, lines: Path) -> list[Sample]:
        """Let the minutes pass until enough was published. Returns a sample of each."""
        samples: list[Sample] = []
        began = time.monotonic()
        while True:
            await asyncio.sleep(MINUTE - (time.monotonic() - began) % MINUTE)
            published = (await self._provider.get("/state"))["published"]
            attempts = await self._provider.get("/attempts")
            self.connections = sum(attempt["since"] is not None for attempt in attempts)
            sample = {
                "minute": round((time.monotonic() - began) / MINUTE, 2),
                "published": published,
                "connections": self.connections,
                "rebalances": self.rebalances,
                **{bridge.name: await bridge.sample() for bridge in self.bridges},
            }
            samples.append(sample)
            with lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(sample) + "\n")
            print(json.dumps(sample), flush=True)
            if published >= MESSAGES:
                return samples
            if len(samples) % REBALANCE_MINUTES == 0:
                await self._rebalance()
            else:
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


async def soak(cluster: dev.Cluster, directory: Path) -> dict[str, Any]:
    """Run it and have it judged. Returns its result."""
    began = time.monotonic()
    place = Place(cluster, "soak", directory, start=start_cold)
    try:
        settings = {"seed": SEED, "rate": RATE, "limits_scale": SCALE, "second": "replace"}
        provider = await Provider.start(place, **settings, compression="none")  # which would take it longer
        run = Soak(place, provider)
        run.start("A")
        await run.live()
        run.start("B")
        samples = await run.minutes(directory / "samples.jsonl")
        judgement = await judged(
            place, provider, scale=SCALE, seed=SEED, excused=tuple(run.excused), settled=run.settled
        )
    finally:
        for bridge in place.bridges:
            bridge.kill()
    return {
        "samples": samples,
        "connections": run.connections,
        "rebalances": run.rebalances,
        **judgement.json(),
        "judge_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "took_seconds": round(time.monotonic() - began),
    }


class Course(NamedTuple):
    """A quantity of a bridge in a role in the last two thirds of the minutes: the median or least of each."""

    middle: float
    last: float

    def is_flat(self, most: float | None) -> bool:
        """Whether the last third is not above the middle one, by more than the quantity may be."""
        return self.last <= self.middle * (1 if most is None else most)


def points(samples: Sequence[Sample], name: str, role: str, quantity: Quantity) -> list[tuple[float, float]]:
    """Return the minutes and values of a bridge in a role."""
    is_owner = role == "owner"
    return [
        (sample["minute"], sample[name][quantity.name])
        for sample in samples
        if sample[name]["owner"] is is_owner and quantity.name in sample[name]
    ]


def courses(samples: Sequence[Sample]) -> dict[tuple[Quantity, str, str], Course | None]:
    """Return the course of each quantity of each bridge in each role; None if it had none in both thirds."""
    third = samples[-1]["minute"] / 3
    found = {}
    for quantity in QUANTITIES:
        statistic = min if quantity.most is None else median
        for name in ("A", "B"):
            for role in ("owner",) if quantity.of_owner else ("owner", "standby"):
                line = points(samples, name, role, quantity)
                middle = [value for minute, value in line if third < minute <= 2 * third]
                last = [value for minute, value in line if minute > 2 * third]
                found[quantity, name, role] = (
                    Course(statistic(middle), statistic(last)) if middle and last else None
                )
    return found


def rising(samples: Sequence[Sample]) -> list[str]:
    """Return what is not flat, in words."""
    return [
        f"{quantity.title} of {name} as {role}: {course.middle:g} → {course.last:g} {quantity.unit}".strip()
        for (quantity, name, role), course in courses(samples).items()
        if course and not course.is_flat(quantity.most)
    ]


def unknown(samples: Sequence[Sample]) -> list[str]:
    """Return what was not measured in both thirds, and so is not known to be flat, in words."""
    return [
        f"{quantity.title} of {name} as {role}"
        for (quantity, name, role), course in courses(samples).items()
        if course is None
    ]


def lacking(result: Mapping[str, Any]) -> list[str]:
    """Return which events were too few for the minutes, in words: then nothing could add up."""
    minutes = len(result["samples"])
    least = {"rebalances": minutes // 12, "connections": minutes // 2}
    return [f"{result[name]} {name} of {most}" for name, most in least.items() if result[name] < most]


def table(samples: Sequence[Sample]) -> str:
    """Return the courses as a table in Markdown."""
    rows = [
        [
            f"{quantity.statistic} of {quantity.title} of {name} as {role}"
            + (f", {quantity.unit}" if quantity.unit else ""),
            *(f"{value:,.1f}" for value in course),
            f"{course.last / course.middle:.2f}",
            f"{quantity.most or 1:g}",
        ]
        if course
        else [f"{quantity.title} of {name} as {role}", "not measured", "", "", ""]
        for (quantity, name, role), course in courses(samples).items()
    ]
    return report.table(["", "middle third", "last third", "ratio", "at most"], rows)


def pictures(samples: Sequence[Sample]) -> dict[str, str]:
    """Return a plot of each quantity over the minutes, by its name."""
    drawn = {}
    for quantity in QUANTITIES:
        series = {
            f"{name} {role}": line
            for name in ("A", "B")
            for role in ("owner", "standby")
            if (line := points(samples, name, role, quantity))
        }
        if series:
            title = f"Soak: {quantity.title}"
            drawn[f"soak-{quantity.name}"] = plot.lines(title, ("minutes", quantity.unit), series)
    return drawn


def write(result: Mapping[str, Any]) -> None:
    """Write table and plots into the page."""
    samples = result["samples"]
    PLOTS.mkdir(exist_ok=True)
    drawn = pictures(samples)
    for name, svg in drawn.items():
        (PLOTS / f"{name}.svg").write_text(svg, "utf-8")
    links = "".join(f"\n![{name}]({PLOTS.name}/{name}.svg)\n" for name in drawn)
    extent = (
        f"{result['figures']['published']:,} messages at {RATE:,}/s, {len(samples)} minutes, "
        f"{result['connections']} connections, {result['rebalances']} changes of the owner.\n"
        f"The process that judged them took at most {result['judge_megabytes']} MB."
    )
    content = f"{table(samples)}{links}\n{extent}\n{result['machine']}\n"
    report.put(PAGE, "soak", content)


async def test_soak() -> None:
    """The judge finds nothing, and nothing grows."""
    extent = {"messages": MESSAGES, "rate": RATE, "minute": MINUTE, "seed": SEED}
    rounds = Rounds("soak", extent)
    if (result := rounds.result("run")) is None:
        directory = rounds.begin("run")
        data = directory / "cluster"
        with dev.start(data, kafka_port=0, registry_port=0) as cluster:
            result = await soak(cluster, directory)
        if result["clean"]:
            shutil.rmtree(data)  # gigabytes
        rounds.finish("run", result)
    samples = result["samples"]
    not_flat = {"rises": rising(samples), "not measured": unknown(samples)}
    enough = len(samples) >= ENOUGH and MINUTE >= 60
    figures = {name: value for name, value in result.items() if name != "samples"}
    print(json.dumps({"campaign": "soak", **extent, **figures, **not_flat}), flush=True)
    print(table(samples), flush=True)
    assert result["clean"], result["anomalies"]
    assert result["judge_megabytes"] < JUDGE_MEGABYTES
    assert result["figures"]["published"] >= MESSAGES
    assert lacking(result) == []
    assert not any(not_flat.values()) or not enough, not_flat
    if MESSAGES >= FULL and enough:
        write(result)
