"""A recorded bet is sent as the provider sends bets: a bridge makes the recorded bytes of it again."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.messages.converter import Converter, make_converter
from bridge.messages.parser import MessageParser
from bridge_sandbox.provider.recording import Bets
from tests.bets import BARE_BET
from tests.messages import MESSAGE, RANDOM, SIMULATED, Node, spelt
from tests.recordings import bet, write

CODEC = Codec(load("settled-bet"), 1)
CODECS = st.sampled_from(["null", "deflate"])
PARSER = MessageParser()
CONVERTERS = [make_converter(PARSER, CODEC), Converter(PARSER, CODEC)]


def made_again(records: list[bytes], codec: str) -> list[bytes]:
    """What a bridge makes of records that were played from a file."""
    with TemporaryDirectory() as directory:
        path = write(Path(directory) / "bets.avro", map(CODEC.decode, records), codec=codec, block=2_000)
        bets = Bets([path])
        sent = [orjson.dumps({"data": bets.as_sent(place, 0)}) for place in range(len(records))]
    made = [[converter.convert(message)[1] for message in sent] for converter in CONVERTERS]
    assert made[0] == made[1]
    return [bet[3] for bet in made[0] if bet]


def recorded(message: bytes) -> bytes:
    """What a bridge publishes of a message."""
    converted = CONVERTERS[0].convert(message)[1]
    assert converted is not None
    return converted[3]


@settings(max_examples=150, deadline=None)
@given(bets=st.lists(MESSAGE, min_size=1, max_size=4), random=RANDOM, codec=CODECS)
def test_the_bytes_of_any_legal_bet_come_again(bets: list[Node], random: Random, codec: str) -> None:
    records = [recorded(spelt(message, random).encode()) for message in bets]
    assert made_again(records, codec) == records


@settings(max_examples=2)
@given(codec=CODECS)
def test_the_bytes_of_the_simulator_s_bets_come_again(codec: str) -> None:
    records = [recorded(message) for message in SIMULATED]
    assert made_again(records, codec) == records


def test_a_file_of_another_version_of_the_schema_is_sent_as_it_is(tmp_path: Path) -> None:
    fields = [field for field in load("settled-bet")["fields"] if field["name"] != "amount"]
    schema = load("settled-bet") | {"fields": [*fields, {"name": "channel", "type": ["null", "string"]}]}
    bets = Bets([write(tmp_path / "bets.avro", [bet(0, channel="web")], schema)])
    assert bets.as_sent(0, 0).keys() == (BARE_BET.keys() - {"amount"}) | {"channel"}
