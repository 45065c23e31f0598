"""The clock that promises are made by, and how far the provider's is from it.

A revision is in the provider's time (interface, "Settlement feed"). Promises are made by a clock that goes on
steadily from where the wall clock was when the provider last confirmed it: with each handshake, and whenever
the wall clock was set since. So a wall clock that is wrong for a while promises nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bridge.clock import AnchoredClock
from bridge.clock_skew import Skew, must_be_near
from bridge.config import FeedSettings
from bridge.errors import FeedError, FeedLost, SettingsError
from bridge.log import get

AskTime = Callable[[FeedSettings], Awaitable[Skew | None]]
"""Asks the provider for the time: its clock less our monotonic one. Raises FeedError."""
STEP_SECONDS = 1.0
"""A wall clock that was set by more than that is worth a question."""
ASK_SECONDS = 60.0
"""Between two such questions."""
MOST_QUESTIONS = 5
"""Without an answer before a dial, after which the machine is believed."""


class Timekeeper:
    """Compares `clock` with the provider's. `skew` is what was seen last, by `clock`; None if nothing was."""

    def __init__(self, settings: FeedSettings, clock: AnchoredClock, ask: AskTime) -> None:
        self._settings = settings
        self._clock = clock
        self._ask = ask
        self._asking: asyncio.Future[Skew | None] | None = None
        self._unanswered = 0
        self._asked_at = clock().monotonic - ASK_SECONDS
        self._known_step = 0.0
        self.skew: Skew | None = None

    @property
    def stepped(self) -> bool:
        """Whether the wall clock was set since it was looked at, or the machine stood still."""
        return abs(self._clock.stepped - self._known_step) > STEP_SECONDS

    async def compare(self) -> float:
        """Ask the provider, and take note. Raises FeedError when it does not answer; else as `note`."""
        return self.note(await self._ask(self._settings))

    async def settle(self) -> float:
        """Ask the provider where the wall clock was set; where it never answers, believe the machine.

        Ages are by this clock: of a position, of a recovery. Raises FeedError, and else as `note`.
        """
        if not self.stepped:
            return 0.0
        try:
            moved = await self.compare()
        except FeedError:
            self._unanswered += 1
            if self._unanswered < MOST_QUESTIONS:
                raise
            moved = self.note(None)
        self._unanswered = 0
        return moved

    def note(self, seen: Skew | None) -> float:
        """Take note of the provider's clock less our monotonic one; None where an answer does not tell.

        The wall clock is believed as it is now, unless it is too far off and the clock so far is not. Returns
        by how many seconds `clock` was moved. Raises ClockError when both are too far off.
        """
        clock = self._clock
        before = clock.offset
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
        return clock.offset - before

    def watch(self, *, doubted: bool) -> float | None:
        """Ask again, beside everything else, when the wall clock was set or what comes makes it `doubted`.

        To be called now and then. Returns by how many seconds `clock` was moved when an answer was taken note
        of, else None. Raises ClockError, and FeedLost where only another handshake can tell.
        """
        asking, now = self._asking, self._clock().monotonic
        if asking is None:
            if (self.stepped or doubted) and now - self._asked_at >= ASK_SECONDS:
                self._asked_at = now
                self._asking = asyncio.ensure_future(self._ask(self._settings))
            return None
        if not asking.done():
            return None
        self._asking = None
        seen, reason = None, "it does not tell"
        try:
            seen = asking.result()
        except (FeedError, SettingsError) as error:  # a file may be being replaced: the feed goes on
            reason = str(error)
        if seen is not None:
            return self.note(seen)
        get().warning("the provider cannot be asked for the time", reason=reason)
        if doubted and abs(self._clock.stepped) > self._settings.max_clock_skew_seconds:
            raise FeedLost("what comes is from the future, and this machine's clock was set: asking anew")
        return None

    def close(self) -> None:
        """The connection is over: nobody waits for an answer any more, which would be of another time."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _agrees(self, skew: Skew) -> bool:
        return abs(skew.seconds) <= self._settings.max_clock_skew_seconds


def check_skew(settings: FeedSettings, seconds: float) -> None:
    """Raises ClockError when the provider's clock is too far ahead of ours, or behind it."""
    must_be_near(
        seconds,
        settings.max_clock_skew_seconds,
        "feed.max_clock_skew_seconds (BRIDGE_FEED__MAX_CLOCK_SKEW_SECONDS)",
        "a revision would not mean what it says",
        also=" and feed.safety_margin_seconds",
    )
