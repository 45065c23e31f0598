"""What the runs of a snapshot job have done so far: its health, and its metrics for a scraper or a file."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from bridge.config.api import KINDS, Kind
from bridge.errors import SettingsError
from bridge.formatting import format_duration, format_utc
from bridge.observability.exposition import exposition, filled
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
    """What it asks about, or waits for; empty between runs."""
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
        found = self.coverage | {row.kind: row for row in report.coverage}
        # Not changed in place: other threads read it.
        self.last, self.coverage = report, {kind: found[kind] for kind in KINDS if kind in found}
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


def collect(status: JobStatus) -> Iterator[Metric]:
    """Yield the metrics."""
    runs = {"published": status.published, "failed": status.failed}
    yield _by(CounterMetricFamily, "snapshot_runs_total", _RUNS, ["result"], runs)
    for name in ("requests", "written", "removed"):
        what = "Requests to the provider" if name == "requests" else f"Records {name}"
        help_, value = f"{what} by published runs.", getattr(status, name)
        yield CounterMetricFamily(f"bridge_snapshot_{name}_total", help_, value)
    last, coverage = status.last, status.coverage
    published_at = last.snapshot.finished_at if last else status.started_at
    yield GaugeMetricFamily("bridge_snapshot_timestamp_seconds", _FINISHED, published_at)
    if last:
        snapshot = last.snapshot
        values = (snapshot.refreshed_at, snapshot.complete, last.seconds, snapshot.owed)
        for (name, help_), value in zip(_OF_LAST.items(), values, strict=True):
            yield GaugeMetricFamily(f"bridge_snapshot_{name}", help_, value)
        records = {kind: count.records for kind, count in snapshot.counts.items()}
        left_out = Counter(left.endpoint for left in snapshot.left_out)
        yield _by(GaugeMetricFamily, "snapshot_records", "Records in the last snapshot.", ["kind"], records)
        yield _by(GaugeMetricFamily, "snapshot_left_out", _LEFT_OUT, ["endpoint"], left_out)
    shares = {(kind, x): row.share(x) for kind, row in coverage.items() for x in row.named}
    share = "Share of these ids that have a name in the language."
    yield _by(GaugeMetricFamily, "join_ids", _IDS, ["kind"], {kind: x.seen for kind, x in coverage.items()})
    yield _by(GaugeMetricFamily, "join_coverage_ratio", share, ["kind", "language"], shares)


def _by(family: Any, name: str, help_: str, labels: list[str], values: Mapping[Any, float]) -> Metric:
    found: Metric = filled(family(f"bridge_{name}", help_, labels=labels), values)
    return found


_RUNS: Final = "Runs since this process started, by result."
_FINISHED: Final = "Completion time of the last snapshot published by this process; at first its start."
_IDS: Final = (
    "Ids of the kind in the last run that looked any up: all recent ids in a full run, else new ids."
)
_LEFT_OUT: Final = "Entries left out of the last snapshot; an endpoint that answers 403 counts as 1."
_OF_LAST: Final = {
    "refreshed_timestamp_seconds": "Start of the last full run.",
    "complete": "1 if the last snapshot is complete, 0 if it is partial.",
    "seconds": "Duration of the last snapshot, from its first request to its commit.",
    "owed": "Entries that the provider left out; the next run asks for them again.",
}


def must_be_writable(file: Path) -> None:
    """Raise SettingsError if `write` would fail. Leaves no file behind."""
    with _draft(file) as draft:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        draft.touch()
        draft.unlink()


def write(status: JobStatus, file: Path) -> None:
    """Write the metrics to a file for a textfile collector, in one step. Raises SettingsError.

    Metrics of the process are not written: the collector has its own.
    """
    body, _ = exposition(collect(status), {"snapshot": status.job}, process=False)
    with _draft(file) as draft:
        draft.write_bytes(body)
        draft.replace(file)


@contextmanager
def _draft(file: Path) -> Iterator[Path]:
    """Yield the path of a draft beside the file, which it replaces. Turns an OSError into SettingsError."""
    try:
        yield file.parent / f"{file.name}.{os.getpid()}"
    except OSError as error:
        raise SettingsError(
            f"--metrics-file: cannot write {file}: {error.strerror}. Name a file in a directory that exists "
            "and is writable."
        ) from None
