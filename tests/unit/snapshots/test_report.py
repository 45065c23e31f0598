"""What comes of a run: coverage, and the report."""

from __future__ import annotations

import pytest

from bridge import errors
from bridge.snapshots.model import NO_RIGHT, Omission, Translation
from bridge.snapshots.report import MAX_EXAMPLES, Covered, cover
from bridge.snapshots.usage import Usage
from bridge.snapshots.wanted import Task
from tests.unit.snapshots.reports import report
from tests.unit.snapshots.world import (
    WORLD,
    Provider,
    Topic,
    api,
    bet,
    first_run,
    item,
    mention,
    translate,
)

EN = Task.translations(api(languages=("en",)))


def on_sports(*sports: int) -> Usage:
    used = Usage()
    for sport in sports:
        used.add(bet([item(None, sportId=sport)]))
    return used


def records(*found: Translation) -> dict[bytes, Translation]:
    return {record.key: record for record in found}


def test_shares_are_by_language() -> None:
    have = records(
        Translation("sport", 1, {"en": "a", "sv": "b"}),
        Translation("sport", 2, {"en": "a"}),
        Translation("sport", 3, {"en": "a", "fr": "c"}),
    )
    (row,) = cover(on_sports(1, 2, 3, 4), Task.translations(api(languages=("en", "sv"))), have.get)
    assert row == Covered("sport", 4, {"en": 3, "sv": 1}, ["sport:2", "sport:3", "sport:4"])
    assert (row.share("en"), row.share("sv")) == (0.75, 0.25)


def test_only_the_first_missing_ones_are_reported_and_none_counts_twice() -> None:
    owed = {b"sport:150", b"sport:200", b"event:1"}
    (row, _) = cover(on_sports(*reversed(range(100, 200))), EN, lambda key: None, owed)
    assert (row.seen, row.share("en")) == (101, 0)
    assert row.missing == [f"sport:{number}" for number in range(100, 100 + MAX_EXAMPLES)]


@pytest.mark.parametrize("full", [False, True])
async def test_a_run_covers_with_what_it_wrote_and_what_was_there(full: bool) -> None:
    provider, topic = await first_run(WORLD.events[0])
    outcome = await translate(provider, topic, mention(*WORLD.events[:2]), full=full)
    assert len(outcome.coverage) == 9
    for row in outcome.coverage:
        assert (row.named, row.missing) == (dict.fromkeys(("en", "sv", "de"), row.seen), [])


async def test_an_outcome_is_shown_without_its_records() -> None:
    outcome = await translate(Provider(), Topic(), mention(*WORLD.events))
    assert len(outcome.written) > 500
    assert len(repr(outcome)) < 5_000


LEAGUES, EVENTS = "/api/translations/{lang}/leagues", "/api/translations/all/event/{eventId}"


def test_what_was_left_out_is_an_error_in_the_end() -> None:
    left = (Omission(LEAGUES, None, NO_RIGHT), *(Omission(EVENTS, str(x), "HTTP 500") for x in range(20)))
    with pytest.raises(errors.LeftOut) as caught:
        report(forbidden=(LEAGUES,), left_out=left, owed=21).raise_if_left_out()
    assert caught.value.exit_code == 4
    lines = str(caught.value).splitlines()
    assert lines[0] == f"the provider gives no right to {LEAGUES} (403): it is left out"
    assert lines[1] == f"left out: {EVENTS}, 0: HTTP 500"
    assert lines[-3].startswith("and 11 more")
    assert lines[-2] == "Everything else is published. The next run asks again about 21 things."
    assert "right" in lines[-1]
    with pytest.raises(errors.LeftOut) as caught:
        report(left_out=left[1:2], owed=1).raise_if_left_out()
    assert len(str(caught.value).splitlines()) == 2
    report().raise_if_left_out()
    assert report(refreshed_at=None).as_json()["refreshedAt"] is None
