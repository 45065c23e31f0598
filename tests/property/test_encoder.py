"""Whatever the schema and the datum, the encoder's bytes are fastavro's, and so is what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.errors import SchemaError
from tests.avro_data import FOREIGN, FORMS, OWN, POOL, Maker, Pool, Schema, by_fastavro, encoded, schemas

BATCH = 20
"""Records from each schema and pool."""
SEED = st.integers(0, 2**32)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_what_is_right_is_written_as_fastavro_writes_it(
    form: str, schema: Schema, pool: Pool, seed: int
) -> None:
    """By the encoder itself, with no help, and byte for byte."""
    maker = Maker(schema, pool, seed)
    for _ in range(BATCH):
        datum = maker.exact()
        expected = by_fastavro(maker.schema, datum)
        assert expected is not None
        assert encoded(FORMS[form], maker.schema, datum) == expected


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_what_may_be_wrong_is_judged_as_fastavro_judges_it(
    form: str, schema: Schema, pool: Pool, seed: int
) -> None:
    """The encoder writes the same bytes or leaves it to the codec, which writes the same or refuses."""
    maker = Maker(schema, pool, seed)
    codec = Codec(schema, 1)
    for _ in range(BATCH):
        datum, _ = maker.spoilt(maker.junk())
        expected = by_fastavro(maker.schema, datum)
        assert encoded(FORMS[form], maker.schema, datum) in (expected, None)
        if expected is not None:
            assert codec.encode(datum)[5:] == expected
        else:
            with pytest.raises(SchemaError, match="not a "):
                codec.encode(datum)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_what_is_wrong_is_refused_with_its_path(schema: Schema, pool: Pool, seed: int) -> None:
    """The path of the one value that is of no Avro type, however deep it is."""
    maker = Maker(schema, pool, seed)
    codec = Codec(schema, 1)
    for _ in range(BATCH):
        datum, path = maker.spoilt(FOREIGN)
        with pytest.raises(SchemaError) as caught:
            codec.encode(datum)
        told = str(caught.value).removeprefix(f"not a {schema['name']}: ")
        assert told.startswith(f"{path}: must be " if path else "must be ")
