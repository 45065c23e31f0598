"""Shows a bet with its names to a person: three lines, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

LANGUAGE = "en"
NAMES = ("event", "sport", "league", "region", "market", "selection")


def lines(bet: Mapping[str, Any], count: int, width: int) -> str:
    """Return result and money, where it was bet, and on what; `count` numbers the bets."""
    amount, corrects = bet["amount"], bet["corrects"]
    result = f"{bet['betSettlement']}, version {bet['settlementVersion']}"
    if corrects is not None:
        before = f"{corrects['betSettlement']}, version {corrects['settlementVersion']}"
        result += f", was {before}, payout {_decimal(corrects['payout'], amount)}"
    stake = "" if amount is None else f"stake {_stake(amount)}, "
    number = f"{count:,}"
    shown = [f"{number}  {bet['betId']}  {result}; {stake}payout {_decimal(bet['payout'], amount)}"]
    shown += [f"{'':{len(number)}}  {line}" for line in _bet_on(bet["selections"] or [])]
    return "\n".join(line if len(line) <= width else f"{line[: width - 1]}…" for line in shown)


def _bet_on(items: list[Mapping[str, Any]]) -> tuple[str, str]:
    """The event, and market and selection, of the first selection; `+2` counts the further ones."""
    if not items:
        return "no selections", ""
    item = items[0]
    names = {name: (texts or {}).get(LANGUAGE, "") for name, texts in item["names"].items()}
    place = ", ".join(names[name] for name in ("sport", "league", "region") if names[name])
    picked = [item["names"], *(part["names"] for part in item["betBuilderItems"] or [])]
    texts = [
        [(part[name] or {}).get(LANGUAGE, "") for name in ("market", "selection")]
        for part in picked[1:] or picked
    ]
    on = " and ".join(": ".join(filter(None, text)) for text in texts)
    more = f"  +{len(items) - 1}" if len(items) > 1 else ""
    return "; ".join(filter(None, (names["event"], place))) or "no names yet", on + more


def _decimal(payout: float, amount: Mapping[str, Any] | None) -> str:
    """A payout is a double: as a decimal, to the precision of the stake's currency."""
    places = 2 if amount is None else min(amount["precision"], 8)
    return f"{Decimal(repr(payout)):,.{places}f}"


def _stake(amount: Mapping[str, Any]) -> str:
    number = Decimal(amount["value"]).scaleb(-amount["precision"])
    return f"{number:,.{min(amount['precision'], 8)}f} {amount['currency'] or ''}".rstrip()
