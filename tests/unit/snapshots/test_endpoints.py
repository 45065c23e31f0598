"""What is answered over HTTP about a snapshot job."""

from __future__ import annotations

from typing import Any

import orjson

from bridge.clock import Instant
from bridge.snapshots.endpoints import make_app
from bridge.snapshots.metrics import LATE_SECONDS, STILL_SECONDS, JobStatus
from tests.unit.observability.test_pages import ask
from tests.unit.snapshots.reports import AT, report


def page(seen: JobStatus, path: str, now: float = AT) -> tuple[str, Any]:
    """Status and report of a page at that moment."""
    status, _, body = ask(make_app(seen, lambda: Instant(now, 0.0)), path)
    return status.partition(" ")[0], orjson.loads(body)


def published() -> JobStatus:
    """A job that rests after its first run."""
    seen = JobStatus("translations", at=AT, doing="publishing", rests_until=AT + 900)
    seen.publish(report())
    return seen


def test_before_the_first_snapshot() -> None:
    """Healthy, and not ready."""
    seen = JobStatus("translations", at=AT, doing="its turn")
    assert page(seen, "/healthz")[0] == "200"
    assert page(seen, "/readyz") == (
        "503",
        {
            "ok": False,
            "reason": "no snapshot is published yet",
            "job": "translations",
            "doing": "its turn",
            "snapshot": None,
            "finishedAt": None,
            "complete": None,
            "nextAt": None,
        },
    )


def test_after_a_snapshot() -> None:
    """It says which, when it was whole, and when the next is due."""
    assert page(published(), "/readyz") == (
        "200",
        {
            "ok": True,
            "reason": "",
            "job": "translations",
            "doing": "publishing",
            "snapshot": "20260921T141320.000000Z-0badcafe",
            "finishedAt": "2026-09-21T14:13:22.500000Z",
            "complete": True,
            "nextAt": "2026-09-21T14:28:20Z",
        },
    )


def test_after_a_failure() -> None:
    """Healthy, for it goes on; not ready, with the reason, until one has come to its end."""
    seen = published()
    seen.fail("HTTP 500")
    assert page(seen, "/healthz")[0] == "200"
    assert (page(seen, "/readyz")[0], page(seen, "/readyz")[1]["reason"]) == ("503", "HTTP 500")
    seen.publish(report())
    assert page(seen, "/readyz")[0] == "200"


def test_a_job_that_is_stuck() -> None:
    """Neither healthy nor ready, in the middle of a run or late for one."""
    seen = published()
    late = AT + 900 + LATE_SECONDS + 1
    assert [page(seen, path, late)[0] for path in ("/healthz", "/readyz")] == ["503", "503"]
    assert page(seen, "/healthz", late)[1]["reason"] == "the next run should have begun 61 s ago"
    seen.rests_until = None
    still = AT + STILL_SECONDS + 1
    assert [page(seen, path, still)[0] for path in ("/healthz", "/readyz")] == ["503", "503"]


def test_its_metrics() -> None:
    """As a scraper reads them."""
    status, headers, body = ask(make_app(published(), lambda: Instant(AT, 0.0)), "/metrics")
    assert (status, headers["Content-Type"].partition(";")[0]) == ("200 OK", "text/plain")
    assert b'bridge_snapshot_runs_total{result="published",snapshot="translations"} 1.0\n' in body
