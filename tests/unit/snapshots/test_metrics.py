"""What a scraper sees of a snapshot job, parsed by Prometheus' own parser."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from bridge.errors import SettingsError
from bridge.snapshots.metrics import (
    LATE_SECONDS,
    STILL_SECONDS,
    JobStatus,
    exposition,
    must_be_writable,
    write,
)
from bridge.snapshots.model import LeftOut
from tests.unit.snapshots.reports import AT, report


def scraped(body: bytes) -> dict[str, float]:
    """`name label label` → value, of each of ours, without the label that all of them have."""
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


def test_before_the_first_run() -> None:
    """Nothing is said of a snapshot that there is not."""
    assert scraped(exposition(JobStatus("translations", at=AT), AT)[0]) == NOTHING


def test_what_the_last_snapshot_has_and_all_of_them_did() -> None:
    """Gauges are of the last one, counters of all; a failure takes nothing away."""
    seen = JobStatus("translations", at=AT)
    seen.publish(report(finished_at=AT - 900, refreshed_at=None))
    left = tuple(LeftOut("/api/x", number, "HTTP 500") for number in ("1", "2"))
    seen.publish(report(complete=False, left_out=left, owed=7))
    seen.fail("the provider is down")
    assert scraped(exposition(seen, AT)[0]) == {
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
    """What was there before is replaced in one go, and no draft is left."""
    file = tmp_path / "bridge.prom"
    file.write_text("old")
    write(JobStatus.of(report()), file)
    assert scraped(file.read_bytes())["bridge_snapshot_runs_total published"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bridge.prom"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the reason, and the option."""
    with pytest.raises(SettingsError, match=r"--metrics-file: cannot write .*/nowhere/bridge\.prom: No such"):
        write(JobStatus.of(report()), tmp_path / "nowhere" / "bridge.prom")


def test_whether_a_file_can_be_written_shows_before_it_is(tmp_path: Path) -> None:
    """To look leaves nothing behind, and what is there as it was."""
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
    """With what to do about it, and nothing left behind."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_text("old")
    with pytest.raises(SettingsError, match=rf"^--metrics-file: cannot write .*({reason})\. Name a file in"):
        must_be_writable(tmp_path / path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_must_not_be_written_to_is_refused(tmp_path: Path) -> None:
    """Before a run, not after it."""
    tmp_path.chmod(0o500)
    with pytest.raises(SettingsError, match="Permission denied"):
        must_be_writable(tmp_path / "bridge.prom")


@pytest.mark.parametrize(
    ("rests_until", "now", "reason"),
    [
        (None, AT + STILL_SECONDS, ""),
        (None, AT + STILL_SECONDS + 1, "nothing has happened for 4201 s"),
        (AT + 10_000, AT + 10_000, ""),
        (AT + 10_000, AT + 10_000 + LATE_SECONDS, ""),
        (AT + 10_000, AT + 10_000 + LATE_SECONDS + 1, "the next run should have begun 61 s ago"),
    ],
)
def test_a_job_that_does_not_go_on(rests_until: float | None, now: float, reason: str) -> None:
    """Neither by itself in a run, nor from its rest into the next."""
    assert JobStatus("translations", at=AT, rests_until=rests_until).stuck(now) == reason
