"""Shows a row to a person: two lines, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

SHORT = 13
"""Characters of a betId that are shown."""
MOST_DECIMALS = 8


def lines(key: str, row: Mapping[str, Any] | None, width: int) -> str:
    """Return which row it is with result and money, and what was bet on; None takes the row back."""
    bet_id, _, index = key.rpartition(":")
    short = bet_id if len(bet_id) <= SHORT else f"{bet_id[:8]}…{bet_id[-4:]}"
    if row is None:
        return f"{short}:{index}  taken back: the bet has fewer selections now"
    money = f"payout {Decimal(row['payout']):,f}"
    if row["stake"] is not None:
        stake = Decimal(row["stake"])
        if -stake.as_tuple().exponent > MOST_DECIMALS:
            stake = stake.quantize(Decimal(1).scaleb(-MOST_DECIMALS), ROUND_HALF_EVEN)
        money = f"stake {stake:,f}, {money} {row['currency'] or ''}".rstrip()
    place = ", ".join(row[name] for name in ("sport", "league", "region") if row[name])
    picked = " and ".join(
        ": ".join(part[name] for name in ("market", "selection") if part[name])
        for part in row["parts"] or [row]
    )
    shown = (
        f"{short}:{index}  {row['betSettlement']} v{row['settlementVersion']}: {money}",
        f"    {'; '.join(filter(None, (row['event'], picked, place))) or 'no names yet'}",
    )
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in shown)
