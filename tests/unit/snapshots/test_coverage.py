"""Which share of what bets mention has a name."""

from __future__ import annotations

import pytest

from bridge.snapshots.model import Translation
from bridge.snapshots.references import References
from bridge.snapshots.results import MAX_EXAMPLES, Covered, cover
from tests.unit.snapshots.world import WORLD, Provider, Topic, bet, item, mention, translate


def records(*found: Translation) -> dict[bytes, Translation]:
    return {record.key: record for record in found}


def test_a_kind_that_no_bet_mentions_has_no_row() -> None:
    """And of no bets there is none."""
    assert cover(References(), ["en"], lambda key: None) == []
    references = References()
    references.add(bet([item(None, sportId=1)]))
    assert [row.kind for row in cover(references, ["en"], lambda key: None)] == ["sport"]


def test_shares_are_by_language() -> None:
    """What lacks one is missing, and told by its key."""
    references = References(sports={1, 2, 3, 4})
    have = records(
        Translation("sport", 1, {"en": "a", "sv": "b"}),
        Translation("sport", 2, {"en": "a"}),
        Translation("sport", 3, {"en": "a", "fr": "c"}),
    )
    (row,) = cover(references, ["en", "sv"], have.get)
    assert row == Covered("sport", 4, {"en": 3, "sv": 1}, ["sport:2", "sport:3", "sport:4"])
    assert (row.share("en"), row.share("sv")) == (0.75, 0.25)
    assert row.as_json() == {"seen": 4, "named": {"en": 3, "sv": 1}, "missing": row.missing}


def test_only_the_first_missing_ones_are_told() -> None:
    """In the order of their keys."""
    references = References(sports=set(range(100, 200)))
    (row,) = cover(references, ["en"], lambda key: None)
    assert (row.seen, row.share("en")) == (100, 0)
    assert row.missing == [f"sport:{number}" for number in range(100, 100 + MAX_EXAMPLES)]


def test_competitors_are_those_of_the_events() -> None:
    """Bets do not name them; each counts once."""
    references = mention(*WORLD.events[:2])
    first, second = sorted(references.events)
    have = records(
        Translation("event", first, {}, competitor_ids=(4, 5)),
        Translation("event", second, {}, competitor_ids=(5, 6)),
        Translation("competitor", 5, {"en": "x"}),
    )
    row = next(row for row in cover(references, ["en"], have.get) if row.kind == "competitor")
    assert (row.seen, row.named, row.missing) == (3, {"en": 1}, ["competitor:4", "competitor:6"])


@pytest.mark.parametrize("full", [False, True])
async def test_a_run_covers_with_what_it_wrote_and_what_was_there(full: bool) -> None:
    """All of it, when the provider has it all."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(WORLD.events[0]))
    outcome = await translate(provider, topic, mention(*WORLD.events[:2]), full=full)
    assert [row.kind for row in outcome.coverage][:5] == ["sport", "region", "league", "competitor", "event"]
    assert len(outcome.coverage) == 9
    for row in outcome.coverage:
        assert row.named == dict.fromkeys(("en", "sv", "de"), row.seen)
        assert row.missing == []
