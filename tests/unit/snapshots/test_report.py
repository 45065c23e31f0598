"""What a run says when it is over."""

from __future__ import annotations

import json

import pytest

from bridge.errors import Forbidden
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


def test_what_was_forbidden_is_an_error_in_the_end() -> None:
    """With a line for each endpoint, what it means and what to do."""
    with pytest.raises(Forbidden) as caught:
        report(forbidden=(EVENTS, LEAGUES)).raise_if_forbidden()
    *paths, advice = str(caught.value).splitlines()
    assert [EVENTS in paths[0], LEAGUES in paths[1], len(paths)] == [True, True, 2]
    assert "The rest is published." in advice
    report().raise_if_forbidden()
