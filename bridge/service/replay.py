"""What a connection may still repeat, and whether its replay repeats what it must.

What was settled after the requested revision was published after it. So a replay must repeat something that
is known from after the revision; one that does not has lost what the provider no longer has.
"""

from __future__ import annotations

from math import inf

from bridge.dedup.deduplicator import Deduplicator
from bridge.feed.position import Position
from bridge.service.held import OVER, Held


class ReplayTracker:
    """The replay of one connection after the other."""

    def __init__(
        self, position: Position, deduplicator: Deduplicator, newest: float | None, moved_from: int
    ) -> None:
        self._position = position
        self._deduplicator = deduplicator
        self.unproven_from: int | None = None
        """The requested revision, until the replay repeats something known from after it."""
        self.provisional = False
        """Whether what was published before this connection may be lacking: `newest` does not follow it."""
        self._stood_at = position.revision
        """The position when the connection began, or `moved_from` if that is later."""
        self._moved_from = moved_from
        """The position before an operator moved it. What lies before may never have been received."""
        self.newest = newest
        """The newest published settlementTime that is not in the future, Unix seconds."""
        self._newest_known = newest
        """That when the connection began that was the first to await it."""
        self.since = inf
        """Unix seconds from which this connection may still repeat known bets."""
        self.held = Held()
        self.news = 0
        """Number of new contents in a row, after all that this connection may repeat."""

    def connected(self, revision: int | None, *, provisional: bool) -> None:
        """Begin a connection that replays from this revision."""
        self.held, self.news = Held(), 0  # the replay brings it again
        self._position.held = False
        self.provisional = provisional
        if self.unproven_from is None:
            self._newest_known = self.newest
        self._deduplicator.connected(revision, replay_unproven=self.unproven_from is not None)
        self.since = inf if revision is None else float(revision)
        known = self._newest_known
        must_repeat = revision is not None and known is not None and known > max(revision, self._moved_from)
        self.unproven_from = revision if must_repeat else None
        self._stood_at = max(self._position.revision, self._moved_from)

    @property
    def is_before_move(self) -> bool:
        """Whether the position is before that from which an operator moved it."""
        return self._position.revision < self._moved_from

    @property
    def is_unproven(self) -> bool:
        """Whether the position has passed the revision, and nothing known was repeated."""
        return self.unproven_from is not None and self._position.revision > self._stood_at

    def may_repeat(self, at: float) -> bool:
        """Return whether a message of this time may be a repetition."""
        return self._position.replaying(at) or (self.since < inf and not self._position.has_only_pings(at))

    def is_over(self, at: float) -> bool:
        """Return whether what is held will not be repeated any more."""
        return bool(self.held.bets) and (self.news >= OVER or not self.may_repeat(at))

    def repeated(self, key: bytes) -> None:
        """Take note of a bet that was known, under this key."""
        self.news = 0
        if self._deduplicator.proves_replay(key):
            self.unproven_from = None

    def brought_new(self, letter: bytes) -> None:
        """Take note of something new, which known bets come before, because the feed is ordered.

        It is not as new as that if it was the dead letter of this identity until this version of the bridge
        could convert it, or if an operator moved the position back to where nothing was received.
        """
        if self.unproven_from is not None and self._deduplicator.letter_proves_replay(
            letter, since=self.unproven_from
        ):
            self.unproven_from = None
        was_letter = self._deduplicator.dead_letter_time(letter) is not None
        if not was_letter and not self.is_before_move:
            self.since = inf
