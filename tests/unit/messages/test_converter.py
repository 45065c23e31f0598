"""Both ways of converting a message, and the choice between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.encoder import compiled
from bridge.avro.schemas import load
from bridge.errors import ConversionError
from bridge.messages.converter import Converter, make_converter
from bridge.messages.parser import MessageParser
from bridge.messages.transcoder import Conversion
from bridge.messages.transcoder_plan import make_transcoder

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE: dict[str, Any] = json.loads((EXAMPLES / "settled-bet.message.json").read_text())
CODEC = Codec(load("settled-bet"), 7)
NARROW = Codec({"type": "record", "name": "SettledBet", "fields": [{"name": "betId", "type": "long"}]}, 7)


def by_pydantic(*optional_fields: str) -> Converter:
    return Converter(MessageParser(frozenset(optional_fields)), CODEC)


def by_transcoder(*optional_fields: str) -> Converter:
    parser = MessageParser(frozenset(optional_fields))
    return Converter(parser, CODEC, make_transcoder(CODEC, parser.zeros))


Convert = Callable[[bytes], Conversion]
WAYS = pytest.mark.parametrize(
    "convert", [by_pydantic().convert, by_transcoder().convert], ids=["pydantic", "transcoder"]
)


def encode(message: object) -> bytes:
    return json.dumps(message).encode()


@WAYS
def test_the_example_becomes_its_record(convert: Convert) -> None:
    ping_id, bet, extras = convert((EXAMPLES / "settled-bet.message.json").read_bytes())
    record = json.loads((EXAMPLES / "settled-bet.record.json").read_text())
    assert (ping_id, extras) == (None, ())
    assert bet
    key, version, settled_at, value = bet
    assert CODEC.decode(value) == record
    assert key == record["betId"].encode()
    assert (version, settled_at) == (record["settlementVersion"], record["settlementTime"])


@WAYS
def test_a_message_need_not_hold_a_bet(convert: Convert) -> None:
    assert convert(b'{"pingId":"a","data":null}') == ("a", None, ())
    assert convert(b'{"data":null}') == convert(b"{}") == (None, None, ())
    _, bet, _ = convert(encode(EXAMPLE))
    assert bet
    assert convert(encode(EXAMPLE | {"pingId": "a"})) == ("a", bet, ())


@WAYS
def test_an_unknown_field_is_named(convert: Convert) -> None:
    message = EXAMPLE | {"data": EXAMPLE["data"] | {"new": {"a": ["b", {"c": None}]}}, "newer": {}}
    _, bet, _ = convert(encode(EXAMPLE))
    assert convert(encode(message)) == (None, bet, ("data.new", "newer"))
    assert convert(encode(EXAMPLE)) == (None, bet, ())
    assert convert(b'{"pingId":"a","new":"b"}') == ("a", None, ("new",))
    with pytest.raises(ConversionError, match="neither pingId nor data, but: new"):
        convert(b'{"new":"b"}')
    with pytest.raises(ConversionError, match=r'neither pingId nor data, but: ""$'):
        convert(encode({"": EXAMPLE["data"]}))


@pytest.mark.parametrize(("depth", "is_taken"), [(99, True), (101, False), (250, False)])
def test_an_unknown_field_that_is_nested_deeply_is_left_to_pydantic(depth: int, is_taken: bool) -> None:
    message = encode(EXAMPLE).removesuffix(b"}") + b',"new":' + b"[" * depth + b"]" * depth + b"}"
    if is_taken:
        assert by_transcoder().transcode(message) == by_pydantic().convert(message)
        return
    with pytest.raises(ValueError, match=r"^$"):
        by_transcoder().transcode(message)
    if depth > 200:
        with pytest.raises(ConversionError, match="recursion limit exceeded"):
            by_transcoder().convert(message)


@pytest.mark.parametrize(
    "missing", [["payout"], ["payout", "betSettlement"], ["settlementTime"], ["settlementVersion"]]
)
def test_a_field_that_may_be_missing_is_its_zero(missing: list[str]) -> None:
    allowed = *(f"data.{name}" for name in missing), "data.selections[].limitsFactor"
    [item] = EXAMPLE["data"]["selections"]
    item = {name: value for name, value in item.items() if name != "limitsFactor"}
    data = {name: value for name, value in EXAMPLE["data"].items() if name not in missing}
    message = encode({"data": data | {"selections": [item]}})
    transcoder = by_transcoder(*allowed)
    transcoder.transcode(encode(EXAMPLE))
    assert transcoder.transcode(message) == by_pydantic(*allowed).convert(message)
    with pytest.raises(ConversionError, match="Field required"):
        by_transcoder().convert(message)


@pytest.mark.parametrize(
    "text", [r"\"", r"\\", r"\\\"", r"\\\\", r"\"\"x\"\\\"", r"\u0022", r"\u005c", r"\u005c\"", ""]
)
def test_a_quotation_mark_in_a_string_does_not_count_as_its_end(text: str) -> None:
    data = encode(EXAMPLE | {"data": EXAMPLE["data"] | {"betId": "MARK"}}).replace(
        b"MARK", b"x" + text.encode()
    )
    assert by_transcoder().transcode(data) == by_pydantic().convert(data)
    with pytest.raises(ValueError, match=r"^$"):
        by_transcoder().transcode(data.replace(b'"payout":', b'"payout": 1, "payout":'))


@pytest.mark.parametrize("unit", ["x", r"\"", r"\\", r"\\\"", '","', "\x7f"])
def test_every_quotation_mark_counts_wherever_it_is(unit: str) -> None:
    transcode = by_transcoder().transcode
    for size in [*range(24), *range(2_024, 2_050), *range(4_070, 4_090)]:
        for shift in range(3):
            strings = f'["{"x" * shift}{unit * (size // len(unit))}"]'
            assert transcode(f'{{"pingId":"a","new":{strings}}}'.encode()) == ("a", None, ("new",))
            with pytest.raises(ValueError, match=r"^$"):
                transcode(f'{{"pingId":"b","pingId":"a","new":{strings}}}'.encode())


def test_a_large_message_is_transcoded_unless_a_number_may_be_too_long() -> None:
    item = EXAMPLE["data"]["selections"][0]
    text = json.dumps({"data": EXAMPLE["data"] | {"selections": [item] * 50, "payout": 1.25}})
    assert by_transcoder().transcode(text.encode()) == by_pydantic().convert(text.encode())
    for place in range(0, 9000, 1500):
        data = (" " * place + text.replace("1.25", f"1{'0' * 4300}e-4300")).encode()
        with pytest.raises(ValueError, match=r"^$"):
            by_transcoder().transcode(data)
        with pytest.raises(ConversionError, match="number out of range"):
            by_transcoder().convert(data)


def test_a_schema_unlike_the_model_is_an_error_of_each_message() -> None:
    with capture_logs() as logs:
        convert = make_converter(MessageParser(), NARROW).convert
    assert [log["log_level"] for log in logs] == ["warning"] * compiled()
    with pytest.raises(ConversionError, match="not a SettledBet: betId: must be an integer") as caught:
        convert(encode(EXAMPLE | {"pingId": "a"}))
    assert caught.value.ping_id == "a"


def test_a_bet_that_a_record_cannot_hold_is_an_error_of_its_message() -> None:
    body = encode(EXAMPLE | {"pingId": "a"})
    _, bet, _ = by_pydantic().convert(body)
    assert bet is not None
    size = len(bet[0]) + len(bet[3])
    assert make_converter(MessageParser(), CODEC, size).convert(body)[1] == bet
    with pytest.raises(ConversionError, match=f"^data: .* than a record: {size - 1}$") as caught:
        make_converter(MessageParser(), CODEC, size - 1).convert(body)
    assert caught.value.ping_id == "a"


def test_the_transcoder_is_used_if_it_is_compiled() -> None:
    converter = make_converter(MessageParser(), CODEC)
    assert converter.convert(encode(EXAMPLE)) == by_pydantic().convert(encode(EXAMPLE))
    assert converter.fallbacks == 0
    with pytest.raises(ConversionError):
        converter.convert(b"[]")
    assert converter.fallbacks == compiled()
