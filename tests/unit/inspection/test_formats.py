"""Settled bets as lines of a table, JSON, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import RegistrySettings
from bridge.errors import SchemaError
from bridge.inspection.formats import (
    COLUMNS,
    CSV_FIELDS,
    HEAD,
    as_json,
    as_line,
    as_row,
    as_text,
    csv_writer,
    fitting,
    json_writer,
)
from bridge.reader import BETS, Bet, ItemNames, LegNames
from bridge.reader.decoding import MessageDecoder
from bridge.registry import Registry
from tests.bets import BARE_BET
from tests.unit.avro.test_decoder import FULL_BET

KEY = "5f0c1d9e-7a3b-4c52-9d64-0b8a2f1e0e8d"
VALUE: Any = BARE_BET | {
    "settlementTime": 1_790_000_000_000_000,
    "settlementVersion": 2,
    "payout": 12.5,
    "amount": {
        "value": 1050,
        "precision": 2,
        "currency": "EUR",
        "placementExchangeRate": 1.0,
        "settlementExchangeRate": None,
    },
    "selections": [{"sportId": 11, "competitionId": 5}, {"sportId": 12, "competitionId": 6}],
}


def bet(key: str = "b", **changes: Any) -> Bet:
    return Bet(
        topic="settlement.bets",
        partition=3,
        offset=9,
        timestamp=1_790_000_001_000,
        key=key,
        value=VALUE | {"betId": key} | changes,
    )


NAMES = ItemNames(
    event="Malmö – Gent",
    competitors=["Malmö", "Gent"],
    sport="Football",
    league="Cup",
    region=None,
    market="Winner",
    selection="Malmö",
    legs=[],
)


TOO_LONG = {"value": 123_456_789_012_345, "precision": 8, "currency": "USDT"}


@pytest.mark.parametrize(("width", "lines"), [(120, 1), (113, 1), (112, 2), (80, 2)])
@pytest.mark.parametrize("changes", [{}, {"payout": 123_456_789_012.25}, {"amount": TOO_LONG}])
def test_a_line_fits_the_terminal_and_has_the_whole_id(width: int, lines: int, changes: Any) -> None:
    first, *more = as_line(bet(KEY, **changes), width).splitlines()
    assert 1 + len(more) == lines
    assert (more or [first])[-1].endswith(f"  {KEY}")
    assert first[74] == "2", "the number of items"
    assert max(map(len, (first, HEAD, *more))) <= width
    assert (HEAD[70:75], HEAD[77:]) == ("items", "bet")


def test_a_text_that_is_cut_says_so() -> None:
    assert (fitting("Malmö – Gent", 12), fitting("Malmö – Gent", 11)) == ("Malmö – Gent", "Malmö – Ge…")


def test_names_on_a_line() -> None:
    assert as_text(NAMES) == "Malmö – Gent; Cup, Football; Winner: Malmö"
    nothing = ItemNames(None, [], None, None, None, None, None, [LegNames("a", "x"), LegNames("b", None)])
    assert as_text(nothing) == "?: x + ?"
    assert as_text(replace(nothing, event="Final", legs=[])) == "Final"


def test_names_that_are_missing_are_null() -> None:
    none = ItemNames(None, [], None, None, None, None, None, [])
    assert as_row(bet(), lambda _: [none, NAMES])[-1] == f"? | {as_text(NAMES)}"
    assert [*as_json(bet(), lambda _: [none])["names"][0].values()] == [None, [], *[None] * 5, []]
    file = io.BytesIO()
    csv_writer(file, lambda _: [none, none])(bet())
    assert file.getvalue().endswith(b",9,\r\n")


def test_a_redriven_bet_was_received_when_its_message_was() -> None:
    redriven = replace(bet(), redriven_from=1_789_990_000.5)
    place = COLUMNS.index("receivedAt")
    assert (as_row(bet())[place], as_row(redriven)[place]) == (
        "2026-09-21T14:13:21Z",
        "2026-09-21T11:26:40.500000Z",
    )


def test_csv_survives_what_a_bet_may_hold() -> None:
    file = io.BytesIO()
    first = csv_writer(file, None)
    hostile = ['a"b\n,c', "=HYPERLINK(1)", "+1", "@x"]
    for key in hostile:
        first(bet(key, amount=None, payout=-5.0))
    second = csv_writer(file, None, head=False)
    second(bet("last", payout=1e12, amount={**VALUE["amount"], "precision": 9}))
    rows = list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))
    assert [row["betId"] for row in rows] == ['a"b\n,c', "'=HYPERLINK(1)", "'+1", "'@x", "last"]
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["payout"] == "-5"
    assert (rows[4]["stake"], rows[4]["payout"], rows[4]["sports"]) == (
        "0.000001050",
        "1000000000000",
        "11 12",
    )


def test_json_lines_end_in_line_ends() -> None:
    file = io.BytesIO()
    write = json_writer(file, None)
    write(bet("one\n"))
    write(bet("two"))
    assert [json.loads(line)["key"] for line in file.getvalue().splitlines()] == ["one\n", "two"]


def test_csv_needs_no_other_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec(load("settled-bet"), 7)
    registry = Registry(RegistrySettings(url="http://nowhere.invalid"))
    monkeypatch.setattr(registry, "schema_by_id", lambda _: load("settled-bet"))
    message = Message("t", 3, 9, b"b", codec.encode(FULL_BET), None, timestamp=(1, 1_790_000_001_000))
    whole, part = (MessageDecoder(BETS, registry, fields).decode(message) for fields in (None, CSV_FIELDS))
    assert isinstance(whole, Bet)
    assert isinstance(part, Bet)
    assert as_row(part) == as_row(whole)
    assert part.value.keys() < whole.value.keys()
    cut = Message("t", 3, 9, b"b", codec.encode(FULL_BET)[:-1], None, timestamp=(1, 0))
    with pytest.raises(SchemaError):
        MessageDecoder(BETS, registry, CSV_FIELDS).decode(cut)
