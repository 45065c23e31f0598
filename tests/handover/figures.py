"""How long hand-overs took, and the table of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.figures import percentile
from bridge.config.kafka import SESSION_MS
from tests.chaos.rounds import ROOT
from tests.handover.watcher import Sight

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
PAGE = ROOT / "docs" / "reliability.md"


class Handover(NamedTuple):
    """One event, in seconds from it."""

    connected: float | None
    """Until the provider accepted the successor; None if the owner kept its connection."""
    visible: float
    """Until the first new bet was visible: published after the event and, of a successor, written by it."""
    longest: float
    """The longest that a bet published after the event has waited to be visible."""


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


def summary(handovers: Sequence[Handover]) -> dict[str, Any]:
    """Return median and 99th percentile of each figure, seconds; those that are known."""
    columns = {
        name: [it for handover in handovers if (it := getattr(handover, name)) is not None]
        for name in Handover._fields
    }
    return {
        name: {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99)}
        for name, values in columns.items()
        if values
    }


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


def write(results: Mapping[str, Mapping[str, Any]], times: int) -> None:
    """Write the table of so many hand-overs of each event into the page."""
    cells = f"Each cell: median / 99th percentile, which is the longest of {times}."
    report.put(PAGE, "handover", f"{table(results)}\n{cells} {results['SIGTERM']['machine']}\n")
