"""What a run says when it is over."""

from __future__ import annotations

import json

import pytest

from bridge import errors
from bridge.snapshots.model import NO_RIGHT, LeftOut
from tests.unit.snapshots.reports import report

LEAGUES, EVENTS = "/api/translations/{lang}/leagues", "/api/translations/all/event/{eventId}"


def test_it_counts_what_all_kinds_have_changed() -> None:
    """Written and removed, whatever they are."""
    assert (report().written, report().removed) == (3, 1)


def test_a_report_for_scripts() -> None:
    """Every field, with its times in words."""
    assert report(notes=("odd",), forbidden=(LEAGUES,), complete=False).as_json() == {
        "job": "translations",
        "snapshot": "20260921T141320.000000Z-0badcafe",
        "startedAt": "2026-09-21T14:13:20Z",
        "finishedAt": "2026-09-21T14:13:22.500000Z",
        "refreshedAt": "2026-09-21T13:13:20Z",
        "seconds": 2.0,
        "full": False,
        "complete": False,
        "languages": ["en", "sv"],
        "forbidden": [LEAGUES],
        "leftOut": [],
        "owed": 0,
        "bets": 1234,
        "requests": 56,
        "written": 3,
        "removed": 1,
        "kinds": {
            "sport": {"records": 12, "written": 3, "removed": 1},
            "event": {"records": 2000, "written": 0, "removed": 0},
        },
        "ends": {"0": 7, "1": 20},
        "coverage": {
            "sport": {"seen": 4, "named": {"en": 4, "sv": 4}, "missing": []},
            "event": {"seen": 2000, "named": {"en": 2000, "sv": 1999}, "missing": ["event:7"]},
        },
        "notes": ["odd"],
    }
    assert json.loads(json.dumps(report(refreshed_at=None).as_json()))["refreshedAt"] is None


def test_what_was_left_out_is_an_error_in_the_end() -> None:
    """With a line for each of the first things, what it means and what to do."""
    left = (LeftOut(LEAGUES, None, NO_RIGHT), *(LeftOut(EVENTS, str(x), "HTTP 500") for x in range(20)))
    with pytest.raises(errors.LeftOut) as caught:
        report(forbidden=(LEAGUES,), left_out=left, owed=21).raise_if_left_out()
    assert caught.value.exit_code == 4
    lines = str(caught.value).splitlines()
    assert lines[0] == f"the provider gives no right to {LEAGUES} (403): it is left out"
    assert lines[1] == f"left out: {EVENTS}, 0: HTTP 500"
    assert lines[-3].startswith("and 11 more")
    assert lines[-2] == "Everything else is published. The next run asks again about 21 things."
    assert "right" in lines[-1]
    report().raise_if_left_out()
