"""What the status page of a snapshot job says."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from bridge.observability.status_page import status_page
from bridge.snapshots.model import NO_RIGHT, Counts, LeftOut
from bridge.snapshots.results import Covered
from bridge.snapshots.status import JobStatus
from bridge.snapshots.view import JobView, job_view
from tests.unit.snapshots.reports import JOBS, LATER, NO_RIGHTS, report


def seen(name: str) -> JobView:
    return job_view(JOBS[name], LATER)


def shown(status: JobStatus) -> str:
    body = status_page("snapshots", lambda: job_view(status, LATER))["/"]("").body
    assert isinstance(body, bytes)
    return body.decode()


def covered(*rows: Covered) -> JobStatus:
    return replace(JOBS["job-complete"], coverage=list(rows))


@pytest.mark.parametrize(
    ("name", "state", "tone", "reason"),
    [
        ("job-complete", "Complete", "good", ""),
        ("job-running", "Running", "busy", ""),
        (
            "job-partial",
            "Partial",
            "busy",
            "/api/translations/all/{eventId}/markets: HTTP 500 after 5 attempts",
        ),
        ("job-forbidden", "Partial", "bad", f"{NO_RIGHTS[0]}: {NO_RIGHT}"),
        ("job-failed", "Failed", "bad", "cannot reach api.example.com: Connection refused"),
        ("job-first-run", "Running", "busy", ""),
        ("job-late", "Stuck", "bad", "the next run should have begun 15m ago"),
    ],
)
def test_a_job_says_how_it_is(name: str, state: str, tone: str, reason: str) -> None:
    view = seen(name)
    assert (view.state, view.says.tone, view.reason) == (state, tone, reason)
    assert (view.says.todo == "") == (tone == "good" or state == "Running")


def test_a_run_after_a_failed_one_says_so() -> None:
    status = replace(JOBS["job-failed"], rests_until=None)
    assert job_view(status, LATER).reason.startswith("the run before failed: cannot reach")


def test_a_narrowed_snapshot_is_what_was_asked_for() -> None:
    """Partial in the record, but nothing is missing."""
    status = JobStatus.of(report(complete=False))
    status.rests_until = LATER + 1
    view = job_view(status, LATER)
    assert (view.state, view.says.tone) == ("Narrowed", "good")


def test_coverage_is_that_of_the_language_with_the_fewest_names() -> None:
    rows = job_view(covered(Covered("event", 2_000, {"en": 2_000, "sv": 1_999, "de": 3}, ["event:7"])), LATER)
    (row,) = rows.coverage
    assert row.share == pytest.approx(0.0015)
    assert row.words == "of 2,000 ids in bets have a name: de 3, sv 1,999; without one is event:7"


@pytest.mark.parametrize(
    ("named", "percent"),
    [(0, "0 %"), (1, "0 %"), (99_999, "99.99 %"), (100_000, "100 %"), (50_010, "50.01 %")],
)
def test_one_missing_name_is_never_100_percent(named: int, percent: str) -> None:
    (row,) = job_view(covered(Covered("event", 100_000, {"en": named})), LATER).coverage
    assert row.percent == percent


def test_many_of_anything_are_cut() -> None:
    """And the page says how many more there are."""
    many = replace(
        JOBS["job-complete"],
        last=report(
            counts={f"kind {n:03}": Counts(1) for n in range(60)},
            left_out=tuple(LeftOut("/x", str(n), "because") for n in range(25)),
        ),
        coverage=[Covered("event", 9, {f"l{n}": 1 for n in range(12)})],
    )
    page = shown(many)
    assert "and 10 more kinds" in page
    assert "and 5 more, in the Snapshot record" in page
    assert "and 7 more languages" in page
    assert page.count("<tr>") == 2 + 50 + 20


def test_foreign_text_is_escaped() -> None:
    """Kinds of currencies, languages and reasons come from the provider."""
    bad = "<script>alert('x')</script>"
    status = replace(
        JOBS["job-failed"],
        failure=bad,
        last=report(counts={bad: Counts(1)}, left_out=(LeftOut(bad, bad, bad),)),
        coverage=[Covered("event", 2, {bad: 1}, [bad])],
    )
    page = shown(status)
    assert "<script>a" not in page
    assert page.count("&lt;script&gt;alert") == 7


@pytest.mark.parametrize("name", JOBS)
def test_the_stream_has_what_the_page_shows(name: str) -> None:
    body = status_page("snapshots", lambda: seen(name))["/events"]("").body
    assert not isinstance(body, bytes)
    sent: dict[str, str] = orjson.loads(next(iter(body)).removeprefix(b"data: "))
    page = shown(JOBS[name])
    assert all(f'id="{element}"' in page and text in page for element, text in sent.items())
    assert {"state", "why", "snapshot", "coverage", "records", "leftout"} < sent.keys()
