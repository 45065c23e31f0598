"""Where a record is: what all typed records have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.formatting import EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a record is. `timestamp` is that of the record, in milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: str

    @property
    def written_at(self) -> datetime | None:
        """The timestamp: of most bets and of dead letters the time of receipt, by the bridge's clock.

        None for one that Python's datetime cannot hold, as of a copy in other units.
        """
        return moment(self.timestamp * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed(Place):
    """A tombstone: the key has no value any more."""


def moment(micros: int) -> datetime | None:
    """Return a time of an Avro value; None if Python's datetime cannot hold it, such as 0001-01-01+02:00."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None
