"""Plays drills with broken bridges until the judge finds the fault, and says what came out.

What counts is what a bridge writes that works apart from its fault. One that crashes, or publishes hardly
anything, also loses bets.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import put
from bridge_sandbox import cluster as dev
from tests.broken.drills import DRILLS, play
from tests.broken.fault import SOUND, Fault
from tests.broken.faults import FAULTS
from tests.chaos.rounds import ROOT, Rounds
from tests.harness import Place
from tests.judge import Anomaly

PAGE = ROOT / "benchmarks" / "campaigns.md"
ROUNDS = 3
"""Most often a drill is played, with another seed each time: until a fault is found, or something of none."""


Line = Mapping[str, Any]


async def found(
    fault: Fault,
    drill: str,
    cluster: dev.Cluster,
    directory: Path,
    prefix: str,
    *,
    seed: int = 1,
    rounds: int = ROUNDS,
) -> Line:
    """Play a drill until a fault is found, the sound bridge is not clean, or a process ends by itself.

    Returns the line of the campaign about the last round.
    """
    began = time.monotonic()
    for number in range(rounds):
        work = directory / f"round-{number}"
        work.mkdir()
        place = Place(cluster, f"{prefix}-{number}", work)
        try:
            report, ended, unmet = await play(DRILLS[drill], place, fault, seed + number)
        finally:
            for bridge in place.bridges:
                bridge.kill()
        line = {
            "campaign": "broken",
            "fault": fault.name,
            "drill": drill,
            "seed": seed,
            "rounds": number + 1,
            "expected": [str(anomaly) for anomaly in fault.expected],
            "anomalies": {str(anomaly): it.count for anomaly, it in report.anomalies.items()},
            "first": {str(anomaly): it.first for anomaly, it in report.anomalies.items()},
            "ended": ended,
            "unmet": unmet,
            "figures": dict(report.figures),
            "took_seconds": round(time.monotonic() - began),
        }
        if ended or (not is_clean(line) if fault is SOUND else is_found(fault, line)):
            break
    return line


def is_clean(line: Line) -> bool:
    """Whether the line says that nothing was found of a bridge, and that it worked."""
    return not line["anomalies"] and not line["unmet"] and works(SOUND, line)


def is_found(fault: Fault, line: Line) -> bool:
    """Whether the line says that a fault was found in a bridge that works otherwise."""
    return bool(shown(fault, line)) and works(fault, line)


def shown(fault: Fault, line: Line) -> list[Anomaly]:
    """Return the expected anomalies that were found, each with an example that the fault explains."""
    return [
        anomaly
        for anomaly, text in fault.expected.items()
        if anomaly in line["anomalies"] and text in line["first"][anomaly]
    ]


def works(fault: Fault, line: Line) -> bool:
    """Whether no process ended by itself, and most bets were published; as far as the fault allows it."""
    figures = line["figures"]
    enough = figures["records"] >= fault.records * figures["bets"]
    return enough and not line["ended"]


def slug(name: str) -> str:
    """Return the name of a fault or a drill as that of a directory and of topics."""
    return "".join(c if c.isalnum() else "-" for c in name)


def write_summary(rounds: Rounds) -> None:
    """Write the results of all faults into the page, once all were played by this code, and the sound bridge.

    An anomaly that the sound one shows as well finds nothing.
    """
    lines = {name: line for name in FAULTS if (line := rounds.result(slug(name))) is not None}
    sound = [line for name in DRILLS if (line := rounds.result(slug(f"sound {name}"))) and is_clean(line)]
    if len(lines) == len(FAULTS) and len(sound) == len(DRILLS):
        put(PAGE, "broken", summary_of(lines))


def summary_of(lines: Mapping[str, Line]) -> str:
    """Return how many of the faults were found and after how long, and the names of the others."""
    seconds = [line["took_seconds"] for name, line in lines.items() if is_found(FAULTS[name], line)]
    missed = [f"Not found: {name}.\n" for name, line in lines.items() if not is_found(FAULTS[name], line)]
    return "".join(
        [f"{len(seconds)} of {len(lines)} found, after {min(seconds)} to {max(seconds)} s.\n", *missed]
    )
