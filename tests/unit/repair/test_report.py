"""The report of a redrive, for people."""

from __future__ import annotations

from bridge.records.dead_letter import DeadLetterCause, RedriveOutcome
from bridge.repair.report import RedriveReport, report_as_lines


def report() -> RedriveReport:
    found = RedriveReport(oversized=2, transactions=1)
    for outcome in (RedriveOutcome.PUBLISHED, RedriveOutcome.PUBLISHED, RedriveOutcome.STALE):
        found.add(DeadLetterCause("data.x", "wrong"), outcome)
    found.add(DeadLetterCause("", "Invalid JSON"), RedriveOutcome.FAILED)
    return found


def test_a_report_for_people() -> None:
    assert report_as_lines(report(), dry_run=False).splitlines() == [
        "data.x: wrong",
        "    2 published, 1 stale",
        "the whole message: Invalid JSON",
        "    1 failed",
        "2 oversized, not tried: only their first 64 KiB are kept",
        "3 redriven, 1 failed and stay open; 1 transaction",
    ]
    forecast = report_as_lines(RedriveReport(), dry_run=True)
    assert forecast == "0 would be redriven, 0 would fail; nothing was written"
