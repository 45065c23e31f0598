"""A report of a run that found one thing of two, for what is made of reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bridge.snapshots.model import Counts, Snapshot
from bridge.snapshots.results import Covered, Report

AT = 1_790_000_000.0
SNAPSHOT = Snapshot(
    job="translations",
    id="20260921T141320.000000Z-0badcafe",
    started_at=AT,
    finished_at=AT + 2.5,
    refreshed_at=AT - 3600,
    complete=True,
    languages=("en", "sv"),
    counts={"sport": Counts(12, 3, 1), "event": Counts(2_000, 0, 0)},
    ends={1: 20, 0: 7},
)
COVERAGE = [
    Covered("sport", 4, {"en": 4, "sv": 4}),
    Covered("event", 2_000, {"en": 2_000, "sv": 1_999}, ["event:7"]),
]


def report(*, coverage: list[Covered] | None = None, notes: tuple[str, ...] = (), **snapshot: Any) -> Report:
    """With another snapshot, coverage or notes."""
    return Report(
        replace(SNAPSHOT, **snapshot),
        full=False,
        bets=1_234,
        requests=56,
        seconds=2.0,
        coverage=COVERAGE if coverage is None else coverage,
        notes=list(notes),
    )
