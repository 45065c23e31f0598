"""What settlements.sql must make of the provider's bets and names, worked out anew in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from bridge.formatting import format_utc
from examples.truth import RESULTS, Truth, micros

MINUTE = 60_000_000
"""In microseconds."""
DELAY = 5_000_000
"""How far the watermark is behind the newest `settlementTime`, in microseconds."""
_EIGHT = Decimal("1e-8")
_DIGITS = 60
"""Of a sum, so that none is rounded."""

Rows = dict[tuple[Any, ...], dict[str, Any]]


def differences(rows: Sequence[Mapping[str, Any]], truth: Truth) -> Iterator[str]:
    """Yield each place where the rows are not what they had to be; nothing if all is right.

    How many settlements are late depends on how the partitions are read: not more than of a single partition.
    """
    profit, minutes = profit_and_loss(truth), settlements_by_minute(truth)
    yield from _compared("profit_and_loss", ("sportId", "leagueId", "currency"), rows, profit)
    for row in rows:
        expected = minutes.get((row.get("minute"),))
        if expected is not None and not 0 <= row["late"] <= expected["late"]:
            yield f"{row['minute']}: {row['late']} late, and {expected['late']} can be"
    on_time = {key: {k: v for k, v in row.items() if k != "late"} for key, row in minutes.items()}
    without = [{k: v for k, v in row.items() if k != "late"} for row in rows]
    yield from _compared("settlements_by_minute", ("minute",), without, on_time)


def profit_and_loss(truth: Truth) -> Rows:
    """Return the rows of the last settlements: (sportId, leagueId, currency) → row."""
    found: Rows = {}
    for bet in truth.last.values():
        if bet["isRejected"]:
            continue
        leagues = {(item["sportId"], item["competitionId"]) for item in bet.get("selections") or ()}
        sport, league = leagues.pop() if len(leagues) == 1 else (0, 0)
        amount = bet.get("amount") or {}
        currency = amount.get("currency") or ""
        key = sport, league, currency
        row = found.setdefault(
            key,
            {
                "sport": truth.text("sport", sport or None),
                "league": truth.text("league", league or None),
                "bets": 0,
                **dict.fromkeys(("stake", "payout", "profit"), Decimal(0) if currency else None),
            },
        )
        row["bets"] += 1
        if currency:
            with localcontext(prec=_DIGITS):
                stake = Decimal(amount["value"]).scaleb(-amount["precision"])
                payout = Decimal(repr(bet["payout"])).quantize(_EIGHT, ROUND_HALF_UP)
                row["stake"] += stake
                row["payout"] += payout
                row["profit"] += stake - payout
    return found


def settlements_by_minute(truth: Truth) -> Rows:
    """Return the rows of all settlements, `late` as in a topic with one partition: (minute,) → row."""
    found: dict[int, Counter[str]] = {}
    watermark = None
    for bet in truth.bets:
        settled = micros(bet["settlementTime"]) // 1000 * 1000
        if settled < 0:  # not set
            continue
        minute = settled // MINUTE * MINUTE
        row = found.setdefault(minute, Counter())
        row["settlements"] += 1
        row["won"] += RESULTS[bet["betSettlement"]] == "Win"
        row["late"] += watermark is not None and watermark >= minute + MINUTE
        watermark = settled - DELAY if watermark is None else max(watermark, settled - DELAY)
    return {
        (format_utc(minute / 1e6),): {name: row[name] for name in ("settlements", "won", "late")}
        for minute, row in found.items()
    }


def _compared(
    table: str, key: tuple[str, ...], rows: Sequence[Mapping[str, Any]], expected: Rows
) -> Iterator[str]:
    printed: Rows = {}
    for row in rows:
        if row["table"] == table:
            named = tuple(row[name] for name in key)
            if named in printed:
                yield f"{table} {named} is there twice"
            printed[named] = {
                name: Decimal(value) if name in ("stake", "payout", "profit") and value is not None else value
                for name, value in row.items()
                if name not in ("table", *key)
            }
    for named in printed.keys() | expected.keys():
        if printed.get(named) != expected.get(named):
            yield f"{table} {named}: {printed.get(named)} instead of {expected.get(named)}"
