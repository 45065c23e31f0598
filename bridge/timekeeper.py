"""The clock that promises are made by, and how far the provider's is from it.

A revision is in the provider's time (interface, "Settlement feed"). Promises are made by a clock that goes on
steadily from where the wall clock was when the provider last confirmed it: with each handshake, and whenever
the wall clock was set since. So a wall clock that is wrong for a while promises nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bridge.config import FeedSettings
from bridge.errors import ClockError, FeedError, SettingsError
from bridge.feed.skew import Skew
from bridge.instant import AnchoredClock
from bridge.log import get

AskTime = Callable[[FeedSettings], Awaitable[Skew | None]]
"""Asks the provider for the time: its clock less our steady one. Raises FeedError."""
STEP_SECONDS = 1.0
"""A wall clock that was set by more than that is worth a question."""
ASK_SECONDS = 60.0
"""Between two such questions."""


class Timekeeper:
    """Compares `clock` with the provider's. `skew` is what was seen last, by `clock`; None if nothing was."""

    def __init__(self, settings: FeedSettings, clock: AnchoredClock, ask: AskTime) -> None:
        self._settings = settings
        self._clock = clock
        self._ask = ask
        self._asking: asyncio.Future[Skew | None] | None = None
        self._asked_at = clock().steady - ASK_SECONDS
        self._known_step = 0.0
        self.skew: Skew | None = None

    async def compare(self) -> None:
        """Ask the provider, and take note. Raises FeedError when it does not answer, and as `note`."""
        self.note(await self._ask(self._settings))

    def note(self, seen: Skew | None) -> None:
        """Take note of the provider's clock less our steady one; None where an answer does not tell.

        The wall clock is believed as it is now, unless it is too far off and the clock so far is not. Raises
        ClockError when both are.
        """
        clock = self._clock
        if seen is None or self._agrees(seen.by(clock.machine_offset)):
            clock.anchor()
        elif self._agrees(seen.by(clock.offset)):
            get().warning(
                "this machine's clock was set, and the provider's says that it is wrong now: not believed",
                seconds=round(clock.stepped, 1),
            )
        else:
            check_skew(self._settings, seen.by(clock.machine_offset).seconds)
        self._known_step = clock.stepped
        self.skew = None if seen is None else seen.by(clock.offset)

    def watch(self, *, doubted: bool) -> float | None:
        """Ask again, beside everything else, when the wall clock was set or what comes makes it `doubted`.

        To be called now and then. Returns by how many seconds `clock` was moved when an answer was taken note
        of, else None. Raises ClockError.
        """
        asking, now = self._asking, self._clock().steady
        if asking is None:
            stepped = abs(self._clock.stepped - self._known_step) > STEP_SECONDS
            if (stepped or doubted) and now - self._asked_at >= ASK_SECONDS:
                self._asked_at = now
                self._asking = asyncio.ensure_future(self._ask(self._settings))
            return None
        if not asking.done():
            return None
        self._asking = None
        try:
            seen = asking.result()
        except (FeedError, SettingsError) as error:  # a file may be being replaced: the feed goes on
            get().warning("the provider cannot be asked for the time", reason=str(error))
            return None
        if seen is None:  # it does not tell: the clock goes on as it did
            self._known_step = self._clock.stepped
            return None
        before = self._clock.offset
        self.note(seen)
        return self._clock.offset - before

    def close(self) -> None:
        """Ask nothing any more."""
        if self._asking is not None:
            self._asking.cancel()

    def _agrees(self, skew: Skew) -> bool:
        return abs(skew.seconds) <= self._settings.max_skew_seconds


def check_skew(settings: FeedSettings, seconds: float) -> None:
    """Raises ClockError when the provider's clock is too far ahead of ours, or behind it."""
    limit = settings.max_skew_seconds
    if abs(seconds) > limit:
        side = "ahead of" if seconds > 0 else "behind"
        raise ClockError(
            f"the provider's clock is {abs(seconds):.0f} s {side} ours, and feed.max_skew_seconds "
            f"(BRIDGE_FEED__MAX_SKEW_SECONDS) = {limit:g}: a revision would not mean what it says. Set this "
            "machine's clock right (is NTP running?); if the provider's is wrong, tell them, and raise that "
            "limit and feed.overlap_seconds meanwhile."
        )
