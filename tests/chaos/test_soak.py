"""Ten million messages at a steady rate, a reconnection each minute, and another owner every ten minutes.

Two bridges live as long as the campaign. Every ten minutes the owner is stopped (SIGSTOP) until the other has
taken over, so that each is the owner and the standby again and again: what a term leaves behind would add up.
Each minute is a line of JSON in `.chaos/soak/run/samples.jsonl`. `MINUTE` shortens the minute, in seconds.
A soak that was interrupted begins anew.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import report
from bridge_sandbox import cluster as dev
from tests.chaos.owners import judged
from tests.chaos.provider import Provider
from tests.chaos.rounds import ROOT, Rounds
from tests.harness import Place
from tests.processes import start_cold
from tests.soak.bridges import Soak, limits_scale
from tests.soak.course import pictures, rising, table, unknown

FULL = 10_000_000
MESSAGES = int(os.environ.get("MESSAGES", FULL))
RATE = int(os.environ.get("RATE", "2500"))
MINUTE = float(os.environ.get("MINUTE", "60"))
SEED = int(os.environ.get("SEED", "1"))
JUDGE_MEGABYTES = 512
"""The peak of this process, which judges, is to be below, for whatever number of messages."""
ENOUGH = 30
"""Minutes of 60 s; of fewer or shorter ones nobody can say whether they are flat."""
PAGE = ROOT / "benchmarks" / "campaigns.md"
PLOTS = ROOT / "benchmarks" / "campaigns"


async def soak(cluster: dev.Cluster, directory: Path) -> dict[str, Any]:
    """Run it and have it judged. Returns its result."""
    began = time.monotonic()
    place = Place(cluster, "soak", directory, start=start_cold)
    try:
        scale = limits_scale(MINUTE)
        settings = {"seed": SEED, "rate": RATE, "limits_scale": scale, "second": "replace"}
        provider = await Provider.start(place, **settings, compression="none")  # which would take it longer
        run = Soak(place, provider, MINUTE)
        run.start("A")
        await run.live()
        run.start("B")
        samples = await run.minutes(MESSAGES, directory / "samples.jsonl")
        judgement = await judged(
            place, provider, scale=scale, seed=SEED, excused=tuple(run.excused), settled=run.settled
        )
    finally:
        for bridge in place.bridges:
            bridge.kill()
    return {
        "samples": samples,
        "connections": run.connections,
        "rebalances": run.rebalances,
        "drops": run.drops,
        **judgement.json(),
        "judge_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "took_seconds": round(time.monotonic() - began),
    }


def lacking(result: Mapping[str, Any]) -> list[str]:
    """Return which events were too few for the minutes, in words: then nothing could add up."""
    minutes = len(result["samples"])
    least = {"rebalances": minutes // 12, "connections": minutes // 2}
    return [f"{result[name]} {name} of {most}" for name, most in least.items() if result[name] < most]


def needless(result: Mapping[str, Any]) -> int:
    """Return how many attempts to connect nobody had caused, above two: the owner may move by itself."""
    caused: int = 1 + result["drops"] + result["rebalances"]
    return max(0, int(result["figures"]["attempts"]) - caused - 2)


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
    assert needless(result) == 0
    assert not any(not_flat.values()) or not enough, not_flat
    if MESSAGES >= FULL and enough:
        write(result)
