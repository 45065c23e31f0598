"""Records of the topics, and back."""

from __future__ import annotations

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.snapshots.model import Translation, key_of, kind_of

CODEC = Codec(load("translation"), 1)


@pytest.mark.parametrize(
    ("record", "key"),
    [
        (Translation("sport", 12, {}), b"sport:12"),
        (Translation("event", 77, {}, sport_id=1), b"event:77"),
        (Translation("market", 5, {}, event_id=77, market_type_id=18), b"market:77:5"),
        (Translation("selection", 123, {}, event_id=77), b"selection:123"),
        (Translation("selection-template", 4, {}), b"selection-template:4"),
        (Translation("market-type-template", 18, {}, sport_id=1), b"market-type-template:1:18"),
    ],
)
def test_a_translation_has_the_key_of_its_kind(record: Translation, key: bytes) -> None:
    assert record.key == key
    assert kind_of(key) == record.kind


def test_equal_records_are_equal_bytes() -> None:
    one, other = (
        Translation("sport", 1, {"sv": "b", "en": "a"}),
        Translation("sport", 1, {"en": "a", "sv": "b"}),
    )
    assert CODEC.encode(one.to_avro("s")) == CODEC.encode(other.to_avro("s"))


def test_a_newer_kind_is_read() -> None:
    datum = {**Translation("sport", 1, {"en": "a"}).to_avro("s"), "kind": "venue"}
    record = Translation.from_avro(CODEC.decode(CODEC.encode(datum)))
    assert (record.kind, record.key) == ("venue", b"venue:1")
    assert kind_of(record.key) == "venue"


def test_a_record_is_completed_by_another() -> None:
    record = Translation("event", 7, {"en": "a"}, sport_id=1)
    record.complete(
        Translation("event", 7, {"en": "x", "sv": "b"}, sport_id=2, league_id=3, competitor_ids=[4])
    )
    assert record == Translation(
        "event", 7, {"en": "a", "sv": "b"}, sport_id=1, league_id=3, competitor_ids=[4]
    )


def test_a_key_is_made_of_ids() -> None:
    assert key_of("league", 9) == b"league:9"
    assert key_of("market", 5, 77) == b"market:77:5"
