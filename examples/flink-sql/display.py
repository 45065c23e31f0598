"""The rows of both results: tables for a person, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]

PROFIT, MINUTES = "profit_and_loss", "settlements_by_minute"
MINUTES_SHOWN = 5
"""The newest ones, on a terminal."""
_FRAMES = 12
"""Lines of both tables that are no rows: titles, heads, lines and what is left out."""


def as_json(table: str, row: Row) -> str:
    """Return a row as a JSON object. Money is text, so that no reader makes a double of it."""
    return json.dumps(
        {"table": table} | {name: _plain(value) for name, value in row.items()}, ensure_ascii=False
    )


def tables(profit: Iterable[Row], minutes: Iterable[Row], height: int | None = None) -> Group:
    """Return both tables: the groups with most bets first, and the newest minutes.

    `height` is that of the terminal; without it, all groups are shown.
    """
    groups = sorted(profit, key=lambda row: (-row["bets"], row["sportId"], row["leagueId"], row["currency"]))
    shown = groups if height is None else groups[: max(height - MINUTES_SHOWN - _FRAMES, 3)]
    left_out = f"{len(groups) - len(shown):,} groups more" if len(shown) < len(groups) else None
    by_group = Table(title="Profit and loss", title_justify="left", caption=left_out, box=SIMPLE_HEAD)
    by_group.add_column("bets on")  # the only column that gives way on a narrow terminal
    by_group.add_column("", no_wrap=True)
    for name in ("bets", "stake", "payout", "profit"):
        by_group.add_column(name, justify="right", no_wrap=True)
    for row in shown:
        money = (_money(row[name]) for name in ("stake", "payout", "profit"))
        bets_on = Text(_bets_on(row), no_wrap=True, overflow="ellipsis")
        by_group.add_row(bets_on, row["currency"], f"{row['bets']:,}", *money)
    by_minute = Table(title="Settlements by minute (UTC)", title_justify="left", box=SIMPLE_HEAD)
    by_minute.add_column("minute")
    for name in ("settlements", "won", "late"):
        by_minute.add_column(name, justify="right")
    for row in sorted(minutes, key=lambda row: row["minute"])[-MINUTES_SHOWN:]:
        counts = (f"{row[name]:,}" for name in ("settlements", "won", "late"))
        by_minute.add_row(f"{row['minute']:%Y-%m-%d %H:%M}", *counts)
    return Group(by_group, by_minute)


def _bets_on(row: Row) -> str:
    if not row["leagueId"]:  # or none: a bet without selections
        return "several leagues"
    return f"{row['sport'] or row['sportId']}, {row['league'] or row['leagueId']}"


def _money(amount: Decimal | None) -> str:
    """To the cent from a hundred on, and to 8 decimals below: the topic has all of them."""
    if amount is None:
        return "–"
    places = 2 if abs(amount) >= 100 else 8
    return _without_zeros(f"{amount:,.{places}f}")


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return _without_zeros(f"{value:f}")
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value


def _without_zeros(number: str) -> str:
    """Decimal.normalize would round to the digits of the context."""
    return number.rstrip("0").rstrip(".") if "." in number else number
