"""Gaps as people are shown them."""

from __future__ import annotations

from bridge.inspection.gaps import gap_as_line
from bridge.records.gap import Cause, FeedGap

GAP = FeedGap("settlement-v4", 1_790_000_000, 1_790_086_461, Cause.TOO_OLD, 1_790_345_600.5)


def test_a_gap_for_people() -> None:
    assert gap_as_line(GAP) == (
        "settlement-v4  2026-09-21T14:13:20Z to 2026-09-22T14:14:21Z  1d  "
        "TooOld, found 2026-09-25T14:13:20.500000Z"
    )
