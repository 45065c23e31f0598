"""Prints settled bets, or writes them to a file: as a table, JSON lines, CSV or Parquet.

No format shows a raw double as money: a stake is exact, a payout the decimal that its double stands for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

import orjson

from bridge.clock import MICROS
from bridge.errors import BridgeError, SettingsError
from bridge.formatting import format_utc
from bridge.reader import Bet, ItemNames, Names
from bridge.reader.money import format_payout, format_stake, payout_of

Format: TypeAlias = Literal["table", "json", "csv", "parquet"]
NamesOf: TypeAlias = Callable[[Bet], list[ItemNames]] | None
"""Looks up the names of a bet's items; None without names."""


def lacking(names: Names, language: str) -> str:
    """Return which languages there are if nothing has a name in the one asked for; else nothing."""
    if language in names.languages():
        return ""
    there = ", ".join(sorted(names.languages())) or "none, `bridge translations` has published no names"
    return f"no translations in {language!r}; available languages: {there}"


_PAYOUT: Final = 18
_STAKE: Final = 17
HEAD: Final = (
    f"{'settled, UTC':<19}  {'result':<11} {'payout':>{_PAYOUT}} {'stake':>{_STAKE}} {'items':>5}  bet"
)
"""The columns of `as_line`."""


def as_line(bet: Bet, width: int) -> str:
    """Return a bet for people. An id that does not fit `width` columns is on a line of its own, whole."""
    value = bet.value
    settled = format_utc(value["settlementTime"] / MICROS)[:19].replace("T", " ")
    payout, stake = format_payout(value["payout"], value["amount"]), format_stake(value["amount"])
    money = f"{payout:>{_PAYOUT}} {stake:>{_STAKE}}"
    if len(money) > _PAYOUT + 1 + _STAKE:  # one of them is long: it takes room from the other
        money = f"{payout} {stake}".rjust(_PAYOUT + 1 + _STAKE)
    line = f"{settled:<19}  {f'{bet.result} v{bet.version}':<11} {money} {len(bet.items):>5}"
    apart = "  " if len(line) + 2 + len(bet.key) <= width else "\n  "
    return line + apart + bet.key


def fitting(text: str, width: int) -> str:
    """Return a text that fits this many columns; one that was cut ends with an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def as_text(names: ItemNames) -> str | None:
    """Return the names of an item on a line, `Event; League, Sport; Market: Selection`; None without any."""
    place = ", ".join(filter(None, (names.league, names.sport)))
    legs = [leg.selection for leg in names.legs] or [names.selection]
    chosen = f"{names.market or '?'}: {' + '.join(leg or '?' for leg in legs)}"
    parts = names.event, place, chosen if any((names.market, *legs)) else ""
    return "; ".join(filter(None, parts)) or None


def as_json(bet: Bet, names: NamesOf = None) -> dict[str, Any]:
    """Return a whole record. Date-times are microseconds, as in Avro; payout and partialRefund decimals."""
    value = bet.value
    return {
        "topic": bet.topic,
        "partition": bet.partition,
        "offset": bet.offset,
        "timestamp": bet.timestamp,
        "key": bet.key,
        "value": {
            **value,
            "payout": f"{payout_of(value['payout'], value['amount']):f}",
            "partialRefund": f"{payout_of(value['partialRefund'], value['amount']):f}",
        },
        **({"names": [asdict(item) for item in names(bet)]} if names else {}),
    }


COLUMNS: Final = (
    *("betId", "settlementVersion", "settlementTime", "result", "isCancelled", "isRejected"),
    *("stake", "currency", "payout", "partialRefund", "items", "sports", "leagues"),
    *("receivedAt", "partition", "offset"),
)
"""The columns of CSV and Parquet. With names, one more."""
_NAMES: Final = "names"


def as_row(bet: Bet, names: NamesOf = None) -> dict[str, Any]:
    """Return a bet flat, by `COLUMNS`: money in decimals, times in ISO 8601, ids of items in one text."""
    value, items = bet.value, bet.items
    return {
        "betId": bet.key,
        "settlementVersion": bet.version,
        "settlementTime": format_utc(value["settlementTime"] / MICROS),
        "result": bet.result,
        "isCancelled": value["isCancelled"],
        "isRejected": value["isRejected"],
        "stake": bet.stake,
        "currency": bet.currency,
        "payout": bet.payout,
        "partialRefund": payout_of(value["partialRefund"], value["amount"]),
        "items": len(items),
        "sports": " ".join(str(item["sportId"]) for item in items),
        "leagues": " ".join(str(item["competitionId"]) for item in items),
        "receivedAt": format_utc(bet.received),
        "partition": bet.partition,
        "offset": bet.offset,
        **({_NAMES: _joined([as_text(item) for item in names(bet)])} if names else {}),
    }


def _joined(names: Sequence[str | None]) -> str | None:
    return " | ".join(name or "?" for name in names) if any(names) else None


class JsonSink:
    """JSON lines."""

    def __init__(self, file: BinaryIO, names: NamesOf) -> None:
        self._file = file
        self._names = names

    def write(self, bet: Bet) -> None:
        """Write a line."""
        self._file.write(orjson.dumps(as_json(bet, self._names)) + b"\n")


class CsvSink:
    """CSV as of RFC 4180, with a head unless the file has one."""

    def __init__(self, file: BinaryIO, names: NamesOf, *, head: bool = True) -> None:
        self._file = file
        self._names = names
        self._line = io.StringIO()
        self._csv = csv.writer(self._line)
        if head:
            self._write([*COLUMNS, _NAMES] if names else COLUMNS)

    def write(self, bet: Bet) -> None:
        """Write a line."""
        self._write([_plain(cell) for cell in as_row(bet, self._names).values()])

    def _write(self, cells: Sequence[Any]) -> None:
        self._csv.writerow(cells)
        self._file.write(self._line.getvalue().encode())
        self._line.seek(0)
        self._line.truncate()


def _plain(cell: Any) -> Any:
    """Return a cell without an exponent, and without what a spreadsheet would run as a formula."""
    if isinstance(cell, Decimal):
        return decimal_text(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{cell}"
    return cell


_LONGEST: Final = 400
"""Digits of a decimal that is written without an exponent."""


def decimal_text(number: Decimal) -> str:
    """Return a decimal in digits; one of an impossible precision with its exponent."""
    return f"{number:f}" if abs(number.adjusted()) < _LONGEST else str(number)


class ParquetSink:
    """A Parquet file, in row groups of `_ROWS`. Needs pyarrow, the extra `parquet`.

    A money that does not fit decimal(38, 18) is null there; `record` has the whole as JSON.
    """

    def __init__(self, path: Path, names: NamesOf) -> None:
        arrow, parquet = _pyarrow()
        self._arrow = arrow
        self._names = names
        self._rows: list[dict[str, Any]] = []
        money = arrow.decimal128(38, _SCALE)
        time = arrow.timestamp("us", tz="UTC")
        types = {
            "settlementVersion": arrow.int64(),
            "settlementTime": time,
            "isCancelled": arrow.bool_(),
            "isRejected": arrow.bool_(),
            **dict.fromkeys(_MONEY, money),
            "items": arrow.int32(),
            "receivedAt": time,
            "partition": arrow.int32(),
            "offset": arrow.int64(),
        }
        columns = [*COLUMNS, *([_NAMES] if names else []), "record"]
        self._schema = arrow.schema([(name, types.get(name, arrow.string())) for name in columns])
        self._file = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, bet: Bet) -> None:
        """Add a row."""
        row = as_row(bet, self._names)
        row |= {name: _fitting(row[name]) for name in _MONEY}
        row["settlementTime"] = bet.value["settlementTime"]
        row["receivedAt"] = bet.received_at
        row["record"] = orjson.dumps(bet.value).decode()
        self._rows.append(row)
        if len(self._rows) >= _ROWS:
            self._flush()

    def close(self) -> None:
        """Write the last row group and the end of the file."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(self._arrow.Table.from_pylist(self._rows, self._schema))
            self._rows.clear()


_ROWS: Final = 10_000
_SCALE: Final = 18
_MONEY: Final = ("stake", "payout", "partialRefund")


def _fitting(number: Decimal | None) -> Decimal | None:
    """Return a decimal that decimal(38, 18) holds as it is written, else None."""
    if number is None or not number.is_finite() or number.adjusted() >= 38 - _SCALE:
        return None
    return None if int(number.as_tuple().exponent) < -_SCALE else number


def join_parquet(parts: Sequence[Path], path: Path) -> None:
    """Make one Parquet file of several, a row group at a time."""
    arrow, parquet = _pyarrow()
    try:
        schema = parquet.ParquetFile(parts[0]).schema_arrow
        with parquet.ParquetWriter(path, schema, compression="zstd") as whole:
            for part in parts:
                with parquet.ParquetFile(part) as file:
                    for group in range(file.num_row_groups):
                        whole.write_table(file.read_row_group(group))
    except arrow.ArrowInvalid as error:
        raise BridgeError(
            f"{path}: one of its parts cannot be read: {error}. Remove its .resume file."
        ) from None


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SettingsError(
            "--format parquet needs pyarrow: install the extra, pip install 'settlement-bridge[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet
