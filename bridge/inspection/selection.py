"""Which settled bets a command shows: the filters that `tail`, `replay` and `explain` share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bridge.clock import MICROS
from bridge.errors import SettingsError
from bridge.messages.model import SETTLEMENT_RESULTS
from bridge.reader import Bet
from bridge.records.gap import FeedGap

RESULTS: Final = tuple(SETTLEMENT_RESULTS.values())


@dataclass(frozen=True)
class Selection:
    """What a bet must match, in every field that is not empty."""

    bets: frozenset[str] = frozenset()
    everywhere: bool = False
    """Whether `bets` are looked for in all partitions, not only in those of their keys."""
    sports: frozenset[int] = frozenset()
    """Ids: at least one item of the bet is of one of them."""
    leagues: frozenset[int] = frozenset()
    """Ids, which the feed calls competitionId."""
    currencies: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    resettled: bool = False
    """Only bets with a settlementVersion above 1."""
    gaps: Sequence[FeedGap] | None = None
    """Only bets with a settlementTime inside one of them."""

    def __post_init__(self) -> None:
        if any("\ud800" <= character <= "\udfff" for bet in self.bets for character in bet):
            raise SettingsError("--bet is not UTF-8: give a betId, as `bridge replay --json` prints it")
        if "" in self.bets:
            raise SettingsError("--bet is empty: give a betId, as `bridge replay --json` prints it")
        if unknown := sorted(self.results - {*RESULTS}):
            raise SettingsError(
                f"--result {unknown[0]}: not a result of a bet; there are {', '.join(RESULTS)}"
            )

    @property
    def keys(self) -> frozenset[bytes] | None:
        """The keys of the records wanted; None for any: others need not be decoded."""
        return frozenset(bet.encode() for bet in self.bets) if self.bets else None

    @property
    def is_by_key(self) -> bool:
        """Whether the key of a record tells if it matches."""
        return self == Selection(self.bets, self.everywhere)

    def wants(self, bet: Bet) -> bool:
        """Return whether a bet matches."""
        return (
            (not self.bets or bet.key in self.bets)
            and (not self.resettled or bet.version > 1)
            and (not self.results or bet.result in self.results)
            and (not self.currencies or bet.currency in self.currencies)
            and (not self.sports or any(item["sportId"] in self.sports for item in bet.items))
            and (not self.leagues or any(item["competitionId"] in self.leagues for item in bet.items))
            and (self.gaps is None or self._in_gap(bet))
        )

    def _in_gap(self, bet: Bet) -> bool:
        settled_at = bet.value["settlementTime"] / MICROS
        return any(gap.start <= settled_at < gap.end for gap in self.gaps or ())
