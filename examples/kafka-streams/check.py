"""What the rows must be: under each key, what each settlement of the bet made of it, in order and once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from examples.truth import RESULTS, Truth, market, micros

MOST_DECIMALS = 8
Row = dict[str, Any]


def differences(rows: Sequence[Mapping[str, Any]], truth: Truth) -> Iterator[str]:
    """Yield each key whose records are not what they must be."""
    found = defaultdict[str, list[Row | None]](list)
    for row in rows:
        found[row["key"]].append(_compared(row["value"]))
    wanted = expected(truth)
    for key in wanted | found:
        if len(found[key]) != len(wanted[key]):
            yield f"{key}: {len(found[key])} records instead of {len(wanted[key])}"
        for number, (got, row) in enumerate(zip(found[key], wanted[key], strict=False)):
            yield from (f"{key}, record {number}: {difference}" for difference in _different(got, row))


def expected(truth: Truth) -> defaultdict[str, list[Row | None]]:
    """Return the rows by key, in order; None is a tombstone."""
    rows = defaultdict[str, list[Row | None]](list)
    counts: dict[str, int] = {}
    for bet in truth.bets:
        bet_id, items = bet["betId"], bet.get("selections") or []
        for index in range(max(len(items), counts.get(bet_id, 0))):
            row = _row(bet, items, index, truth) if index < len(items) else None
            rows[f"{bet_id}:{index}"].append(row)
        counts[bet_id] = len(items)
    return rows


def _row(bet: dict[str, Any], items: list[dict[str, Any]], index: int, truth: Truth) -> Row:
    item, amount = items[index], bet.get("amount")
    event = item.get("event")
    return {
        "betId": bet["betId"],
        "index": index,
        "settlementVersion": bet["settlementVersion"],
        "settlementTime": micros(bet["settlementTime"]),
        "betSettlement": RESULTS[bet["betSettlement"]],
        "currency": amount and amount.get("currency"),
        "stake": amount and f"{Decimal(amount['value']).scaleb(-amount['precision']):f}",
        "payout": _payout(bet["payout"], amount),
        "selectionId": item["selectionId"],
        "result": _result(item),
        "sport": truth.text("sport", item["sportId"]),
        "league": truth.text("league", item["competitionId"]),
        "region": truth.text("region", item["countryId"]),
        "event": truth.text("event", event and event["id"]),
        **_picked(item, item, truth),
        "parts": [
            {"result": _result(part), **_picked(item, part, truth)}
            for part in item.get("betBuilderItems") or ()
        ],
    }


def _picked(item: dict[str, Any], part: dict[str, Any], truth: Truth) -> Row:
    return {
        "market": truth.text("market", market(item, part)),
        "selection": truth.text("selection", part["selectionId"]),
    }


def _result(item: dict[str, Any]) -> str | None:
    settlement = item.get("settlement")
    return settlement and RESULTS[settlement["settlementResult"]]


def _payout(payout: float, amount: dict[str, Any] | None) -> str:
    """A payout as the decimal that its double stands for, with the decimals of the stake or more."""
    precision = amount["precision"] if amount else 0
    digits = f"{payout:.15g}" if abs(payout) < 1e13 else repr(float(payout))
    exact = round(Decimal(digits), max(precision, MOST_DECIMALS))
    least = min(precision, MOST_DECIMALS)
    whole, _, decimals = f"{exact:f}".partition(".")
    decimals = decimals.rstrip("0").ljust(least, "0")
    return f"{whole}.{decimals}" if decimals else whole


def _different(got: Row | None, wanted: Row | None) -> Iterator[str]:
    if got is None or wanted is None:
        if got is not wanted:
            yield f"{got} instead of {wanted}"
        return
    for name in wanted | got:
        one, other = got.get(name, "absent"), wanted.get(name, "absent")
        if one != other:
            yield f"{name} is {one!r} instead of {other!r}"


def _compared(row: Row | None) -> Row | None:
    """A row with its time as a number, because it may be written in several ways."""
    return row and {**row, "settlementTime": micros(row["settlementTime"])}
