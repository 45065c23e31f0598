"""A moment as a value. Drivers read the clock, here; everywhere else a moment is an argument."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Instant(NamedTuple):
    """A moment by both clocks: the wall clock (Unix seconds) may be set, the steady one may not."""

    wall: float
    steady: float


Clock = Callable[[], Instant]
"""Says what moment it is."""


def now() -> Instant:
    """This moment, by this machine's clocks."""
    return Instant(time.time(), time.monotonic())
