"""The floor's own reading of the messages."""

from __future__ import annotations

import io

from fastavro import parse_schema, schemaless_writer

from benchmarks import sink
from benchmarks.messages import Block
from benchmarks.models import Message
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.messages.parser import MessageParser


def test_the_floor_publishes_what_the_bridge_publishes() -> None:
    schema, codec, parser = (
        parse_schema(sink.schema()),
        Codec(load("settled-bet"), READ_ONLY),
        MessageParser(),
    )
    for body in Block().bodies()[::5]:
        bet, model = parser.parse(body).bet, Message.model_validate_json(body).data
        assert bet is not None
        assert model is not None
        out = io.BytesIO()
        out.write(b"\0" + READ_ONLY.to_bytes(4, "big"))
        schemaless_writer(out, schema, model.model_dump())
        assert codec.decode(out.getvalue()) == codec.decode(codec.encode(bet))
