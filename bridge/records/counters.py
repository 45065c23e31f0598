"""Counts messages by outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(slots=True)
class Counters:
    """Messages by outcome since the feed's first checkpoint.

    received + redriven = published + duplicates + stale + dead_lettered + pings + empty. Corrections are
    included in published. A redriven dead letter remains in dead_lettered, and has a second outcome.
    """

    received: int = 0
    published: int = 0
    duplicates: int = 0
    stale: int = 0
    corrections: int = 0
    dead_lettered: int = 0
    pings: int = 0
    empty: int = 0
    redriven: int = 0

    @property
    def balanced(self) -> bool:
        """Whether each received and each redriven message is counted under exactly one outcome."""
        return self.received + self.redriven == self._ends

    def balance(self) -> None:
        """Have `received` follow from the outcomes: a newer bridge may have one that is unknown here."""
        self.received = self._ends - self.redriven

    @property
    def _ends(self) -> int:
        return self.published + self.duplicates + self.stale + self.dead_lettered + self.pings + self.empty

    def copy(self) -> Counters:
        """Return an independent copy."""
        return replace(self)
