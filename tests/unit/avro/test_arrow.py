"""Records become rows of Arrow with the values that they have when they are decoded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.arrow import Shape
from bridge.avro.codec import Codec
from bridge.errors import SchemaError
from tests.avro_data import OWN, POOL, Maker, Pool, Schema, schemas


def plain(value: Any) -> Any:
    """A value of Arrow as the codec decodes it: maps are dicts."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        pairs = bool(value) and all(isinstance(each, tuple) for each in value)
        return {key: plain(each) for key, each in value} if pairs else [plain(each) for each in value]
    return value


def decoded(value: Any) -> Any:
    """The same of a decoded value: an empty map is told from an empty list by nobody."""
    if isinstance(value, dict):
        return {name: decoded(each) for name, each in value.items()} if value else []
    return [decoded(each) for each in value] if isinstance(value, list) else value


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, st.integers(0, 2**32))
def test_rows_have_the_values_of_their_records(schema: Schema, pool: Pool, seed: int) -> None:
    maker = Maker(schema, pool, seed)
    shape, codec = Shape(schema), Codec(schema, 1)
    rows = shape.column()
    values = [codec.encode(maker.exact()) for _ in range(20)]
    try:
        expected = [decoded(codec.decode(value)) for value in values]
    except SchemaError as error:
        # Of items without bytes nobody knows whether their number is a lie. No schema of ours has them.
        assert "items in fewer bytes" in str(error)  # noqa: PT017
        return
    for value in values:
        with pytest.raises(SchemaError):
            codec.append(value[:-1], rows)
        codec.append(value, rows)
    found = shape.array(rows)
    found.validate(full=True)
    assert repr([decoded(plain(row)) for row in found.to_pylist()]) == repr(expected)
