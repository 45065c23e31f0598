"""What comes of a run: coverage, the outcome, and the report."""

from __future__ import annotations

import pytest

from bridge import errors
from bridge.snapshots.model import NO_RIGHT, LeftOut, Translation
from bridge.snapshots.plan import Scope
from bridge.snapshots.references import References
from bridge.snapshots.results import MAX_EXAMPLES, Covered, cover
from tests.unit.snapshots.reports import report
from tests.unit.snapshots.world import WORLD, Provider, Topic, bet, first_run, item, mention, translate

EN = Scope(("en",))


def records(*found: Translation) -> dict[bytes, Translation]:
    return {record.key: record for record in found}


def test_a_kind_that_no_bet_mentions_has_no_row() -> None:
    assert cover(References(), EN, lambda key: None) == []
    references = References()
    references.add(bet([item(None, sportId=1)]))
    assert [row.kind for row in cover(references, EN, lambda key: None)] == ["sport"]


def test_a_kind_that_is_not_fetched_has_no_row() -> None:
    rows = cover(mention(WORLD.events[0]), Scope(("en",), frozenset({"event", "sport"})), lambda key: None)
    assert [row.kind for row in rows] == ["sport", "event"]


def test_shares_are_by_language() -> None:
    references = References()
    references.listed["sport"] |= {1, 2, 3, 4}
    have = records(
        Translation("sport", 1, {"en": "a", "sv": "b"}),
        Translation("sport", 2, {"en": "a"}),
        Translation("sport", 3, {"en": "a", "fr": "c"}),
    )
    (row,) = cover(references, Scope(("en", "sv")), have.get)
    assert row == Covered("sport", 4, {"en": 3, "sv": 1}, ["sport:2", "sport:3", "sport:4"])
    assert (row.share("en"), row.share("sv")) == (0.75, 0.25)


def test_only_the_first_missing_ones_are_reported() -> None:
    references = References()
    references.listed["sport"] |= set(range(100, 200))
    (row,) = cover(references, EN, lambda key: None)
    assert (row.seen, row.share("en")) == (100, 0)
    assert row.missing == [f"sport:{number}" for number in range(100, 100 + MAX_EXAMPLES)]


def test_competitors_are_those_of_the_events() -> None:
    references = mention(*WORLD.events[:2])
    first, second = sorted(references.events)
    have = records(
        Translation("event", first, {}, competitor_ids=[4, 5]),
        Translation("event", second, {}, competitor_ids=[5, 6]),
        Translation("competitor", 5, {"en": "x"}),
    )
    row = next(row for row in cover(references, EN, have.get) if row.kind == "competitor")
    assert (row.seen, row.named, row.missing) == (3, {"en": 1}, ["competitor:4", "competitor:6"])


@pytest.mark.parametrize("full", [False, True])
async def test_a_run_covers_with_what_it_wrote_and_what_was_there(full: bool) -> None:
    provider, topic = await first_run(WORLD.events[0])
    outcome = await translate(provider, topic, mention(*WORLD.events[:2]), full=full)
    assert [row.kind for row in outcome.coverage][:5] == ["sport", "region", "league", "competitor", "event"]
    assert len(outcome.coverage) == 9
    for row in outcome.coverage:
        assert row.named == dict.fromkeys(("en", "sv", "de"), row.seen)
        assert row.missing == []


async def test_an_outcome_is_shown_without_its_records() -> None:
    outcome = await translate(Provider(), Topic(), mention(*WORLD.events))
    assert len(outcome.written) > 500
    assert len(repr(outcome)) < 5_000


LEAGUES, EVENTS = "/api/translations/{lang}/leagues", "/api/translations/all/event/{eventId}"


def test_it_counts_what_all_kinds_have_changed() -> None:
    assert (report().written, report().removed) == (3, 1)


def test_a_run_without_a_refresh_has_null_for_its_time() -> None:
    assert report(refreshed_at=None).as_json()["refreshedAt"] is None


def test_what_was_left_out_is_an_error_in_the_end() -> None:
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
    with pytest.raises(errors.LeftOut) as caught:
        report(left_out=left[1:2], owed=1).raise_if_left_out()
    assert len(str(caught.value).splitlines()) == 2
    report().raise_if_left_out()
