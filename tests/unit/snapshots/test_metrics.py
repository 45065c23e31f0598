"""What a scraper gets from a snapshot job, parsed by Prometheus' own parser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from bridge.errors import SettingsError
from bridge.observability.exposition import exposition
from bridge.snapshots.model import Omission
from bridge.snapshots.status import JobStatus, collect, must_be_writable, write
from tests.unit.snapshots.reports import AT, report


def scraped(status: JobStatus) -> dict[str, float]:
    """Return the samples as a scraper gets them."""
    return parsed(exposition(collect(status), {"snapshot": status.job})[0])


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


NOTHING = {
    "bridge_snapshot_runs_total published": 0,
    "bridge_snapshot_runs_total failed": 0,
    "bridge_snapshot_requests_total": 0,
    "bridge_snapshot_written_total": 0,
    "bridge_snapshot_removed_total": 0,
}


def test_before_the_first_snapshot() -> None:
    status = JobStatus("translations", at=AT)
    status.begin(AT + 900)
    status.fail("the provider is down")
    expected = {"bridge_snapshot_timestamp_seconds": AT, "bridge_snapshot_runs_total failed": 1}
    assert scraped(status) == NOTHING | expected


def test_after_runs() -> None:
    status = JobStatus("translations", at=AT)
    status.publish(report(finished_at=AT - 900, refreshed_at=None))
    left = tuple(Omission("/api/x", number, "HTTP 500") for number in ("1", "2"))
    status.publish(report(complete=False, left_out=left, owed=7))
    status.fail("the provider is down")
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


def test_a_file_for_a_collector(tmp_path: Path) -> None:
    file = tmp_path / "bridge.prom"
    file.write_text("old")
    write(JobStatus.of(report()), file)
    assert parsed(file.read_bytes())["bridge_snapshot_runs_total published"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bridge.prom"]


def test_an_error_names_option_file_and_reason(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--metrics-file: cannot write .*/nowhere/bridge\.prom: No such"):
        write(JobStatus.of(report()), tmp_path / "nowhere" / "bridge.prom")


def test_the_check_before_a_run_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "bridge.prom"
    must_be_writable(file)
    assert list(tmp_path.iterdir()) == []
    file.write_text("old")
    must_be_writable(file)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("bridge.prom", "old")]


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
