"""Reads what the bridge has published: the package's stable Python interface.

    from datetime import timedelta
    from bridge.reader import BETS, Names, read

    with Names() as names:
        for bet in read(BETS, from_=timedelta(hours=2), follow=True):
            print(bet.key, bet.version, bet.result, bet.payout, bet.currency)
            print([item.selection for item in names.of(bet, "en")])

Everything is read `read_committed`, and in any version of its schema. docs/reading.md has more.
"""

from bridge.reader.batches import read_batches
from bridge.reader.decoding import (
    BETS,
    CURRENCIES,
    DEAD_LETTERS,
    GAPS,
    SNAPSHOTS,
    TRANSLATIONS,
    Topic,
)
from bridge.reader.names import ItemNames, LegNames, Names
from bridge.reader.reading import changes, read
from bridge.reader.records import Bet, Currency, Gap, SettledBet, Snapshot, Translation
from bridge.records.dead_letter import DeadLetter
from bridge.records.place import Place, Removed

__all__ = [
    "BETS",
    "CURRENCIES",
    "DEAD_LETTERS",
    "GAPS",
    "SNAPSHOTS",
    "TRANSLATIONS",
    "Bet",
    "Currency",
    "DeadLetter",
    "Gap",
    "ItemNames",
    "LegNames",
    "Names",
    "Place",
    "Removed",
    "SettledBet",
    "Snapshot",
    "Topic",
    "Translation",
    "changes",
    "read",
    "read_batches",
]
