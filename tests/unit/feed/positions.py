"""Positions with a past, and the figures that the tests of them are about."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.clock_skew import Skew
from bridge.config import FeedSettings
from bridge.feed.position import Position

MARGIN, OUT_OF_ORDER, AFTER_PINGS = 30.0, 60.0, 120.0
SETTINGS = FeedSettings(
    safety_margin_seconds=MARGIN,
    max_out_of_orderness_seconds=OUT_OF_ORDER,
    live_after_pings_seconds=AFTER_PINGS,
)
WINDOW = 50
PINGS_ALONE = 3600.0
NOW = 1_790_000_000.0
DAY = 86_400.0
NO_TIME = -62_135_596_800.0
"""0001-01-01, which some senders use for 'not set'."""


def position(revision: float = NOW - 2 * DAY, *, skew: float | None = None) -> Position:
    """Connected, with a revision of two days ago; the handshake shows the skew, or does not."""
    made = Position(SETTINGS, int(revision))
    made.connected(None if skew is None else Skew(skew, skew))
    return made


def live(*, skew: float | None = None) -> Position:
    """Live since NOW."""
    return replay(position(skew=skew), [NOW] * 3)


def replay(made: Position, settled: Iterable[float], at: float = NOW) -> Position:
    """Data settled at these moments come, all at once."""
    for moment in settled:
        made.data(at, moment)
    return made
