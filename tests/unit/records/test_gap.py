"""Gaps survive Avro."""

from __future__ import annotations

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.records.gap import Cause, FeedGap, gap_record

SCHEMA = load("feed-gap")
GAP = FeedGap("settlement-v4", 1_789_000_000, 1_789_086_400.5, Cause.TOO_OLD, 1_789_345_600.123456)


@pytest.mark.parametrize("cause", Cause)
def test_every_field_survives_avro_with_each_cause(cause: Cause) -> None:
    codec = Codec(SCHEMA, 3)
    gap = FeedGap(GAP.feed, GAP.start, GAP.end, cause, GAP.detected_at)
    assert FeedGap.from_avro(codec.decode(codec.encode(gap.to_avro()))) == gap
    [symbols] = [field["type"]["symbols"] for field in SCHEMA["fields"] if field["name"] == "cause"]
    assert {*symbols} == {each.value for each in Cause}


def test_a_gap_is_written_in_microseconds_under_the_names_of_the_schema() -> None:
    datum = GAP.to_avro()
    assert list(datum) == [field["name"] for field in SCHEMA["fields"]]
    assert (datum["from"], datum["to"]) == (1_789_000_000_000_000, 1_789_086_400_500_000)
    assert (datum["detectedAt"], GAP.seconds) == (1_789_345_600_123_456, 86_400.5)
    record = gap_record("t.gaps", Codec(SCHEMA, 3), GAP)
    assert (record.topic, record.key, record.partition) == ("t.gaps", b"settlement-v4", 0)
    assert record.timestamp == 1_789_345_600_123
