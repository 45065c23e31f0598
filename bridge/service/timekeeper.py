"""The clock that revisions are computed from, and its skew to the provider's.

A revision is in the provider's time (interface, "Settlement feed"). It is computed from a monotonic clock,
anchored to the wall clock whenever the provider confirms that: with each handshake, and after the wall clock
was set. A wall clock that is wrong for a while therefore has no effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

from bridge.clock import AnchoredClock
from bridge.clock_skew import Skew
from bridge.config import FeedSettings
from bridge.errors import FeedError, FeedLost, SettingsError
from bridge.feed.provider_clock import check_skew
from bridge.log import get

AskTime = Callable[[FeedSettings], Awaitable[Skew | None]]
"""Asks the provider for its time. Returns its clock minus our monotonic clock. Raises FeedError."""
STEP_SECONDS = 1.0
"""The provider is asked when the wall clock was set by more than this."""
ASK_SECONDS = 60.0
"""Minimum interval between such requests during a connection."""
MOST_QUESTIONS = 5
"""Unanswered requests in a row, after which the machine's clock is believed."""


class Timekeeper:
    """Compares `clock` with the provider's and corrects it."""

    def __init__(self, settings: FeedSettings, clock: AnchoredClock, ask: AskTime) -> None:
        self._settings = settings
        self.clock = clock
        self._ask = ask
        self._asking: asyncio.Future[Skew | None] | None = None
        self._unanswered = 0
        self._asked_at = clock().monotonic - ASK_SECONDS
        self._known_step = 0.0
        self.skew: Skew | None = None
        """The provider's clock minus `clock`, as last measured; None if it was not."""
        self.corrected_at = -inf
        """When `clock` was last moved by more than the margins cover, Unix seconds by the corrected clock."""

    @property
    def stepped(self) -> bool:
        """Whether the wall clock was set since the last comparison, or the machine was suspended."""
        return abs(self.clock.stepped - self._known_step) > STEP_SECONDS

    async def compare(self) -> bool:
        """Ask the provider for its time. Raises FeedError without an answer; else as `note`."""
        return self.note(await self._ask(self._settings))

    async def check_or_assume(self) -> bool:
        """Ask the provider for its time. Without an answer, finally believe the machine.

        Raises FeedError, and else as `note`.
        """
        try:
            seen = await self._ask(self._settings)
        except FeedError:
            self._unanswered += 1
            if self._unanswered < MOST_QUESTIONS:
                raise
            get().warning("provider's time unavailable, relying on this machine's clock")
            seen = None
        self._unanswered = 0
        return self.note(seen)

    async def settle(self) -> None:
        """Ask the provider if the wall clock was set. Raises as `check_or_assume`."""
        if self.stepped:
            await self.check_or_assume()

    def note(self, seen: Skew | None) -> bool:
        """Take note of the provider's clock minus our monotonic clock; None if the answer has no time.

        Anchors `clock` to the wall clock, unless only the wall clock is too far off. Returns whether `clock`
        moved by more than the margins cover. Raises ClockError if both are too far off.
        """
        clock = self.clock
        before = clock.offset
        if seen is None or self._agrees(seen.by(clock.machine_offset)):
            clock.anchor()
        elif self._agrees(seen.by(clock.offset)):
            get().warning(
                "clock step ignored, the provider's clock contradicts it", seconds=round(clock.stepped, 1)
            )
        else:
            check_skew(self._settings, seen.by(clock.machine_offset).seconds)
        self._known_step = clock.stepped
        self.skew = None if seen is None else seen.by(clock.offset)
        corrected = abs(clock.offset - before) > self._settings.max_clock_skew_seconds
        if corrected:
            self.corrected_at = clock().wall
        return corrected

    def watch(self, *, doubted: bool) -> Skew | None:
        """Ask in the background if the wall clock was set, or if the messages make it `doubted`.

        Must be called regularly. Returns the skew when an answer shows it. Raises ClockError, and FeedLost if
        only another handshake can tell, or if `clock` was moved by more than the margins cover.
        """
        asking = self._asking
        if asking is None:
            if (self.stepped or doubted) and (now := self.clock().monotonic) - self._asked_at >= ASK_SECONDS:
                self._asked_at = now
                self._asking = asyncio.ensure_future(self._ask(self._settings))
            return None
        if not asking.done():
            return None
        self._asking = None
        seen, reason = None, "its answer has no time"
        try:
            seen = asking.result()
        except (FeedError, SettingsError) as error:  # such as a file that is being replaced
            reason = str(error)
        if seen is not None:
            if self.note(seen):
                raise FeedLost(
                    "this machine's clock was corrected: the times of waiting messages are unknown"
                )
            return self.skew
        get().warning("provider's time unavailable", reason=reason)
        if doubted and abs(self.clock.stepped) > self._settings.max_clock_skew_seconds:
            raise FeedLost("messages are from the future and this machine's clock was set: connecting again")
        return None

    def close(self) -> None:
        """Drop the pending request: the connection ended."""
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _agrees(self, skew: Skew) -> bool:
        return abs(skew.seconds) <= self._settings.max_clock_skew_seconds
