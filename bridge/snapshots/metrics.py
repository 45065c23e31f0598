"""The metrics of a snapshot job, for a scraper and as a file."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from bridge.errors import SettingsError
from bridge.observability.exposition import exposition, filled
from bridge.snapshots.report import Report
from bridge.snapshots.status import JobStatus


def collect(status: JobStatus) -> Iterator[Metric]:
    """Yield the metrics."""
    runs = CounterMetricFamily(
        "bridge_snapshot_runs_total", "Runs since this process started, by result.", labels=["result"]
    )
    yield filled(runs, {"published": status.published, "failed": status.failed})
    for name, help_, count in (
        ("requests", "Requests to the provider by published runs.", status.requests),
        ("written", "Records written by published runs.", status.written),
        ("removed", "Records removed by published runs.", status.removed),
    ):
        yield CounterMetricFamily(f"bridge_snapshot_{name}_total", help_, count)
    last = status.last
    finished = "Completion time of the last snapshot published by this process; at first its start."
    published_at = last.snapshot.finished_at if last else status.started_at
    yield GaugeMetricFamily("bridge_snapshot_timestamp_seconds", finished, published_at)
    if last:
        yield from _of_last(last)
    ids = "Ids of the kind in the last run that looked any up: all recent ids in a full run, else new ids."
    yield filled(
        GaugeMetricFamily("bridge_join_ids", ids, labels=["kind"]),
        {kind: row.seen for kind, row in status.coverage.items()},
    )
    share = "Share of these ids that have a name in the language."
    yield filled(
        GaugeMetricFamily("bridge_join_coverage_ratio", share, labels=["kind", "language"]),
        {(kind, x): row.share(x) for kind, row in status.coverage.items() for x in row.named},
    )


def _of_last(report: Report) -> Iterator[Metric]:
    snapshot = report.snapshot
    complete = "1 if the last snapshot is complete, 0 if it is partial."
    seconds = "Duration of the last snapshot, from its first request to its commit."
    owed = "Entries that the provider left out; the next run asks for them again."
    left_out = "Entries left out of the last snapshot; an endpoint that answers 403 counts as 1."
    for name, help_, value in (
        ("refreshed_timestamp_seconds", "Start of the last full run.", snapshot.refreshed_at),
        ("complete", complete, snapshot.complete),
        ("seconds", seconds, report.seconds),
        ("owed", owed, snapshot.owed),
    ):
        yield GaugeMetricFamily(f"bridge_snapshot_{name}", help_, value)
    yield filled(
        GaugeMetricFamily("bridge_snapshot_records", "Records in the last snapshot.", labels=["kind"]),
        {kind: count.records for kind, count in snapshot.counts.items()},
    )
    yield filled(
        GaugeMetricFamily("bridge_snapshot_left_out", left_out, labels=["endpoint"]),
        Counter(left.endpoint for left in snapshot.left_out),
    )


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
