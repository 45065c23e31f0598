"""Answers of both forms become one compact record a thing."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bridge.snapshots.model import Translation
from bridge.snapshots.texts import Merged, pack, unpack
from bridge.snapshots.wanted import Task
from tests.unit.snapshots.world import api

ALL = Task.translations(api())


def entity(number: int, **texts: str) -> Any:
    return {"id": number, "translations": texts}


def test_languages_are_counted_by_their_codes_and_blank_texts_are_none() -> None:
    merged = Merged(ALL, {"en-GB": "en"})
    for number, language in enumerate(("en", "en", "en-GB"), 1):
        merged.item("sport", {"id": number, "language": language, "translation": "Name"})
    merged.entity("sport", entity(4, sv="Fyra", en=""), True)
    merged.entity("sport", entity(5, sv=""), True)
    merged.entity("event", entity(7, sv=""), True)  # which has a record without a name
    merged.item("sport", {"id": 6, "language": "en", "translation": "  "})
    assert (merged.languages, merged.complete) == ({"en": 3, "sv": 1}, {b"sport:4"})


def test_a_selection_of_two_events_is_the_later_ones() -> None:
    old = {"event_id": 77, "market_type_id": 18}, entity(6, en="Old")
    new = {"event_id": 88, "market_type_id": 19}, entity(6, sv="Ny")
    for order in ((old, new), (new, old)):
        merged = Merged(ALL, {})
        for belongs, selection in order:
            merged.entity("selection", selection, True, belongs)
        assert merged.record(b"selection:6") == Translation(
            "selection", 6, {"sv": "Ny"}, 88, market_type_id=19
        )


@pytest.mark.parametrize(
    ("old", "removes", "changed"),
    [
        (None, False, {"sv": "Ny"}),
        (Translation("selection", 6, {"en": "Old"}, 77), False, {"sv": "Ny"}),
        (Translation("selection", 6, {"en": "Later"}, 99), True, None),
        (Translation("selection", 6, {"sv": "Ny"}, 88), True, None),
        (Translation("selection", 6, {"sv": "Gammal", "en": "Old"}, 88), False, {"sv": "Ny", "en": "Old"}),
        (Translation("selection", 6, {"sv": "Gammal", "en": "Old"}, 88), True, {"sv": "Ny"}),
        (Translation("selection", 6, {"sv": "Ny"}, 88, sport_id=3), True, None),
    ],
)
def test_what_a_record_of_the_topic_leaves_to_be_written(
    old: Translation | None, removes: bool, changed: dict[str, str] | None
) -> None:
    merged = Merged(ALL, {})
    merged.entity("selection", entity(6, sv="Ny"), True, {"event_id": 88})
    found = merged.against(b"selection:6", old, removes=removes)
    assert found == (None if changed is None else Translation("selection", 6, changed, 88))


def test_what_comes_along_is_kept_unless_the_run_is_narrowed() -> None:
    for task, key in (
        (Task.translations(api(kinds=["sport"])), b"competitor:7"),
        (Task.translations(api(), kinds=["sport"]), None),
    ):
        assert Merged(task, {}).entity("competitor", entity(7, en="Team"), True) == key


@pytest.mark.parametrize("spelling", ["EN", "En", "en"])
def test_names_of_a_language_are_one_in_whatever_order_and_case(spelling: str) -> None:
    merged = Merged(ALL, {"DE-de": "de"})
    found = merged.normalize({spelling: "Tennis", "FR": "Tennis", "DE-de": "T", "de": "D"})
    assert found == {"en": "Tennis", "FR": "Tennis", "de": "D"}
    assert found == merged.normalize({"de": "D", "DE-de": "T", "FR": "Tennis", spelling: "Tennis"})


def test_a_packed_record_is_whole_and_small() -> None:
    texts = {
        language: f"the name of a selection in {language}" for language in ("en", "sv", "de", "el", "fr")
    }
    for record in (
        Translation("market", 2**62, {"en": "Total 2.5", "el": "Σύνολο"}, event_id=7, market_type_id=18),
        Translation("event", 7, {}, sport_id=1, region_id=2, league_id=3, competitor_ids=[4, 5]),
        Translation("selection", 1, texts, event_id=7),
    ):
        assert unpack(packed := pack(record)) == record
    assert sys.getsizeof(packed) < 0.6 * (sys.getsizeof(texts) + sum(map(sys.getsizeof, texts.values())))
