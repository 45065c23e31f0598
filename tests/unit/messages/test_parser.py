"""The parser turns messages into data or reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import ConversionError
from bridge.messages.parser import MessageParser

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def message() -> dict[str, Any]:
    """Return the example's message, to be changed."""
    loaded: dict[str, Any] = json.loads((EXAMPLES / "settled-bet.message.json").read_text())
    return loaded


def encode(message: object) -> bytes:
    return json.dumps(message).encode()


def reason_of(data: bytes, parser: MessageParser | None = None) -> str:
    with pytest.raises(ConversionError) as caught:
        (parser or MessageParser()).parse(data)
    return caught.value.reason


def test_a_reason_is_the_path_the_rule_and_an_excerpt_of_the_value() -> None:
    data = b'{"pingId": "p", "data": {"betId": 5}}'
    assert reason_of(data).startswith(
        "data.betId: Input should be a valid string, got 5; data.betSettlement: Field"
    )


def test_a_reason_is_short(message: dict[str, Any]) -> None:
    item = message["data"]["selections"][0] | {
        "price": "x" * 100_000,
        "parameters": {"k" * 100_000: 1, "l": 2},
    }
    message["data"]["selections"] = [item] * 50
    message["data"] |= dict.fromkeys(["payout", "partialRefund", "isRejected", "amount"], "wrong")
    reason = reason_of(encode(message))
    assert len(reason) <= 500
    assert "data.selections[0].price: Input should be a valid number, got" in reason
    assert "; and 1 more" in reason


@pytest.mark.parametrize(
    ("data", "ping_id"),
    [
        (b'{"pingId":"p","data":{}}', "p"),
        (b'{"pingId":5,"data":{}}', None),
        (b"[]", None),
        (b'{"pingId":"p"', None),
    ],
)
def test_the_ping_of_a_bad_message_is_still_known(data: bytes, ping_id: str | None) -> None:
    with pytest.raises(ConversionError) as caught:
        MessageParser().parse(data)
    assert caught.value.ping_id == ping_id


def test_unknown_fields_are_accepted_and_named_once(message: dict[str, Any]) -> None:
    plain = MessageParser().parse(encode(message))
    message["data"]["selections"] *= 3
    three = MessageParser().parse(encode(message))
    for item in message["data"]["selections"]:
        item |= {"new": {"betId": [1, None]}}
    message["other"] = float("nan")
    message["data"] |= {"": 1, "other": "x"}
    decoded = MessageParser().parse(encode(message))
    assert decoded.bet == three.bet != plain.bet
    assert decoded.extras == ("data.selections[].new", "data.", "data.other", "other")


def test_an_unknown_field_does_not_hide_an_error(message: dict[str, Any]) -> None:
    message["data"] |= {"new": 1, "payout": "1"}
    assert reason_of(encode(message)) == 'data.payout: Input should be a valid number, got "1"'


def test_numbers_are_exact_beside_an_unknown_field(message: dict[str, Any]) -> None:
    data = encode(message).replace(b'"value": 1000', b'"value": 9223372036854775807')
    data = data.replace(b'"payout": 23.5', b'"payout": 36893488147419107329')
    straight = MessageParser().parse(data).bet
    assert MessageParser().parse(data.replace(b'"pingId"', b'"new": 1e999, "pingId"')).bet == straight
    assert straight
    assert straight["payout"] == 36893488147419111424.0
    assert straight["amount"]
    assert straight["amount"]["value"] == 2**63 - 1


def test_a_key_sent_twice_counts_the_last_time(message: dict[str, Any]) -> None:
    data = encode(message).replace(b'"payout": 23.5', b'"payout": "?", "payout": 7')
    for text in (data, data.replace(b'"pingId"', b'"new": 1, "new": 2, "pingId"')):
        bet = MessageParser().parse(text).bet
        assert bet
        assert bet["payout"] == 7


def test_a_missing_field_is_an_error_unless_allowed(message: dict[str, Any]) -> None:
    del message["data"]["selections"][0]["limitsFactor"]
    del message["data"]["isRejected"]
    del message["data"]["settlementTime"]
    message["data"]["selections"][0]["settlement"].pop("settlementResult")
    allowed = {
        "data.selections[].limitsFactor",
        "data.isRejected",
        "data.settlementTime",
        "data.selections[].settlement.settlementResult",
    }
    bet = MessageParser(frozenset(allowed)).parse(encode(message)).bet
    assert bet
    assert bet["selections"]
    assert bet["selections"][0]["limitsFactor"] == 0.0
    assert bet["selections"][0]["settlement"]
    assert bet["selections"][0]["settlement"]["settlementResult"] == "None"
    assert bet["isRejected"] is False
    assert bet["settlementTime"] == -62_135_596_800_000_000
    message["data"]["payout"] = None  # which is not the same as missing
    assert "data.payout" in reason_of(encode(message), MessageParser(frozenset({"data.payout"})))
    message["data"]["payout"] = 1.0
    for path in allowed:
        reason = reason_of(encode(message), MessageParser(frozenset(allowed - {path})))
        assert reason == f"{path.replace('[]', '[0]')}: Field required"
