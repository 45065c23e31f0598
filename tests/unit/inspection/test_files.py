"""Files for programs: what is in a container and in Parquet is what is in Kafka."""

from __future__ import annotations

import io
import sys
from copy import deepcopy
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import Message
from pyarrow import parquet

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.errors import SchemaError, SettingsError
from bridge.inspection.files import AvroSink, ParquetSink, join_parquet, parquet_of_bets
from bridge.reader import batches
from bridge.reader.batches import RowBatch
from bridge.reader.money import payout_of, stake_of
from tests.bets import BARE_BET
from tests.unit.avro.test_decoder import FULL_BET

SCHEMA = load("settled-bet")
NEWER = deepcopy(SCHEMA)
NEWER["fields"].append({"name": "channel", "type": ["null", "string"], "default": None})
SCHEMAS = {7: SCHEMA, 8: NEWER}
AMOUNT = FULL_BET["amount"]
CODEC = Codec(SCHEMA, 0, lambda id_: SCHEMAS[id_])


def message(offset: int = 0, id_: int = 7, **changes: Any) -> Message:
    """A bet in Kafka, in a version of the schema."""
    datum = BARE_BET | {"betId": "b", "channel": "web"} | changes
    value = Codec(SCHEMAS[id_], id_).encode(datum)
    return Message("t", 3, offset, b"b", value, None, timestamp=(1, 1_790_000_001_000 + offset))


class Skipped:
    def __init__(self) -> None:
        self.offsets: list[int | None] = []

    def __call__(self, message: Message, _: SchemaError) -> None:
        self.offsets.append(message.offset())


DAMAGED = Message("t", 3, 5, b"b", b"\0\0\0\0\7\xff", None, timestamp=(1, 0))
NAMELESS = Message(
    "t", 3, 7, b"\xff", Codec(SCHEMA, 7).encode(BARE_BET | {"betId": "b"}), None, timestamp=(1, 0)
)
FOREIGN = Message("t", 3, 6, b"b", b"no Avro", None, timestamp=(1, 0))


def test_a_container_has_the_bytes_of_the_records() -> None:
    file, skipped = io.BytesIO(), Skipped()
    first = AvroSink(file, SCHEMA, CODEC, skipped)
    assert first.write([message(0), message(1, selections=FULL_BET["selections"], amount=AMOUNT)]) == 2
    assert first.write([FOREIGN, DAMAGED, NAMELESS]) == 0
    more = AvroSink(file, SCHEMA, CODEC, skipped, head=False)
    assert more.write([message(2, id_=8, betId="newer")]) == 1
    assert (first.converted, more.converted, skipped.offsets) == (0, 1, [6, 5, 7])
    assert (message(0).value() or b"")[5:] in file.getvalue()
    file.seek(0)
    found: list[Any] = list(fastavro.reader(file))
    assert [bet["betId"] for bet in found] == ["b", "b", "newer"]
    assert found[1]["amount"] == AMOUNT
    assert "channel" not in found[2]


def rows(path: Path, messages: list[Message], **options: Any) -> list[dict[str, Any]]:
    """Write messages, and return what the file has then."""
    sink = parquet_of_bets(path, CODEC, Skipped(), **options)
    sink.write(messages)
    sink.close()
    found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return found


def test_parquet_is_nested_and_has_money_as_decimals(tmp_path: Path) -> None:
    one = message(9, selections=FULL_BET["selections"], amount=AMOUNT, payout=784.1062000000001)
    [row] = rows(tmp_path / "f", [one])
    selection = row["selections"][0]
    assert selection["sportId"] == FULL_BET["selections"][0]["sportId"]
    assert selection["type"] == FULL_BET["selections"][0]["type"]
    assert (row["stake"], row["exactPayout"]) == (stake_of(AMOUNT), Decimal("784.1062"))
    assert (row["payout"], row["exactPartialRefund"]) == (784.1062000000001, 0)
    assert row["receivedAt"].isoformat() == "2026-09-21T14:13:21.009000+00:00"
    assert (row["partition"], row["offset"]) == (3, 9)


def test_a_decimal_is_exact_or_null(tmp_path: Path) -> None:
    values, precisions = (0, 7, -1050, 2**63 - 1), (0, 2, 18, 19, -1, 2**31 - 1, -(2**31))
    payouts = 0.0, -0.0, -5.0, 0.1 + 0.2, 1e12, 1e19, 1e300, 5e-324, float("nan"), float("inf")
    cases = [(AMOUNT | {"value": v, "precision": p}, o) for v, p, o in product(values, precisions, payouts)]
    found = rows(tmp_path / "f", [message(amount=amount, payout=payout) for amount, payout in cases])
    for row, (amount, payout) in zip(found, cases, strict=True):
        stake, exact = stake_of(amount), payout_of(payout, amount)
        assert stake is not None
        holds = abs(amount["precision"]) <= 18 and abs(stake) < 10**20
        assert row["stake"] == (stake if holds else None)
        decimals = -int(exact.as_tuple().exponent) if exact.is_finite() else 99
        assert row["exactPayout"] == (exact if decimals <= 18 and abs(exact) < 10**20 else None)


def test_a_record_that_cannot_be_read_has_no_row(tmp_path: Path) -> None:
    skipped = Skipped()
    sink = ParquetSink(tmp_path / "f", RowBatch(SCHEMA, CODEC, skipped, 2))
    assert sink.write([message(0), DAMAGED, NAMELESS, message(1), FOREIGN, message(2, id_=8)]) == 3
    sink.close()
    assert parquet.read_table(tmp_path / "f")["offset"].to_pylist() == [0, 1, 2]
    assert skipped.offsets == [5, 7, 6]


def test_a_batch_is_full_by_rows_or_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = RowBatch(SCHEMA, CODEC, Skipped(), 2)

    def full() -> list[bool]:
        return [batch.is_full for n in range(2) if batch.add(message(n))]

    assert (full(), len(batch.take())) == ([False, True], 2)
    monkeypatch.setattr(batches, "MOST_BYTES", len(message().value() or b""))
    assert (batch.is_full, full()) == (False, [True, True])


def test_a_time_that_no_timestamp_holds_is_null(tmp_path: Path) -> None:
    value = message().value()
    sink = parquet_of_bets(tmp_path / "f", CODEC, Skipped())
    sink.write([Message("t", 0, n, b"b", value, None, timestamp=(1, at)) for n, at in enumerate([2**62, 5])])
    sink.close()
    assert parquet.read_table(tmp_path / "f")["receivedAt"].is_null().to_pylist() == [True, False]


def test_flat_has_a_row_an_item(tmp_path: Path) -> None:
    items = FULL_BET["selections"]
    two = [items[0] | {"selectionId": 1}, items[0] | {"selectionId": 2, "event": None}]
    messages = [message(0), message(1, selections=two), message(2, selections=[])]
    found = rows(
        tmp_path / "f",
        messages,
        flat=True,
        names=lambda of: ["first", None] if of.offset() == 1 else [],
    )
    assert [(row["offset"], row["selectionId"], row["names"]) for row in found] == [
        *((0, None, None), (1, 1, "first"), (1, 2, None), (2, None, None))
    ]
    assert [row["event.id"] for row in found] == [None, items[0]["event"]["id"], None, None]
    assert found[1]["settlement.settlementVersion"] is not None


def test_parts_are_joined(tmp_path: Path) -> None:
    parts = [tmp_path / "1", tmp_path / "2"]
    for number, part in enumerate(parts):
        rows(part, [message(number, amount=AMOUNT)])
    join_parquet(parts, tmp_path / "whole")
    assert parquet.read_table(tmp_path / "whole")["offset"].to_pylist() == [0, 1]


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "bridge.avro.arrow", raising=False)
    with pytest.raises(SettingsError, match="need pyarrow: install the extra"):
        parquet_of_bets(tmp_path / "f", CODEC, Skipped())
