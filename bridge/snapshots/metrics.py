"""The metrics of the snapshot jobs, declared once with their meaning: what a job has done so far."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bridge.errors import SettingsError
from bridge.observability.metrics import Declared, Samples, exposed
from bridge.snapshots.results import Covered, Report

STILL_SECONDS: Final = 4_200.0
"""A run of which nothing is heard for so long is stuck. A provider may ask for an hour's pause."""
LATE_SECONDS: Final = 60.0


@dataclass(slots=True)
class JobStatus:
    """What a process has seen of its job. Moments are Unix seconds."""

    job: str
    at: float
    """When it last moved."""
    doing: str = ""
    """What it is asking about, or waiting for."""
    rests_until: float | None = None
    """When the next run is due; None while one is under way."""
    last: Report | None = None
    """The last snapshot that it published."""
    coverage: list[Covered] = field(default_factory=list)
    """Of the last run that read bets: one without any says nothing of it."""
    failure: str = ""
    """Why the last run failed; empty when it did not."""
    published: int = 0
    failed: int = 0
    written: int = 0
    removed: int = 0
    requests: int = 0

    @classmethod
    def of(cls, report: Report) -> JobStatus:
        """Of a process that makes this one snapshot."""
        seen = cls(report.snapshot.job, at=report.snapshot.finished_at)
        seen.publish(report)
        return seen

    def publish(self, report: Report) -> None:
        """A run came to its end."""
        self.last = report
        self.coverage = report.coverage or self.coverage
        self.failure = ""
        self.published += 1
        self.written += report.written
        self.removed += report.removed
        self.requests += report.requests

    def fail(self, reason: str) -> None:
        """A run failed."""
        self.failure = reason
        self.failed += 1

    def stuck(self, now: float) -> str:
        """Why it will not go on by itself; empty while it does."""
        if self.rests_until is not None:
            late = now - self.rests_until
            return f"the next run should have begun {late:.0f} s ago" if late > LATE_SECONDS else ""
        still = now - self.at
        return f"nothing has happened for {still:.0f} s" if still > STILL_SECONDS else ""


def _last(read: Callable[[Report], float | None]) -> Callable[[JobStatus, float], Samples]:
    return lambda seen, now: [((), None if seen.last is None else read(seen.last))]


def _runs(seen: JobStatus, now: float) -> Samples:
    return [(("published",), seen.published), (("failed",), seen.failed)]


def _records(seen: JobStatus, now: float) -> Samples:
    counts = seen.last.snapshot.counts if seen.last else {}
    return [((kind,), count.records) for kind, count in counts.items()]


def _left_out(seen: JobStatus, now: float) -> Samples:
    left = Counter(left.endpoint for left in seen.last.snapshot.left_out) if seen.last else {}
    return [((endpoint,), number) for endpoint, number in sorted(left.items())]


def _ids(seen: JobStatus, now: float) -> Samples:
    return [((row.kind,), row.seen) for row in seen.coverage]


def _covered(seen: JobStatus, now: float) -> Samples:
    return [((row.kind, language), row.share(language)) for row in seen.coverage for language in row.named]


METRICS: Final[tuple[Declared[JobStatus], ...]] = (
    Declared(
        "bridge_snapshot_timestamp_seconds",
        "gauge",
        "When the last snapshot of this process was whole; its age is how old the names may be.",
        (),
        _last(lambda report: report.snapshot.finished_at),
    ),
    Declared(
        "bridge_snapshot_refreshed_timestamp_seconds",
        "gauge",
        "When the last snapshot was begun that asked about everything anew.",
        (),
        _last(lambda report: report.snapshot.refreshed_at),
    ),
    Declared(
        "bridge_snapshot_complete",
        "gauge",
        "1 when the last snapshot was told all that the settings ask for, 0 when it is partial.",
        (),
        _last(lambda report: report.snapshot.complete),
    ),
    Declared(
        "bridge_snapshot_seconds",
        "gauge",
        "How long the last snapshot took, from its first question to its commit.",
        (),
        _last(lambda report: report.seconds),
    ),
    Declared(
        "bridge_snapshot_runs_total",
        "counter",
        "Runs since this process was started, by how they ended.",
        ("result",),
        _runs,
    ),
    Declared(
        "bridge_snapshot_requests_total",
        "counter",
        "Requests to the provider in the published ones of these.",
        (),
        lambda seen, now: [((), seen.requests)],
    ),
    Declared(
        "bridge_snapshot_written_total",
        "counter",
        "Records that these wrote.",
        (),
        lambda seen, now: [((), seen.written)],
    ),
    Declared(
        "bridge_snapshot_removed_total",
        "counter",
        "Records that these removed.",
        (),
        lambda seen, now: [((), seen.removed)],
    ),
    Declared(
        "bridge_snapshot_records",
        "gauge",
        "Records in the last snapshot.",
        ("kind",),
        _records,
    ),
    Declared(
        "bridge_snapshot_left_out",
        "gauge",
        "What the provider did not tell in the last run; 1 for an endpoint that there is no right to.",
        ("endpoint",),
        _left_out,
    ),
    Declared(
        "bridge_snapshot_owed",
        "gauge",
        "Things that the next run asks about again, because they were not told.",
        (),
        _last(lambda report: report.snapshot.owed),
    ),
    Declared(
        "bridge_join_ids",
        "gauge",
        "Ids that bets mention: in a full run all recent ones, in others what is new; of the last with any.",
        ("kind",),
        _ids,
    ),
    Declared(
        "bridge_join_coverage_ratio",
        "gauge",
        "Share of these ids that has a name in the language.",
        ("kind", "language"),
        _covered,
    ),
)


def exposition(seen: JobStatus, now: float, accept: str = "") -> tuple[bytes, str]:
    """All of them, as text, and the type of that text, as `bridge.observability.metrics.exposition` does."""
    return exposed(METRICS, seen, {"snapshot": seen.job}, now, accept)


def must_be_writable(file: Path) -> None:
    """Raises SettingsError where `write` would, and leaves nothing behind."""
    draft = _draft(file)
    try:
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        draft.touch()
        draft.unlink()
    except OSError as error:
        raise _unwritable(file, error) from None


def write(seen: JobStatus, file: Path) -> None:
    """Write them to a file at once, as a textfile collector wants it. Raises SettingsError.

    Without those of the process, which such a collector has of its own.
    """
    body, _ = exposed(METRICS, seen, {"snapshot": seen.job}, seen.at, process=False)
    draft = _draft(file)
    try:
        draft.write_bytes(body)
        draft.replace(file)
    except OSError as error:
        raise _unwritable(file, error) from None


def _draft(file: Path) -> Path:
    """Beside the file, which it replaces."""
    return file.parent / f"{file.name}.{os.getpid()}"


def _unwritable(file: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"--metrics-file: cannot write {file}: {error.strerror}. Name a file in a directory that is "
        "there and may be written to."
    )
