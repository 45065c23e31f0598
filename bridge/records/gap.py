"""A gap: an interval of a feed that the provider can no longer replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.avro.codec import Codec
from bridge.clock import MICROS
from bridge.errors import SchemaError
from bridge.formatting import is_time
from bridge.kafka.batch import Record


class Cause(Enum):
    """The cause of a gap."""

    TOO_OLD = "TooOld"
    """The position is older than the provider can replay."""
    MISSING_IN_REPLAY = "MissingInReplay"
    """A replay repeated none of the bets known to be published in the interval."""
    POSITION_IN_FUTURE = "PositionInFuture"
    """The position was committed by a wrong clock."""
    MOVED_BY_OPERATOR = "MovedByOperator"
    """An operator moved the position forward."""
    RECORDS_LOST = "RecordsLost"
    """The topics lacked what the checkpoint covered, and an operator went on with them."""
    UNKNOWN = "Unknown"
    """A symbol newer than this reader. Never written."""


@dataclass(frozen=True, slots=True)
class FeedGap:
    """Messages published in [start, end) may be missing. Times are Unix seconds.

    `start` and `end` are of the provider's clock, like every revision, `detected_at` is of ours.
    """

    feed: str
    start: float
    end: float
    cause: Cause
    detected_at: float

    @property
    def seconds(self) -> float:
        """Duration of the gap."""
        return self.end - self.start

    def to_avro(self) -> dict[str, Any]:
        """Return the datum of the Avro record `FeedGap`."""
        return {
            "feed": self.feed,
            "from": round(self.start * MICROS),
            "to": round(self.end * MICROS),
            "cause": self.cause.value,
            "detectedAt": round(self.detected_at * MICROS),
        }

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> FeedGap:
        """Return the gap of such a datum. Raises SchemaError, with the field, for a time that is none."""
        for name in ("from", "to", "detectedAt"):
            if not is_time(datum[name] / MICROS):
                raise SchemaError(f"not a FeedGap: {name}: {datum[name]} is impossible")
        return cls(
            feed=datum["feed"],
            start=datum["from"] / MICROS,
            end=datum["to"] / MICROS,
            cause=Cause(datum["cause"]),
            detected_at=datum["detectedAt"] / MICROS,
        )


def gap_record(topic: str, codec: Codec, gap: FeedGap) -> Record:
    """Return the record of a gap."""
    at = int(gap.detected_at * 1000)
    return Record(topic, gap.feed.encode(), codec.encode(gap.to_avro()), at, partition=0)
