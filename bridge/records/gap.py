"""A gap: an interval of a feed that the provider can no longer replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from bridge.avro.codec import Codec
from bridge.kafka.batch import Record
from bridge.records.avro_form import PLAIN, TIME, AvroForm, symbol


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
        return _FORM.to_avro(self)

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> FeedGap:
        """Return the gap of such a datum. Raises SchemaError as `AvroForm.from_avro`."""
        return _FORM.from_avro(datum, "not a FeedGap: ")


_FORM: Final = AvroForm(
    FeedGap,
    feed=PLAIN,
    start=TIME.called("from"),
    end=TIME.called("to"),
    cause=symbol(Cause),
    detected_at=TIME,
)


def gap_record(topic: str, codec: Codec, gap: FeedGap) -> Record:
    """Return the record of a gap."""
    at = int(gap.detected_at * 1000)
    return Record(topic, gap.feed.encode(), codec.encode(gap.to_avro()), at, partition=0)
