"""A gap through Avro and back."""

from __future__ import annotations

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.state.gap import Cause, Gap

SCHEMA = load("feed-gap")
GAP = Gap("settlement-v4", 1_789_000_000, 1_789_086_400.5, Cause.TOO_OLD, 1_789_345_600.123456)


@pytest.mark.parametrize("cause", Cause)
def test_a_gap_survives_avro(cause: Cause) -> None:
    """Every field of it, with each cause, through the schema that ships with the bridge."""
    codec = Codec(SCHEMA, 3)
    gap = Gap(GAP.feed, GAP.start, GAP.end, cause, GAP.detected_at)
    assert Gap.from_avro(codec.decode(codec.encode(gap.to_avro()))) == gap


def test_its_bounds_are_what_a_reader_of_the_topic_sees() -> None:
    """In microseconds, under the names of the schema."""
    datum = GAP.to_avro()
    assert list(datum) == [field["name"] for field in SCHEMA["fields"]]
    assert (datum["from"], datum["to"]) == (1_789_000_000_000_000, 1_789_086_400_500_000)
    assert datum["detectedAt"] == 1_789_345_600_123_456


def test_the_causes_are_those_of_the_schema() -> None:
    """So that whatever is read has a name here."""
    [cause] = [field["type"] for field in SCHEMA["fields"] if field["name"] == "cause"]
    assert {cause.value for cause in Cause} == set(cause["symbols"])


def test_a_gap_is_as_long_as_its_bounds_say() -> None:
    """In seconds."""
    assert GAP.seconds == 86_400.5
