"""Bets of a replay of which only its end shows whether it repeats them.

Contents A and B of a bet are published, and a replay brings A. If it repeats the first A, it repeats B as
well. If it began after B, this A is new: the provider has changed the bet back. So A is held until B comes,
or something new of the same bet, or the replay is over. Until then the position stays: a crash loses nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MOST_BYTES: Final = 8 * 1024 * 1024
"""Most bytes of messages and records that are held."""
OVER: Final = 50
"""After so many new contents in a row a replay repeats nothing any more: the feed is ordered."""


class HeldBet(NamedTuple):
    """A bet as it was received, and what would be published."""

    at: float
    """Time of receipt, Unix seconds."""
    body: bytes
    version: int
    settled_at: float
    content: bytes
    value: bytes


class Held:
    """The held bets by their keys, of each in the order of receipt."""

    def __init__(self) -> None:
        self.bets: dict[bytes, list[HeldBet]] = {}
        self._bytes = 0

    def add(self, key: bytes, bet: HeldBet) -> bool:
        """Hold a bet. Returns False if there is no room."""
        size = len(bet.body) + len(bet.value)
        if self._bytes + size > MOST_BYTES:
            return False
        self._bytes += size
        self.bets.setdefault(key, []).append(bet)
        return True

    def take(self, key: bytes) -> list[HeldBet]:
        """Remove and return what is held of a bet."""
        found = self.bets.pop(key, [])
        self._bytes -= sum(len(bet.body) + len(bet.value) for bet in found)
        return found
