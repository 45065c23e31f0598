"""The health of a snapshot job, and what a scraper gets from it, by Prometheus' own parser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from bridge.errors import SettingsError
from bridge.observability.exposition import exposition
from bridge.snapshots.model import Omission
from bridge.snapshots.report import Covered
from bridge.snapshots.status import (
    LATE_SECONDS,
    STUCK_SECONDS,
    JobStatus,
    collect,
    must_be_writable,
    write,
)
from tests.unit.snapshots.reports import AT, report


def facts(**changes: Any) -> dict[str, Any]:
    """What a job reports that has nothing to say, but for the changes."""
    names = ("doing", "snapshot", "finishedAt", "complete", "nextAt")
    return {"job": "translations", **dict.fromkeys(names), **changes}


def test_a_job_is_ready_after_a_snapshot_until_a_run_fails() -> None:
    status = JobStatus("translations", at=AT, doing="waiting for its turn")
    health = status.health(AT)
    assert (health.healthy, health.ready) == ((True, ""), (False, "no snapshot is published yet"))
    assert health.report == facts(doing="waiting for its turn")
    status.publish(report())
    status.rest(AT + 900)
    health = status.health(AT)
    assert health.healthy == health.ready == (True, "")
    assert health.report == facts(
        doing="",
        snapshot="20260921T141320.000000Z-0badcafe",
        finishedAt="2026-09-21T14:13:22.500000Z",
        complete=True,
        nextAt="2026-09-21T14:28:20Z",
    )
    status.fail("HTTP 500")
    health = status.health(AT)
    assert (health.healthy, health.ready) == ((True, "HTTP 500"), (False, "HTTP 500"))
    status.publish(report())
    assert status.health(AT).ready == (True, "")


def test_coverage_of_a_kind_stays_until_a_run_looks_it_up_again() -> None:
    status = JobStatus("translations", at=AT)
    event, sport = Covered("event", 9, {"en": 9}), Covered("sport", 2, {"en": 1})
    status.publish(report(coverage=[event, sport]))
    status.publish(report(coverage=[]))
    assert status.coverage == {"sport": sport, "event": event}
    newer = Covered("event", 3, {"en": 2})
    status.publish(report(coverage=[newer]))
    assert [*status.coverage.items()] == [("sport", sport), ("event", newer)]


@pytest.mark.parametrize(
    ("rests_until", "now", "reason"),
    [
        (None, AT + STUCK_SECONDS, ""),
        (None, AT + STUCK_SECONDS + 1, "no progress for 1h 10m"),
        (AT + 10_000, AT + 10_000 + LATE_SECONDS, ""),
        (AT + 10_000, AT + 10_000 + LATE_SECONDS + 1, "the next run should have begun 1m 1s ago"),
    ],
)
def test_a_job_stuck_in_a_run_or_late_for_one_is_neither(
    rests_until: float | None, now: float, reason: str
) -> None:
    status = JobStatus("translations", at=AT, rests_until=rests_until)
    status.publish(report())
    health = status.health(now)
    assert health.healthy == health.ready == (not reason, reason)


def parsed(body: bytes) -> dict[str, float]:
    """Return our samples by `name label label`, without the label `snapshot`."""
    found = {}
    for family in parse(body.decode()):
        for sample in family.samples:
            labels = dict(sample.labels)
            if sample.name.startswith("bridge_"):
                assert labels.pop("snapshot") == "translations"
                found[" ".join([sample.name, *labels.values()])] = sample.value
    return found


def scraped(status: JobStatus) -> dict[str, float]:
    """Return the samples as a scraper gets them."""
    return parsed(exposition(collect(status), {"snapshot": status.job})[0])


def test_metrics_before_the_first_snapshot_and_after_runs() -> None:
    status = JobStatus("translations", at=AT)
    status.begin(AT + 900)
    status.fail("the provider is down")
    assert scraped(status) == {
        "bridge_snapshot_timestamp_seconds": AT,
        "bridge_snapshot_runs_total published": 0,
        "bridge_snapshot_runs_total failed": 1,
        "bridge_snapshot_requests_total": 0,
        "bridge_snapshot_written_total": 0,
        "bridge_snapshot_removed_total": 0,
    }
    status.publish(report(finished_at=AT - 900, refreshed_at=None))
    left = tuple(Omission("/api/x", number, "HTTP 500") for number in ("1", "2"))
    status.publish(report(complete=False, left_out=left, owed=7))
    assert scraped(status) == {
        "bridge_snapshot_timestamp_seconds": AT + 2.5,
        "bridge_snapshot_refreshed_timestamp_seconds": AT - 3600,
        "bridge_snapshot_complete": 0,
        "bridge_snapshot_left_out /api/x": 2,
        "bridge_snapshot_owed": 7,
        "bridge_snapshot_seconds": 2,
        "bridge_snapshot_runs_total published": 2,
        "bridge_snapshot_runs_total failed": 1,
        "bridge_snapshot_requests_total": 112,
        "bridge_snapshot_written_total": 6,
        "bridge_snapshot_removed_total": 2,
        "bridge_snapshot_records sport": 12,
        "bridge_snapshot_records event": 2000,
        "bridge_join_ids sport": 4,
        "bridge_join_ids event": 2000,
        "bridge_join_coverage_ratio sport en": 1,
        "bridge_join_coverage_ratio sport sv": 1,
        "bridge_join_coverage_ratio event en": 1,
        "bridge_join_coverage_ratio event sv": 0.9995,
    }


def test_a_file_for_a_collector_is_replaced_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "bridge.prom"
    must_be_writable(file)
    assert list(tmp_path.iterdir()) == []
    file.write_text("old")
    must_be_writable(file)
    assert file.read_text() == "old"
    write(JobStatus.of(report()), file)
    assert parsed(file.read_bytes())["bridge_snapshot_runs_total published"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bridge.prom"]
    with pytest.raises(SettingsError, match=r"--metrics-file: cannot write .*/nowhere/bridge\.prom: No such"):
        write(JobStatus.of(report()), tmp_path / "nowhere" / "bridge.prom")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere/bridge.prom", "No such file or directory"),
        ("directory", "Is a directory"),
        ("file/bridge.prom", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("/proc/self/fdinfo/bridge.prom", "No such file or directory|Permission denied"),
    ],
)
def test_a_file_that_will_never_be_written_is_refused(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(SettingsError, match=rf"^--metrics-file: cannot write .*({reason})\. Name a file in"):
        must_be_writable(tmp_path / path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_write_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SettingsError, match="Permission denied"):
        must_be_writable(tmp_path / "bridge.prom")
