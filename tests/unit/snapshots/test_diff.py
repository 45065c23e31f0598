"""What has to be written and removed."""

from __future__ import annotations

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.snapshots.merge import CompactTranslation, count, drop_unchanged, forgotten
from bridge.snapshots.model import KINDS, Counts, Translation

CODEC = Codec(load("translation"), 1)
EVENT = Translation("event", 7, {"en": "A – B"}, sport_id=1, competitor_ids=(4, 5))


def stored(*records: Translation) -> dict[bytes, Translation]:
    return {record.key: Translation.from_avro(record.to_avro("before")) for record in records}


def changes(new: Translation, *present: Translation, whole: bool = False) -> list[Translation]:
    """What is left to be written of a record."""
    collected = {new.key: CompactTranslation(new)}
    drop_unchanged(collected, stored(*present).get, {new.key} if whole else ())
    return [record.unpack() for record in collected.values()]


def test_what_is_new_is_written() -> None:
    """As it is."""
    assert changes(Translation("sport", 1, {"en": "a"})) == [Translation("sport", 1, {"en": "a"})]


def test_what_is_equal_is_not() -> None:
    """In whatever order its languages come, and from whichever snapshot it is."""
    new = Translation("sport", 1, {"sv": "b", "en": "a"})
    assert changes(new, Translation("sport", 1, {"en": "a", "sv": "b"}), whole=True) == []


def test_a_text_that_was_not_told_stays() -> None:
    """Unless all languages were told."""
    old = Translation("sport", 1, {"en": "a", "sv": "b"})
    assert changes(Translation("sport", 1, {"en": "a"}), old) == []
    assert changes(Translation("sport", 1, {"en": "c"}), old) == [
        Translation("sport", 1, {"en": "c", "sv": "b"})
    ]
    assert changes(Translation("sport", 1, {"en": "a"}), old, whole=True) == [
        Translation("sport", 1, {"en": "a"})
    ]


def test_what_a_thing_belongs_to_stays_where_it_was_not_told() -> None:
    """Even if all languages were, and is changed where it was."""
    assert changes(Translation("event", 7, {"en": "A – B"}), EVENT, whole=True) == []
    other = Translation("event", 7, {"en": "A – B"}, sport_id=2, competitor_ids=())
    assert changes(other, EVENT) == [other]


def test_what_belongs_to_no_event_that_bets_mention_is_forgotten() -> None:
    """An event, its markets and selections, and templates of other selections."""
    of_event = [
        EVENT,
        Translation("market", 1, {"en": "x"}, event_id=7),
        Translation("selection", 2, {"en": "x"}, event_id=7),
        Translation("selection-template", 2, {"en": "x"}),
    ]
    others = [
        Translation("sport", 7, {"en": "x"}),
        Translation("market-type-template", 18, {"en": "x"}, sport_id=1),
        Translation("event", 8, {}),
        Translation("market", 7, {"en": "x"}, event_id=8),
        Translation("selection", 7, {"en": "x"}, event_id=8),
        Translation("selection-template", 9, {"en": "x"}),
    ]
    present = stored(*of_event, *others)
    assert set(forgotten(present, present.get, {8}, {9}.intersection)) == {record.key for record in of_event}


def test_records_are_counted_by_kind() -> None:
    """As they are afterwards; a kind of a newer bridge, too."""
    counts = count(
        {b"sport:1", b"sport:2", b"market:1:2", b"venue:3"}, {b"sport:1", b"sport:3"}, {b"sport:2"}
    )
    assert counts["sport"] == Counts(records=2, written=2, removed=1)
    assert counts["market"] == counts["venue"] == Counts(records=1)
    assert counts["league"] == Counts()
    assert list(counts) == [*KINDS, "venue"]
