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
from bridge.messages.converter import Conversion, Converter, make_converter
from bridge.messages.parser import MessageParser
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
    """Key, version and settlementTime are returned with it."""
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
    """It may be a ping, a ping with a bet, or empty."""
    assert convert(b'{"pingId":"a","data":null}') == ("a", None, ())
    assert convert(b'{"data":null}') == convert(b"{}") == (None, None, ())
    _, bet, _ = convert(encode(EXAMPLE))
    assert bet
    assert convert(encode(EXAMPLE | {"pingId": "a"})) == ("a", bet, ())


@WAYS
def test_errors_are_those_of_pydantic(convert: Convert) -> None:
    """They name the path, the rule, the value and the ping id of the message."""
    with pytest.raises(ConversionError) as caught:
        convert(encode({"pingId": "a", "data": EXAMPLE["data"] | {"payout": True}}))
    assert caught.value.reason == "data.payout: Input should be a valid number, got true"
    assert caught.value.ping_id == "a"
    with pytest.raises(ConversionError, match="the message: Input should be an object"):
        convert(b"[]")


@WAYS
def test_an_unknown_field_is_named(convert: Convert) -> None:
    """The bet is the same as without it."""
    message = EXAMPLE | {"data": EXAMPLE["data"] | {"new": 1}, "newer": {}}
    _, bet, _ = convert(encode(EXAMPLE))
    assert convert(encode(message)) == (None, bet, ("data.new", "newer"))


def test_a_field_that_may_be_missing_is_its_zero() -> None:
    """The transcoder leaves a message without settlementVersion or settlementTime to pydantic."""
    allowed = ("data.payout", "data.betSettlement", "data.settlementTime", "data.selections[].limitsFactor")
    [item] = EXAMPLE["data"]["selections"]
    item = {name: value for name, value in item.items() if name != "limitsFactor"}
    for *missing, is_taken in (
        ("payout", True),
        ("payout", "betSettlement", True),
        ("settlementTime", False),
    ):
        data = {name: value for name, value in EXAMPLE["data"].items() if name not in missing}
        message = encode({"data": data | {"selections": [item]}})
        expected = by_pydantic(*allowed).convert(message)
        assert by_transcoder(*allowed).convert(message) == expected
        if is_taken:
            assert by_transcoder(*allowed).transcode(message) == expected
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


def test_a_large_message_is_transcoded_unless_a_number_may_be_too_long() -> None:
    """pydantic refuses a number of more than 4,300 digits, anywhere in the message."""
    item = EXAMPLE["data"]["selections"][0]
    text = json.dumps({"data": EXAMPLE["data"] | {"selections": [item] * 50, "payout": 1.25}})
    assert by_transcoder().transcode(text.encode()) == by_pydantic().convert(text.encode())
    for place in range(0, 9000, 1500):
        data = (" " * place + text.replace("1.25", f"1{'0' * 4300}e-4300")).encode()
        with pytest.raises(ValueError, match=r"^$"):
            by_transcoder().transcode(data)
        with pytest.raises(ConversionError, match="number out of range"):
            by_transcoder().convert(data)


@pytest.mark.parametrize("choice", ["pydantic", "compiled"])
def test_a_schema_unlike_the_model_is_an_error_of_each_message(choice: Any) -> None:
    """The error has the ping id. If the transcoder was chosen, the log says why it is not used."""
    with capture_logs() as logs:
        convert = make_converter(choice, MessageParser(), NARROW).convert
    assert [log["log_level"] for log in logs] == ["warning"] * (choice == "compiled")
    with pytest.raises(ConversionError, match="not a SettledBet: betId: must be an integer") as caught:
        convert(encode(EXAMPLE | {"pingId": "a"}))
    assert caught.value.ping_id == "a"


def test_the_transcoder_is_used_if_it_is_chosen_and_compiled() -> None:
    """Otherwise pydantic is faster: the log has a warning."""
    with capture_logs() as logs:
        plain = make_converter("pydantic", MessageParser(), CODEC)
        asked = make_converter("compiled", MessageParser(), CODEC)
    assert [log["log_level"] for log in logs] == ([] if compiled() else ["warning"])
    assert plain.convert(encode(EXAMPLE)) == asked.convert(encode(EXAMPLE))
    assert asked.fallbacks == 0
    ping = asked.convert(encode({"pingId": "a"}))
    assert ping == plain.convert(encode({"pingId": "a"}))
    assert asked.fallbacks == compiled(), "what is left to pydantic is counted"
    assert plain.fallbacks == 0
