"""Counts and logs what could not be converted, or has fields that nobody has documented."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Final

from bridge.config import FeedSettings
from bridge.errors import Unconvertible
from bridge.formatting import format_utc
from bridge.log import get
from bridge.records.dead_letter import DeadLetterCause, cause_of

SAMPLES = 3
"""Original messages kept of each unknown field."""
EXTRA_PATHS = 1_000
"""Distinct paths of unknown fields that are counted."""
CAUSES = 100
"""Distinct causes of dead letters that are logged and counted."""
OTHER_CAUSES: Final = DeadLetterCause("various", "other reasons")
"""Counts all further ones."""


class ConversionLog:
    """What one term of leadership has seen of it."""

    def __init__(self, feed: FeedSettings) -> None:
        self._feed = feed
        self.extras: Counter[str] = Counter()
        """Path of each unknown field → how often it was received."""
        self.causes: Counter[DeadLetterCause] = Counter()
        """Causes of dead letters → how many were written."""
        self.in_a_row = 0
        """Messages since the last bet that may have been bets too, and could not be converted."""
        self._since = self._until = -inf
        """When the first and the last of them came, Unix seconds."""
        self.unconverted = ""
        """Since when nothing can be converted, in words."""
        self._published = 0
        """How many bets had been published then."""

    def failed(self, at: float) -> None:
        """Count a message that may have been a bet, received at `at`."""
        if not self.in_a_row:
            self._since = at
        self.in_a_row += 1
        self._until = at

    def judge(self, published: int) -> None:
        """Report once when the provider sends nothing any more that can be converted, and when it does again.

        `published` counts the published bets. Raises Unconvertible if it is to end the process.
        """
        feed, lasted = self._feed, self._until - self._since
        lasts = self.in_a_row >= feed.unconverted_messages and lasted >= feed.unconverted_seconds
        if lasts and not self.unconverted:
            self._published = published
            since = format_utc(int(self._since))
            self.unconverted = f"nothing that came since {since} could be converted"
            if feed.on_unconverted == "stop":
                raise Unconvertible(f"{self.unconverted}: “bridge deadletters list” has the reasons")
            get().warning("nothing can be converted", since=since, see="bridge deadletters list")
        elif self.unconverted and published > self._published:  # in a replay others may come
            self.unconverted = ""
            get().info("bets can be converted again")

    def count_cause(self, reason: str) -> None:
        """Count a dead letter by the cause in its reason, and log the first of each."""
        cause = cause_of(reason)
        if cause not in self.causes:
            if len(self.causes) >= CAUSES:
                cause = OTHER_CAUSES
            else:
                get().warning(
                    "dead letters of a new kind",
                    field=cause.field,
                    reason=cause.reason,
                    see="bridge deadletters list",
                )
        self.causes[cause] += 1

    def count_extras(self, paths: tuple[str, ...]) -> list[str]:
        """Count unknown fields. Returns those of which originals are still kept."""
        rare = []
        for path in paths:
            if path in self.extras or len(self.extras) < EXTRA_PATHS:
                self.extras[path] += 1
                if self.extras[path] <= SAMPLES:
                    rare.append(path)
                if self.extras[path] == 1:
                    get().warning("undocumented field", path=path)
        return rare
