"""The health of a snapshot job."""

from __future__ import annotations

import pytest

from bridge.snapshots.report import Covered
from bridge.snapshots.status import LATE_SECONDS, STUCK_SECONDS, JobStatus
from tests.unit.snapshots.reports import AT, report


def test_before_the_first_snapshot_a_job_is_healthy_but_not_ready() -> None:
    health = JobStatus("translations", at=AT, doing="waiting for its turn").health(AT)
    assert (health.healthy, health.ready) == ((True, ""), (False, "no snapshot is published yet"))
    assert health.report == {
        "job": "translations",
        "doing": "waiting for its turn",
        "snapshot": None,
        "finishedAt": None,
        "complete": None,
        "nextAt": None,
    }


def test_after_a_snapshot_a_job_is_ready() -> None:
    status = JobStatus("translations", at=AT, doing="publishing")
    status.publish(report())
    status.rest(AT + 900)
    health = status.health(AT)
    assert (health.healthy, health.ready) == ((True, ""), (True, ""))
    assert health.report == {
        "job": "translations",
        "doing": "",
        "snapshot": "20260921T141320.000000Z-0badcafe",
        "finishedAt": "2026-09-21T14:13:22.500000Z",
        "complete": True,
        "nextAt": "2026-09-21T14:28:20Z",
    }


def test_after_a_failure_a_job_is_healthy_but_not_ready_until_it_publishes() -> None:
    status = JobStatus("translations", at=AT)
    status.publish(report())
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
