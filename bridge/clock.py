"""A moment as a value. Drivers read the clock, here; everywhere else a moment is an argument."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

MICROS = 1_000_000
"""In a second, as Avro's timestamps count."""


class Instant(NamedTuple):
    """A moment by both clocks: the wall clock (Unix seconds) may be set, the monotonic one may not."""

    wall: float
    monotonic: float


Clock = Callable[[], Instant]
"""Says what moment it is."""


def _steady_clock() -> int:
    """One that goes on while the machine is suspended, where there is such a clock."""
    with suppress(AttributeError, OSError):
        time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.CLOCK_BOOTTIME
    return time.CLOCK_MONOTONIC


_STEADY = _steady_clock()


def now() -> Instant:
    """This moment, by this machine's clocks."""
    return Instant(time.time(), time.clock_gettime(_STEADY))


class AnchoredClock:
    """The wall clock as it was when it was last anchored, and monotonic time since: no step of it shows.

    Call it for the present moment.
    """

    def __init__(self, machine: Clock = now) -> None:
        self._machine = machine
        self.anchor()

    def __call__(self) -> Instant:
        monotonic = self._machine().monotonic
        return Instant(monotonic + self.offset, monotonic)

    @property
    def machine_offset(self) -> float:
        """The machine's wall clock less its monotonic one, as it is now."""
        now = self._machine()
        return now.wall - now.monotonic

    @property
    def stepped(self) -> float:
        """By how many seconds the wall clock was set forward since it was anchored; negative for back."""
        return self.machine_offset - self.offset

    def anchor(self) -> None:
        """Believe the machine's wall clock as it is now."""
        self.offset = self.machine_offset
        """This clock less the monotonic one."""
