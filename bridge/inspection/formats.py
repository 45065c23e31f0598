"""Prints settled bets as a table, JSON lines or CSV.

None of them shows a raw double as money: a stake is exact, a payout the decimal that its double stands for.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, BinaryIO, Final, Literal, TypeAlias

import orjson

from bridge.avro.schemas import Fields
from bridge.clock import MICROS
from bridge.formatting import format_micros, format_utc
from bridge.reader import Bet, ItemNames, Names
from bridge.reader.money import PAYOUTS, format_payout, format_stake, payout_text, precision_of, stake_text

Format: TypeAlias = Literal["table", "json", "csv", "avro", "parquet"]
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
    """Return a whole record. Date-times are microseconds, as in Avro; payouts are decimals."""
    value = bet.value
    precision = precision_of(value["amount"])
    return {
        "topic": bet.topic,
        "partition": bet.partition,
        "offset": bet.offset,
        "timestamp": bet.timestamp,
        "key": bet.key,
        "value": {**value, **{name: payout_text(value[name], precision) for name in PAYOUTS}},
        **({"names": [asdict(item) for item in names(bet)]} if names else {}),
    }


COLUMNS: Final = (
    *("betId", "settlementVersion", "settlementTime", "result", "isCancelled", "isRejected"),
    *("stake", "currency", *PAYOUTS, "items", "sports", "leagues"),
    *("receivedAt", "partition", "offset"),
)
"""The columns of CSV. With names, one more."""
CSV_FIELDS: Final[Fields] = {
    **{name: {} for name in ("betId", "settlementVersion", "settlementTime", "betSettlement")},
    **{name: {} for name in ("isCancelled", "isRejected", *PAYOUTS)},
    "amount": {name: {} for name in ("currency", "value", "precision")},
    "selections": {name: {} for name in ("sportId", "competitionId")},
}
"""What they are made of, and what a selection asks for."""
_NAMES: Final = "names"


def as_row(bet: Bet, names: NamesOf = None) -> list[Any]:
    """Return a bet flat, by `COLUMNS`: money in decimals, times in ISO 8601, ids of items in one text."""
    value, items, amount = bet.value, bet.items, bet.value["amount"]
    precision = precision_of(amount)
    row = [
        _text(bet.key),
        value["settlementVersion"],
        _text(format_micros(value["settlementTime"])),
        value["betSettlement"],
        "true" if value["isCancelled"] else "false",
        "true" if value["isRejected"] else "false",
        stake_text(amount),
        amount and _text(amount["currency"]),
        *[payout_text(value[name], precision) for name in PAYOUTS],
        len(items),
        _text(" ".join([str(item["sportId"]) for item in items])),
        _text(" ".join([str(item["competitionId"]) for item in items])),
        _text(format_micros(round(bet.received * MICROS))),
        bet.partition,
        bet.offset,
    ]
    if names:
        found = [as_text(item) for item in names(bet)]
        row.append(_text(" | ".join(name or "?" for name in found)) if any(found) else None)
    return row


def _text(cell: str | None) -> str | None:
    """Return a text without what a spreadsheet would run as a formula."""
    return f"'{cell}" if cell is not None and cell[:1] in _FORMULAS else cell


_FORMULAS: Final = frozenset("=+-@\t\r")


def json_writer(file: BinaryIO, names: NamesOf) -> Callable[[Bet], object]:
    """Return what writes a bet as a line of JSON."""
    return lambda bet: file.write(orjson.dumps(as_json(bet, names), option=orjson.OPT_APPEND_NEWLINE))


def csv_writer(file: BinaryIO, names: NamesOf, *, head: bool = True) -> Callable[[Bet], object]:
    """Return what writes a bet as a line of CSV as of RFC 4180, with a head unless the file has one."""
    row = csv.writer(codecs.getwriter("utf-8")(file)).writerow
    if head:
        row([*COLUMNS, _NAMES] if names else COLUMNS)
    return lambda bet: row(as_row(bet, names))
