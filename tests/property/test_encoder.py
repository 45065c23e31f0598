"""For any schema and datum, the encoder writes and refuses the same as fastavro.

`make test` tries 3,000 valid and as many other data; after a change of the encoder, try more:

    ENCODED=150000 .venv/bin/python -m pytest -n 0 tests/property/test_encoder.py
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.errors import SchemaError
from tests.avro_data import FOREIGN, FORMS, OWN, POOL, Maker, Pool, Schema, by_fastavro, encoded, schemas

BATCH = 20
"""Records from each schema and pool."""
EXAMPLES = int(os.environ.get("ENCODED", "3000")) // BATCH
SEED = st.integers(0, 2**32)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_valid_data_are_written_as_by_fastavro(form: str, schema: Schema, pool: Pool, seed: int) -> None:
    maker = Maker(schema, pool, seed)
    for _ in range(BATCH):
        datum = maker.exact()
        expected = by_fastavro(maker.schema, datum)
        assert expected is not None
        assert encoded(FORMS[form], maker.schema, datum) == expected


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_other_data_are_written_as_by_fastavro_or_refused_with_a_reason(
    form: str, schema: Schema, pool: Pool, seed: int
) -> None:
    maker = Maker(schema, pool, seed)
    codec = Codec(schema, 1)
    for _ in range(BATCH):
        datum, _ = maker.spoilt(maker.junk())
        found = encoded(FORMS[form], maker.schema, datum)
        if found is not None:
            assert found == by_fastavro(maker.schema, datum)
            assert codec.encode(datum)[5:] == found
        else:
            with pytest.raises(SchemaError, match=r"not a .*(must be|is missing)"):
                codec.encode(datum)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_an_invalid_value_is_refused_with_its_path(schema: Schema, pool: Pool, seed: int) -> None:
    maker = Maker(schema, pool, seed)
    codec = Codec(schema, 1)
    for _ in range(BATCH):
        datum, path = maker.spoilt(FOREIGN)
        with pytest.raises(SchemaError) as caught:
            codec.encode(datum)
        text = str(caught.value).removeprefix(f"not a {schema['name']}: ")
        assert text.startswith(f"{path}: must be " if path else "must be ")
