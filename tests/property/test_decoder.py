"""Records are decoded as fastavro decodes them, however damaged: both give the same value, or both refuse.

fastavro also takes for records what Avro forbids: a length, branch or symbol below zero, a number of more
than 64 bits. `make test` tries some thousands; after a change of the decoder, try more:

    DECODED=300000 .venv/bin/python -m pytest -n 0 tests/property/test_decoder.py
"""

from __future__ import annotations

import io
import os
from random import Random
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.read import SchemaResolutionError
from fastavro.schema import UnknownType
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.decoder import Decoder
from tests.avro_data import OWN, POOL, Maker, Pool, Schema, schemas

BATCH = 20
"""Records from each schema and pool."""
EXAMPLES = int(os.environ.get("DECODED", "6000")) // BATCH
ERRORS = SchemaResolutionError, ValueError, TypeError, LookupError, EOFError, ArithmeticError, MemoryError
SEED = st.integers(0, 2**32)
LENIENT = "below zero", "64 bits", "no symbol", "no branch", "in fewer bytes"
"""What our errors say where fastavro may read on, or make items without end."""


class Changed:
    """Another version of a schema: fields gone, added and moved, symbols gone, numbers wider."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def version(self, schema: Schema) -> Schema:
        match schema:
            case list():
                return [self.version(branch) for branch in schema]
            case {"type": "record", "fields": fields}:
                kept = [f | {"type": self.version(f["type"])} for f in fields if self._random.random() < 0.8]
                if self._random.random() < 0.3:
                    kept.insert(0, {"name": "new", "type": ["null", "string"], "default": None})
                if self._random.random() < 0.1:
                    kept.append({"name": "needed", "type": "long"})
                if self._random.random() < 0.2:
                    self._random.shuffle(kept)
                return schema | {"fields": kept}
            case {"type": "enum", "symbols": [*symbols]}:
                default = {"default": "else"} if self._random.random() < 0.5 else {}
                plain = {key: value for key, value in schema.items() if key != "default"}
                return plain | {"symbols": [*symbols[: self._random.randint(1, 3)], "else"], **default}
            case {"type": "array", "items": items}:
                return schema | {"items": self.version(items)}
            case {"type": "map", "values": values}:
                return schema | {"values": self.version(values)}
            case "long" if self._random.random() < 0.1:
                return "double"
        return schema

    def bytes(self, data: bytes) -> bytes:
        """The data with some changed, cut off or put in."""
        found, random = bytearray(data), self._random
        for _ in range(random.randint(0, 2)):
            at = random.randrange(len(found) + 1)
            match random.randrange(4):
                case 0:
                    del found[at:]
                case 1:
                    found[at:at] = random.randbytes(random.randint(1, 3))
                case 2:
                    del found[at : at + random.randint(1, 3)]
                case _ if at < len(found):
                    found[at] = random.choice([0, 1, 2, 3, 4, 127, 128, 255, random.randrange(256)])
        return bytes(found)


def by_fastavro(data: bytes, writer: Any, reader: Any) -> Any:
    """The value, or an error."""
    body = io.BytesIO(data)
    try:
        found = schemaless_reader(body, writer, reader)
    except ERRORS as error:
        return error
    return found if body.tell() == len(data) else ValueError("bytes too many")


def ours(data: bytes, decoder: Decoder) -> Any:
    try:
        return decoder.read(b"12345" + data, 5)
    except ValueError as error:
        return error


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(OWN) | schemas(), POOL, SEED)
def test_records_are_decoded_as_by_fastavro(schema: Schema, pool: Pool, seed: int) -> None:
    maker, changed = Maker(schema, pool, seed), Changed(Random(seed))
    try:
        reader = parse_schema(changed.version(schema), {})
    except UnknownType:  # one went before its name was used again
        reader = maker.schema
    decoder, quick = Decoder(maker.schema, reader, strict=True), Decoder(maker.schema, reader)
    full = Decoder(maker.schema, maker.schema)
    for _ in range(BATCH):
        out = io.BytesIO()
        datum = maker.exact()
        del datum["not in the schema"]
        schemaless_writer(out, maker.schema, datum)
        data = changed.bytes(out.getvalue())
        found, of_all = ours(data, decoder), ours(data, full)
        if isinstance(of_all, ValueError) and any(text in str(of_all) for text in LENIENT):
            continue
        whole = by_fastavro(data, maker.schema, None)  # what the reader lacks is not checked by fastavro
        assert repr(whole) == repr(of_all) or (
            isinstance(whole, Exception) and isinstance(of_all, ValueError)
        )
        expected = whole if isinstance(whole, Exception) else by_fastavro(data, maker.schema, reader)
        if isinstance(found, ValueError):
            assert isinstance(expected, Exception), found
        elif isinstance(expected, Exception) and not isinstance(expected, SchemaResolutionError):
            assert (
                expected is not whole
            )  # the size of a block, which is needed only to pass over it, is a lie
        else:
            # By their text: NaN equals itself, True is not 1, and the order of fields counts.
            assert repr(found) == repr(expected) == repr(ours(data, quick))
