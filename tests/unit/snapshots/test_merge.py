"""Answers of both forms become one compact record a thing."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bridge.snapshots.merge import MergedNames, pack, unpack
from bridge.snapshots.model import Translation
from bridge.snapshots.plan import Scope
from tests.unit.snapshots.world import api

ALL = Scope.of(api())


def entity(number: int, **texts: str) -> Any:
    return {"id": number, "translations": texts}


def text(number: int, language: str, translation: str) -> Any:
    return {"id": number, "language": language, "translation": translation}


def texts_of(collected: MergedNames, key: bytes) -> dict[str, str]:
    record = collected.record(key)
    assert record is not None
    return record.texts


def say(collected: MergedNames, *items: Any) -> None:
    """As a list of sports does."""
    for item in items:
        collected.item("sport", item)


def test_what_was_answered_in_all_languages_is_known() -> None:
    collected = MergedNames(ALL, {})
    say(collected, text(1, "en", "Football"), text(2, "en", "Tennis"))
    collected.entity("sport", entity(1, sv="Fotboll"))
    collected.entity("sport", entity(2, sv=""))
    assert collected.complete_keys == {b"sport:1"}


def test_languages_are_counted_by_their_codes() -> None:
    collected = MergedNames(ALL, {"en-GB": "en"})
    names = ["".join(["e", "n"]) for _ in range(2)]
    say(collected, text(1, names[0], "One"), text(2, names[1], "Two"), text(3, "en-GB", "Three"))
    collected.entity("sport", entity(4, sv="Fyra", en=""))
    assert collected.languages == {"en": 3, "sv": 1}
    first, second = (next(iter(texts_of(collected, key))) for key in (b"sport:1", b"sport:2"))
    assert first is second


def test_a_selection_of_two_events_is_the_later_ones() -> None:
    old = {"marketTypeId": 18, "marketTranslations": entity(5, en="x"), "selections": [entity(6, en="Old")]}
    new = {"marketTypeId": 19, "marketTranslations": entity(5, en="x"), "selections": [entity(6, sv="Ny")]}
    for first, second in (((77, old), (88, new)), ((88, new), (77, old))):
        collected = MergedNames(ALL, {})
        collected.all_markets(first[0], [first[1]])  # type: ignore[list-item]
        collected.all_markets(second[0], [second[1]])  # type: ignore[list-item]
        assert collected.record(b"selection:6") == Translation(
            "selection", 6, {"sv": "Ny"}, 88, market_type_id=19
        )


def test_what_a_thing_belongs_to_is_kept_as_first_answered() -> None:
    collected = MergedNames(ALL, {})
    market = {
        "marketTypeId": 18,
        "marketTranslations": entity(5, en="Total"),
        "selections": [entity(6, en="Over")],
    }
    collected.all_markets(77, [market])  # type: ignore[list-item]
    collected.markets(
        77, [{"marketTypeId": 19, "market": text(5, "en", "x"), "selections": [text(6, "sv", "Över")]}]
    )
    collected.markets(88, [{"marketTypeId": 19, "market": text(5, "en", "x"), "selections": []}])
    assert collected.record(b"market:77:5") == Translation(
        "market", 5, {"en": "Total"}, 77, market_type_id=18
    )
    assert collected.record(b"market:88:5") == Translation("market", 5, {"en": "x"}, 88, market_type_id=19)
    assert collected.record(b"selection:6") == Translation(
        "selection", 6, {"en": "Over", "sv": "Över"}, 77, market_type_id=18
    )


def test_two_names_of_a_language_do_not_make_a_text_flap() -> None:
    collected = MergedNames(Scope.of(api()), {"de-DE": "de"})
    one, other = {"de": "A", "de-DE": "B"}, {"de-DE": "B", "de": "A"}
    assert collected.normalize(one) == collected.normalize(other)


@pytest.mark.parametrize("spelling", ["EN", "En", "en"])
def test_a_language_in_another_case_is_the_same(spelling: str) -> None:
    collected = MergedNames(Scope.of(api(languages=("en", "de"))), {"DE-de": "de"})
    collected.item("sport", text(1, spelling, "Football"))
    collected.entity("sport", entity(2, **{spelling: "Tennis", "SV": "Tennis", "DE-de": "T"}))
    assert not collected.lacks("sport", 1, ["en"])
    found = collected.record(b"sport:2")
    assert found
    assert found.texts == {"en": "Tennis", "SV": "Tennis", "de": "T"}


def test_a_packed_record_is_unpacked_whole() -> None:
    for record in (
        Translation("market", 2**62, {"en": "Total 2.5", "el": "Σύνολο"}, event_id=7, market_type_id=18),
        Translation("event", 7, {}, sport_id=1, region_id=2, league_id=3, competitor_ids=[4, 5]),
    ):
        assert unpack(pack(record)) == record


def test_a_packed_record_is_small() -> None:
    texts = {
        language: f"the name of a selection in {language}" for language in ("en", "sv", "de", "el", "fr")
    }
    size = sys.getsizeof(pack(Translation("selection", 1, texts, event_id=7)))
    assert size < 0.6 * (sys.getsizeof(texts) + sum(map(sys.getsizeof, texts.values())))
