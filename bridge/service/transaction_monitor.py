"""Reports transactions that stay open, whoever owns the feed: readers see nothing that is behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NoReturn

from bridge.clock import Clock
from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.kafka.blocking import BackgroundProbe
from bridge.kafka.open_transactions import (
    LOOK_SECONDS,
    Look,
    OpenTransaction,
    RecordPlace,
    TransactionWatch,
    what_to_do,
)
from bridge.log import get
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge.records.reach import TopicReach, differences
from bridge.records.topics import Topics


class TransactionMonitor:
    """Looks every `LOOK_SECONDS`, and logs each transaction that hangs once, and its end."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.open: tuple[OpenTransaction, ...] | None = None
        """What the last look has found; None while that is unknown."""
        self.looked_at: float | None = None
        """When all topics answered last, Unix seconds; None before that."""
        self._hanging: frozenset[RecordPlace] = frozenset()
        """Where those that are in the log begin."""
        self._unknown = ""
        """Why not all of them are known, as in the log."""

    async def run(
        self,
        declared: Topics,
        guard: LostRecordGuard,
        known: Callable[[], Sequence[TopicReach]],
        on_other: Callable[[str], object],
    ) -> NoReturn:
        """Watch the feed's topics until cancelled; `guard` is told how far readers see.

        `on_other` is told why the topics are not those that are `known` before a look.
        """
        probe = BackgroundProbe(self._settings.kafka, "transactions")
        names = [topic.name for topic in declared.of_feed()]
        watch = TransactionWatch(self._settings, names, self._clock)

        suspected = dict[str, str]()
        try:
            while True:
                before = known()
                try:
                    look = await probe.run(watch.look)
                    if look.unknown:
                        probe.renew()
                    guard.note_stable(look.stable)
                    other = differences(before, {n: t for n, t in look.seen.items() if t is not None})
                    if other and suspected:  # one look is the word of one broker
                        on_other("; ".join(other.values()))
                    suspected = other
                except Exception as error:  # noqa: BLE001  # whatever it is, the watch goes on
                    reason = str(error) if isinstance(error, BridgeError) else repr(error)
                    look = Look((), dict.fromkeys(names, reason))
                self.report(look)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            probe.close()

    def report(self, look: Look) -> None:
        """Log what has changed: transactions that hang or have ended, and why there is none to see."""
        self.open = look.open or (None if look.unknown else ())
        if not look.unknown:
            self.looked_at = self._clock().wall
        self._report_unknown("; ".join(dict.fromkeys(look.unknown.values())))
        hanging = {transaction.place: transaction for transaction in look.open if transaction.hangs}
        if new := [place for place in hanging if place not in self._hanging]:
            get().warning(
                "open transaction hides records",
                what="; ".join(str(hanging[place]) for place in new),
                what_to_do=what_to_do(self._settings.kafka, new),
            )
        gone = self._hanging.difference(hanging)
        ended = {place for place in gone if place.topic not in look.unknown}
        for place in ended:
            get().info("open transaction ended", what=str(place))
        self._hanging = self._hanging.union(hanging) - ended

    def _report_unknown(self, reason: str) -> None:
        if reason and reason != self._unknown:
            get().warning("open transactions unknown", reason=reason)
        elif self._unknown and not reason:
            get().info("open transactions known again")
        self._unknown = reason
