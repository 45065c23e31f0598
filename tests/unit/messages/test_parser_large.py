"""Large messages: ten times the largest bet is accepted, and no larger message does harm."""

from __future__ import annotations

import contextlib
import gc
import json
from typing import Any

import pytest

from bridge.config import FeedSettings
from bridge.errors import ConversionError
from bridge.messages.extras import MOST_EXTRAS
from bridge.messages.parser import (
    BET_BYTES,
    BET_VALUES,
    MOST_VALUES,
    SMALL_BYTES,
    MessageParser,
    exceeds_any_bet,
)
from tests.bombs import bet
from tests.malformed import AN_ITEM, MALFORMED

SELECTIONS = 50
"""Bookmakers end accumulators at 20 or 30 selections."""
BUILDER_ITEMS = 20
"""And a bet builder at 12 or 20 legs; here each of the selections is one."""
NAME = "ł" * 40
"""Of a team or a market, six bytes a character as `\\u0142`; two teams make the name of an event."""
MAP = {f"property{n}": "ł" * 8 for n in range(2)}
TIME = "2026-01-31T12:00:00.123456789+00:00"
INT32, INT64, DOUBLE = -(2**31), -(2**63), -1.2345678901234567e-300


def largest_bet() -> bytes:
    """Return the largest conceivable bet: nothing is null, and every value is as long as possible."""
    market = {"id": INT64, "type": INT64, "name": NAME, "properties": MAP}
    settlement = {
        "settlementResult": 7,
        "settlementTime": TIME,
        "settlementVersion": INT32,
        "isManualSettlement": False,
    }
    ids = dict.fromkeys(["selectionId", "competitionId", "countryId", "sportId", "limitsRatingId"], INT64)
    prices = dict.fromkeys(["price", "manualPrice", "alternativePrice"], DOUBLE)
    item = AN_ITEM | ids | prices
    item |= dict.fromkeys(["limitsFactor", "deadHeatFactor", "placeDeadHeatFactor"], DOUBLE)
    item |= {
        "event": {"id": INT64, "name": NAME * 2, "isLive": False, "startTime": TIME},
        "market": market,
        "settlement": settlement,
        "eachWayPrice": {"win": DOUBLE, "place": DOUBLE},
        "version": INT32,
        "parameters": MAP,
        "betBuilderItems": [{"market": market, "selectionId": INT64, "settlement": settlement}]
        * BUILDER_ITEMS,
    }
    message = bet("b" * 1000, settlementTime=TIME, selections=[item] * SELECTIONS)
    return json.dumps(message | {"pingId": "p" * 1000}).encode()


def reason_of(data: bytes) -> str:
    with pytest.raises(ConversionError) as caught:
        MessageParser().parse(data)
    return caught.value.reason


def test_ten_times_the_largest_bet_is_accepted() -> None:
    data = largest_bet()
    assert len(data) > 700_000
    assert len(data) <= BET_BYTES
    assert sum(data.count(mark) for mark in (b",", b"{", b"[")) <= BET_VALUES
    assert not exceeds_any_bet(data)
    assert 10 * len(data) <= FeedSettings().max_message_bytes
    decoded = MessageParser().parse(data)
    assert decoded.bet
    assert decoded.bet["selections"]
    items = decoded.bet["selections"][-1]["betBuilderItems"]
    assert items
    assert len(items) == BUILDER_ITEMS


def test_too_many_values_are_refused_unparsed() -> None:
    assert exceeds_any_bet(b"[" + b"," * (MOST_VALUES - 1))
    for data in (b"[" + b"," * MOST_VALUES, b"{" * (MOST_VALUES + 1), b'"[' + b"," * MOST_VALUES):
        with pytest.raises(ConversionError, match=r"\d+ values are more than any bet has"):
            exceeds_any_bet(data)
        assert "more than any bet has" in reason_of(data)


@pytest.mark.parametrize("kind", MALFORMED)
def test_errors_in_a_large_message_are_those_of_a_small_one(kind: str) -> None:
    data, place = MALFORMED[kind](bet("b"), 0)
    assert place in reason_of(data + b" " * BET_BYTES)


@pytest.mark.parametrize("size", [0, BET_BYTES])
def test_a_large_message_is_repaired_as_a_small_one(size: int) -> None:
    message = bet("b")
    plain = MessageParser().parse(json.dumps(message).encode()).bet
    message["data"]["new"] = {"x": [1, {}]}
    message["data"]["selections"] = [AN_ITEM | {"other": 1}]
    del message["data"]["partialRefund"]
    decoded = MessageParser(frozenset({"data.partialRefund"})).parse(
        json.dumps(message).encode() + b" " * size
    )
    assert decoded.bet == plain
    assert decoded.extras == ("data.selections[].other", "data.new")


def test_missing_fields_are_named_with_their_place() -> None:
    message = bet("b", selections=[AN_ITEM, {**AN_ITEM, "market": {"id": 1}}, {}], filler="x" * BET_BYTES)
    message["pingId"] = "p"
    with pytest.raises(ConversionError) as caught:
        MessageParser().parse(json.dumps(message).encode())
    assert caught.value.reason.startswith(
        "data.selections[1].market.type: Field required; data.selections[2].selectionId: Field required; "
    )
    assert caught.value.reason.count("required") == 5
    assert caught.value.ping_id == "p"


def test_of_many_unknown_fields_some_are_named() -> None:
    message: dict[str, Any] = bet("b", **{f"{n:05}" + "x" * 100: n for n in range(50_000)})
    decoded = MessageParser().parse(json.dumps(message).encode())
    assert decoded.bet
    assert len(decoded.extras) == MOST_EXTRAS
    assert decoded.extras[0] == f"data.00000{'x' * 54}…"


@pytest.mark.parametrize("document", ["?", "1", "{}", '{"data":{"betId":1}}', '{"data":{},"x":1}'])
@pytest.mark.parametrize("size", [0, BET_BYTES])
def test_a_refused_message_is_freed_at_once(document: str, size: int) -> None:
    parser, data = MessageParser(), document.encode() + b" " * size
    gc.collect()  # what other tests have left is theirs to answer for
    gc.disable()
    gc.freeze()  # only what comes from now on is looked through
    try:
        for _ in range(3):
            with contextlib.suppress(ConversionError):
                parser.parse(data)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_reason_holds_little_of_a_long_value() -> None:
    reason = reason_of(json.dumps(bet("b" * 100_000 + "😀")).encode())
    assert reason == f'data.betId: String should have at most 1000 characters, got "{"b" * 38}…'


def test_a_large_message_of_unknown_fields_is_not_empty() -> None:
    for size in (100, SMALL_BYTES + 1, BET_BYTES + 1):
        data = b'{"bet":"' + b"x" * size + b'","pingId":null}'
        with pytest.raises(ConversionError, match="neither pingId nor data, but: bet") as caught:
            MessageParser().parse(data)
        assert caught.value.extras == ("bet",)
