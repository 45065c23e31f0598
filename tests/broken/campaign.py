"""Plays drills with broken bridges until the judge finds the fault, and keeps what came out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import replaced, table
from bridge.sandbox import cluster as dev
from tests.broken.copies import Starter, broken
from tests.broken.drills import DRILLS, play
from tests.broken.fault import Fault
from tests.broken.faults import FAULTS
from tests.chaos.rounds import ROOT, Rounds
from tests.harness import Place
from tests.judge import Report

PAGE = ROOT / "docs" / "reliability.md"
ROUNDS = 3
"""Most often a drill is played, with another seed each time, until the fault is found."""


async def found(
    fault: Fault, drill: str, sound: Path, cluster: dev.Cluster, directory: Path, prefix: str, seed: int = 1
) -> tuple[Report, dict[str, Any]]:
    """Play a drill with a fault until one of the expected anomalies is found; a sound bridge once.

    Returns the last report, and the line of the campaign.
    """
    began = time.monotonic()
    copy = broken(fault, sound, directory / "copy")
    for number in range(ROUNDS if fault.patches else 1):
        work = directory / f"round-{number}"
        work.mkdir()
        place = Place(cluster, f"{prefix}-{number}", work)
        try:
            report = await play(DRILLS[drill], place, Starter(copy, fault), seed + number)
        finally:
            for bridge in place.bridges:
                bridge.kill()
        if any(anomaly in report.anomalies for anomaly in fault.expected):
            break
    line = {
        "campaign": "broken",
        "fault": fault.name,
        "drill": drill,
        "seed": seed,
        "rounds": number + 1,
        "expected": [str(anomaly) for anomaly in fault.expected],
        "anomalies": {str(anomaly): it.count for anomaly, it in report.anomalies.items()},
        "first": {str(anomaly): it.first for anomaly, it in report.anomalies.items()},
        "figures": dict(report.figures),
        "took_seconds": round(time.monotonic() - began),
    }
    return report, line


def is_found(line: Mapping[str, Any]) -> bool:
    """Whether the line of a broken bridge says that it was found."""
    return any(anomaly in line["anomalies"] for anomaly in line["expected"])


def slug(name: str) -> str:
    """Return the name of a fault or a drill as that of a directory and of topics."""
    return "".join(c if c.isalnum() else "-" for c in name)


def write_table(rounds: Rounds) -> None:
    """Write the results of all faults into the page, once all were played by this code."""
    lines = {name: line for name in FAULTS if (line := rounds.result(slug(name))) is not None}
    if len(lines) == len(FAULTS):
        PAGE.write_text(replaced(PAGE.read_text("utf-8"), "broken", table_of(lines)), "utf-8")


def table_of(lines: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the lines of the faults as a table in Markdown."""
    rows = [_row(FAULTS[name], line) for name, line in lines.items()]
    text = table(["fault", "what is wrong", "drill", "found as", "after"], rows)
    return f"{text}\n{sum(map(is_found, lines.values()))} of {len(FAULTS)} found.\n"


def _row(fault: Fault, line: Mapping[str, Any]) -> list[str]:
    shown = [anomaly for anomaly in line["expected"] if anomaly in line["anomalies"]]
    return [fault.name, fault.wrong, fault.drill, ", ".join(shown) or "–", f"{line['took_seconds']} s"]
