"""A settled bet as Avro has it, for tests to which only some of its fields matter."""

from __future__ import annotations

from typing import Any, Final

BARE_BET: Final[dict[str, Any]] = {
    "betId": "b",
    "betSettlement": "Win",
    "payoutMultiplier": 1.0,
    "isCancelled": False,
    "selections": None,
    "isRejected": False,
    "settlementTime": 0,
    "payout": 1.0,
    "partialRefund": 0.0,
    "settlementVersion": 1,
    "amount": None,
}
"""A datum of the schema `SettledBet`, with nothing in it that may be null."""
