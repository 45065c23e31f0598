"""The clocks. Only drivers read them, through this module; elsewhere the time is an argument."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

MICROS = 1_000_000
"""Microseconds per second, for Avro's timestamps."""


class Instant(NamedTuple):
    """A time by both clocks: the wall clock (Unix seconds) may be set, the monotonic one may not."""

    wall: float
    monotonic: float


Clock = Callable[[], Instant]
"""Returns the current time."""


def _monotonic_clock() -> int:
    """Return a clock that runs while the machine is suspended, if there is one."""
    with suppress(AttributeError, OSError):
        time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.CLOCK_BOOTTIME
    return time.CLOCK_MONOTONIC


_MONOTONIC = _monotonic_clock()


def now() -> Instant:
    """Return the current time by this machine's clocks."""
    return Instant(time.time(), time.clock_gettime(_MONOTONIC))


class AnchoredClock:
    """A clock that ignores steps of the wall clock: its time when last anchored, plus monotonic time since.

    Call it for the current time.
    """

    def __init__(self, machine: Clock = now) -> None:
        self._machine = machine
        self.anchor()

    def __call__(self) -> Instant:
        monotonic = self._machine().monotonic
        return Instant(monotonic + self.offset, monotonic)

    @property
    def machine_offset(self) -> float:
        """The machine's wall clock minus its monotonic one."""
        now = self._machine()
        return now.wall - now.monotonic

    @property
    def stepped(self) -> float:
        """Seconds by which the wall clock was set forward since anchoring; negative for back."""
        return self.machine_offset - self.offset

    def anchor(self) -> None:
        """Adopt the machine's current wall clock."""
        self.offset = self.machine_offset
        """This clock minus the monotonic one."""
