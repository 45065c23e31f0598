"""The status of a snapshot job: what its runs have done so far, and its health."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bridge.config.api import KINDS, Kind
from bridge.formatting import format_duration, format_utc
from bridge.observability.health import Health, HealthStatus
from bridge.snapshots.report import Covered, Report

STUCK_SECONDS: Final = 4_200.0
"""A run without progress for this time is stuck. A provider may ask for a pause of an hour."""
LATE_SECONDS: Final = 60.0
ITS_TURN: Final = "waiting for its turn"
"""The step of a run that waits for the lock."""


@dataclass(slots=True)
class JobStatus:
    """The status of one process. Times are Unix seconds."""

    job: str
    at: float
    """When it last made progress; at first when the process started."""
    doing: str = ""
    """What it fetches, or waits for; empty between runs."""
    rests_until: float | None = None
    """When the next run is due; None during a run."""
    trouble: str = ""
    """Why the run that is under way cannot go on, such as Kafka not answering; empty if it can."""
    last: Report | None = None
    """The last snapshot that it published."""
    coverage: dict[Kind, Covered] = field(default_factory=dict)
    """Coverage of each kind in the last run that looked any of it up: few runs see a new sport."""
    failure: str = ""
    """Why the last run failed; empty if it did not."""
    published: int = 0
    failed: int = 0
    written: int = 0
    removed: int = 0
    requests: int = 0
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.at

    @classmethod
    def of(cls, report: Report) -> JobStatus:
        """Return the status of a process that makes this one snapshot."""
        status = cls(report.snapshot.job, at=report.snapshot.finished_at)
        status.publish(report)
        return status

    def begin(self, now: float) -> None:
        """A run begins."""
        self.at, self.doing, self.trouble, self.rests_until = now, "", "", None

    def progress(self, now: float, what: str) -> None:
        """The run is at this step."""
        self.at, self.doing = now, what
        if what != ITS_TURN:  # which it waits for while Kafka is away, too
            self.trouble = ""

    def rest(self, until: float) -> None:
        """The run has ended, and the next one is due at this time."""
        self.doing, self.rests_until = "", until

    def publish(self, report: Report) -> None:
        """Count a run that published."""
        self.last = report
        found = self.coverage | {row.kind: row for row in report.coverage}
        # Not changed in place: other threads read it.
        self.coverage = {kind: found[kind] for kind in KINDS if kind in found}
        self.failure = ""
        self.published += 1
        self.written += report.written
        self.removed += report.removed
        self.requests += report.requests

    def fail(self, reason: str) -> None:
        """Count a run that failed."""
        self.failure = reason
        self.failed += 1

    def health(self, now: float) -> Health:
        """Healthy is a job that makes progress or rests, ready one whose last run has published."""
        stuck, last = self._stuck(now), self.last and self.last.snapshot
        unready = stuck or self.failure or ("" if last else "no snapshot is published yet")
        report = {
            "job": self.job,
            "doing": self.doing,
            "snapshot": last and last.id,
            "finishedAt": last and format_utc(last.finished_at),
            "complete": last and last.complete,
            "nextAt": None if self.rests_until is None else format_utc(self.rests_until),
        }
        healthy = HealthStatus(not stuck, stuck or self.failure)
        return Health(healthy, HealthStatus(not unready, unready), report)

    def _stuck(self, now: float) -> str:
        if self.rests_until is not None:
            late = now - self.rests_until
            begun = f"the next run should have begun {format_duration(late)} ago"
            return begun if late > LATE_SECONDS else ""
        still = now - self.at
        return f"no progress for {format_duration(still)}" if still > STUCK_SECONDS else ""
