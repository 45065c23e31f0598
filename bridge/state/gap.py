"""A gap: an interval of a feed that the provider can no longer give back, declared for everyone to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bridge.clock import MICROS


class Cause(Enum):
    """How a gap came about."""

    TOO_OLD = "TooOld"
    """The position fell out of the feed's memory."""
    MISSING_IN_REPLAY = "MissingInReplay"
    """A replay brought back nothing of what is known to have been published."""
    POSITION_IN_FUTURE = "PositionInFuture"
    """The position was committed by a clock that was wrong."""
    UNKNOWN = "Unknown"
    """A symbol that is newer than this reader. Never written."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What was published in [start, end) may be missing. Times are Unix seconds.

    `start` and `end` are of the provider's clock, like every revision, `detected_at` is of ours.
    """

    feed: str
    start: float
    end: float
    cause: Cause
    detected_at: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

    def to_avro(self) -> dict[str, Any]:
        """The datum of the Avro record `FeedGap`."""
        return {
            "feed": self.feed,
            "from": round(self.start * MICROS),
            "to": round(self.end * MICROS),
            "cause": self.cause.value,
            "detectedAt": round(self.detected_at * MICROS),
        }

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Gap:
        """The inverse of `to_avro`; date-times are integers of microseconds."""
        return cls(
            feed=datum["feed"],
            start=datum["from"] / MICROS,
            end=datum["to"] / MICROS,
            cause=Cause(datum["cause"]),
            detected_at=datum["detectedAt"] / MICROS,
        )
