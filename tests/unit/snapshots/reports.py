"""Reports of runs that found one thing of two, and jobs that have made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bridge.observability.endpoints import Page
from bridge.observability.status_page import status_page
from bridge.snapshots.model import NO_RIGHT, Counts, Omission, Snapshot
from bridge.snapshots.report import Covered, Report
from bridge.snapshots.status import ITS_TURN, JobStatus
from bridge.snapshots.view import JobView

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


LATER = AT + 60.0


def _job(found: Report | None, **changes: Any) -> JobStatus:
    status = JobStatus(found.snapshot.job if found else "translations", at=LATER - 1)
    if found:
        status.publish(found)
    return replace(status, rests_until=LATER + 840.0, **changes)


LEFT_OUT = (
    Omission("/api/translations/all/{eventId}/markets", "90210", "HTTP 500 after 5 attempts"),
    Omission("/api/translations/{lang}/sports", "sv", "the answer ends in the middle"),
)
NO_RIGHTS = ("/api/translations/templates/selections",)
PARTIAL = report(complete=False, left_out=LEFT_OUT, owed=2)
TOO_LARGE = Omission("", "sport:3", "1,200,000 bytes of names, more than Kafka's 1,000,000")
JOBS = {
    "job-complete": _job(report()),
    "job-running": replace(_job(report(), doing="markets"), rests_until=None),
    "job-partial": _job(PARTIAL),
    "job-forbidden": _job(
        report(complete=False, left_out=(Omission(NO_RIGHTS[0], None, NO_RIGHT),), forbidden=NO_RIGHTS)
    ),
    "job-too-large": _job(report(complete=False, left_out=(*LEFT_OUT, TOO_LARGE), owed=3)),
    "job-narrowed": _job(report(complete=False, owed=235, coverage=[])),
    "job-failed": _job(report(), failed=1, failure="cannot reach api.example.com: Connection refused"),
    "job-first-run": replace(_job(None, doing=ITS_TURN), rests_until=None),
    "job-retrying": replace(
        _job(report(), doing="publishing", trouble="no broker answers"), rests_until=None
    ),
    "job-currencies": _job(report(job="currencies", coverage=[], counts={"Fiat": Counts(31, 31)})),
    "job-late": replace(_job(report()), rests_until=LATER - 900),
}
"""Jobs in each state that their status page tells apart, at LATER."""


def pages(status: JobStatus, now: float = LATER) -> Mapping[str, Page]:
    """Return the status page of a job, its files and its stream."""
    return status_page("snapshots", lambda: JobView(status, now))
