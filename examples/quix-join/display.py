"""Shows a bet with its names to a person: three lines, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

LANGUAGE = "en"
SHORT = 13
"""Characters of a betId that are shown."""
NAMES = ("event", "sport", "league", "region", "market", "selection")


def lines(bet: Mapping[str, Any], count: int, width: int) -> str:
    """Return result and money, where it was bet, and on what; `count` numbers the bets."""
    amount, corrects, bet_id = bet["amount"], bet["corrects"], bet["betId"]
    money = f"payout {_decimal(bet['payout'], amount)}"
    if amount is not None:
        money = f"stake {_stake(amount)}, {money} {amount['currency'] or ''}".rstrip()
    before = ""
    if corrects is not None:
        payout = _decimal(corrects["payout"], amount)
        before = f"; was {corrects['betSettlement']} v{corrects['settlementVersion']}, payout {payout}"
    number, short = f"{count:,}", bet_id if len(bet_id) <= SHORT else f"{bet_id[:8]}…{bet_id[-4:]}"
    shown = [f"{number}  {short}  {bet['betSettlement']} v{bet['settlementVersion']}: {money}{before}"]
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
    return f"{number:,.{min(amount['precision'], 8)}f}"
