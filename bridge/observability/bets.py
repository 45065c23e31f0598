"""A settled bet in a line of the status page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bridge.clock import MICROS
from bridge.reader.money import format_payout, format_stake

MOST_EVENTS = 3


class ShownBet(NamedTuple):
    """A bet, in words."""

    settled_at: float
    """Its settlementTime, Unix seconds."""
    bet_id: str
    version: int
    result: str
    stake: str
    payout: str
    events: str
    """The names of its events as the provider sent them, where it did."""


def shown(bet: Mapping[str, Any]) -> ShownBet:
    """Return what is shown of a datum of the Avro record `SettledBet`."""
    events = [item["event"] for item in bet["selections"] or ()]
    names = list(dict.fromkeys(event["name"] for event in events if event and event["name"]))
    more = f" and {len(names) - MOST_EVENTS} more" if len(names) > MOST_EVENTS else ""
    return ShownBet(
        settled_at=bet["settlementTime"] / MICROS,
        bet_id=bet["betId"],
        version=bet["settlementVersion"],
        result=bet["betSettlement"],
        stake=format_stake(bet["amount"]),
        payout=format_payout(bet["payout"], bet["amount"]),
        events=", ".join(names[:MOST_EVENTS]) + more,
    )
