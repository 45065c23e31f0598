"""Translations that wait."""

from __future__ import annotations

import sys

from bridge.snapshots.merge import CompactTranslation
from bridge.snapshots.model import Translation

MARKET = Translation("market", 2**62, {"en": "Total 2.5", "el": "Σύνολο"}, event_id=7, market_type_id=18)


def test_what_is_packed_is_unpacked() -> None:
    """All of it, members of an event too, and by its key as by itself."""
    event = Translation("event", 7, {}, sport_id=1, region_id=2, league_id=3, competitor_ids=(4, 5))
    for record in (MARKET, event):
        packed = CompactTranslation(record)
        assert packed.unpack() == record
        assert packed.key == record.key
        assert packed.to_avro("s") == record.to_avro("s")


def test_equal_records_are_equal_when_packed() -> None:
    """And others are not."""
    assert CompactTranslation(MARKET) == CompactTranslation(MARKET)
    assert CompactTranslation(MARKET) != CompactTranslation(Translation("market", 1, {}, event_id=7))
    assert CompactTranslation(MARKET) != MARKET


def test_it_is_small() -> None:
    """Not much more than half of what its texts alone take."""
    texts = {
        language: f"the name of a selection in {language}" for language in ("en", "sv", "de", "el", "fr")
    }
    packed = CompactTranslation(Translation("selection", 1, texts, event_id=7))
    size = sys.getsizeof(packed) + sys.getsizeof(packed._packed)
    assert size < 0.6 * (sys.getsizeof(texts) + sum(map(sys.getsizeof, texts.values())))
