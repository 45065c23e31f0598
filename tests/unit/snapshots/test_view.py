"""What the status page of a snapshot job says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson
import pytest

from bridge import masking
from bridge.snapshots.model import NO_RIGHT, Counts, Omission
from bridge.snapshots.report import Covered
from bridge.snapshots.status import ITS_TURN, JobStatus
from bridge.snapshots.view import JobView
from tests.unit.snapshots.reports import JOBS, LATER, LEFT_OUT, NO_RIGHTS, TOO_LARGE, pages, report

MARKETS = f"{LEFT_OUT[0].endpoint}: {LEFT_OUT[0].why}"


def shown(status: JobStatus, now: float = LATER) -> str:
    body = pages(status, now)["/"]("").body
    assert isinstance(body, bytes)
    return body.decode()


def published(*coverage: Covered, **snapshot: Any) -> JobStatus:
    """A job that rests after a run with this in its snapshot."""
    status = JobStatus.of(report(coverage=list(coverage), **snapshot))
    return replace(status, rests_until=LATER + 1)


@pytest.mark.parametrize(
    ("name", "state", "tone", "reason"),
    [
        ("job-complete", "Complete", "good", ""),
        ("job-running", "Running", "busy", ""),
        ("job-partial", "Partial", "busy", MARKETS),
        ("job-forbidden", "Partial", "bad", NO_RIGHTS[0]),
        ("job-too-large", "Partial", "bad", f"{TOO_LARGE.id}: {TOO_LARGE.why}"),
        ("job-narrowed", "Narrowed", "good", ""),
        ("job-failed", "Failed", "bad", "cannot reach api.example.com: Connection refused"),
        ("job-first-run", "Running", "busy", ""),
        ("job-retrying", "Retrying", "bad", "no broker answers"),
        ("job-currencies", "Complete", "good", ""),
        ("job-late", "Stuck", "bad", "the next run should have begun 15m ago"),
    ],
)
def test_a_job_says_how_it_is(name: str, state: str, tone: str, reason: str) -> None:
    view = JobView(JOBS[name], LATER)
    assert (view.state, view.headline.tone, view.reason) == (state, tone, reason)
    assert (view.headline.todo == "") == (tone == "good" or state == "Running")


@pytest.mark.parametrize(
    ("name", "tone", "todo", "reason"),
    [
        ("job-complete", "busy", "", ""),
        ("job-partial", "busy", "The next run asks again.", f"some requests failed. {MARKETS}"),
        ("job-forbidden", "bad", "Ask the provider for access", f"(403). {NO_RIGHTS[0]}"),
        ("job-failed", "bad", "Nothing if the next run succeeds", "unchanged. cannot reach api"),
    ],
)
def test_a_run_hides_nothing_of_the_one_before(name: str, tone: str, todo: str, reason: str) -> None:
    status = replace(JOBS[name])
    status.begin(LATER)
    view = JobView(status, LATER)
    assert (view.state, view.headline.tone) == ("Running", tone)
    assert view.headline.sentence.startswith("A run is under way")
    assert view.headline.todo.startswith(todo)
    assert reason in view.reason
    assert "Step: starting" in shown(status)


def test_trouble_with_kafka_ends_with_the_next_step() -> None:
    status = replace(JOBS["job-complete"])
    status.begin(LATER)
    status.trouble = "no broker answers"
    status.progress(LATER, ITS_TURN)
    assert JobView(status, LATER).state == "Retrying"
    status.progress(LATER, "events")
    assert JobView(status, LATER).state == "Running"


def test_what_the_next_run_cannot_mend_comes_first() -> None:
    many = tuple(Omission("/a", str(n), "HTTP 500") for n in range(25))
    forbidden = Omission("/z", None, NO_RIGHT)
    view = JobView(
        published(complete=False, left_out=(*many, TOO_LARGE, forbidden), forbidden=("/z",)), LATER
    )
    assert view.left_out
    assert view.left_out[:2] == [forbidden, TOO_LARGE]
    assert view.more_left_out == "and 7 more"
    assert view.headline.todo.endswith("out of api.kinds.")
    status = published(job="currencies", complete=False, left_out=(forbidden,), forbidden=("/z",))
    assert "kinds" not in JobView(status, LATER).headline.todo


def test_a_record_that_is_cut_off_itself_says_at_least() -> None:
    many = tuple(Omission("/a", str(n), "HTTP 500") for n in range(1_000))
    assert JobView(published(complete=False, left_out=many), LATER).more_left_out == "and at least 980 more"


def test_coverage_is_that_of_the_language_with_the_fewest_names() -> None:
    named = {"en": 2_000, "sv": 1_999, "de": 3}
    (row,) = JobView(published(Covered("event", 2_000, named, ["event:7"])), LATER).coverage
    assert (row.percent, row.is_low) == (0.15, True)
    assert row.words == "of 2,000, 3 in de, 1,999 in sv have a name; e.g. event:7 lacks a language"


@pytest.mark.parametrize(
    ("named", "seen", "percent"),
    [
        (0, 1, 0.0),
        (1, 100_000, 0.0),
        (57, 100, 57.0),
        (99_999, 100_000, 99.99),
        (100_000, 100_000, 100.0),
        (1, 3, 33.33),
    ],
)
def test_one_missing_name_is_never_100_percent(named: int, seen: int, percent: float) -> None:
    (row,) = JobView(published(Covered("event", seen, {"en": named})), LATER).coverage
    assert row.percent == percent


def test_what_is_not_known_is_not_called_nothing() -> None:
    page = shown(JOBS["job-first-run"])
    assert page.count("Not known: no run of this process has published yet.") == 2
    assert "Nothing.</p>" not in page.partition("leftout-title")[2]
    page = shown(JOBS["job-currencies"])
    assert ("Currency snapshots" in page, "Coverage" in page) == (True, False)
    assert "last progress 0s ago" in shown(replace(JOBS["job-running"], at=LATER + 0.2)), "no age is negative"


def test_many_of_anything_are_cut() -> None:
    status = published(
        Covered("event", 9, {f"l{n}": 1 for n in range(12)}),
        counts={f"kind {n:03}": Counts(1) for n in range(60)},
        left_out=tuple(Omission("/x", str(n), "because") for n in range(25)),
    )
    page = shown(status)
    assert "Kinds that are not shown: 10" in page
    assert "and 5 more; the Snapshot record" in page
    assert "fewer than all in 7 more" in page
    assert page.count("<tr>") == 2 + 50 + 20


def test_foreign_text_is_escaped_and_no_secret_is_shown() -> None:
    masking.conceal("t0ken-of-the-api", "api.token")
    bad = "<script>alert('x')</script> half \ud800"
    status = published(
        Covered("event", 2, {bad: 1}, [bad]),
        complete=False,
        counts={bad: Counts(1)},
        left_out=(Omission(bad, bad, bad),),
    )
    page = shown(replace(status, failure=f"{bad} Authorization: Bearer t0ken-of-the-api"))
    assert ("<script>a" in page, "t0ken-of-the-api" in page) == (False, False)
    assert "Bearer **********" in page
    assert page.count("&lt;script&gt;alert") == page.count("half ?") == 7


@pytest.mark.parametrize("name", JOBS)
def test_the_stream_has_what_the_page_shows(name: str) -> None:
    body = pages(JOBS[name])["/events"]("").body
    assert not isinstance(body, bytes)
    sent: dict[str, str] = orjson.loads(next(iter(body)).removeprefix(b"data: "))
    page = shown(JOBS[name])
    assert all(f'id="{element}"' in page and text in page for element, text in sent.items())
    assert {"state", "why", "snapshot", "coverage", "records", "leftout"} < sent.keys()
    assert not re.search(r"<style|style=|\son\w+=|//", page.replace("settlement-bridge", ""))
    assert sent["state"] in shown(JOBS[name], LATER + 5)
