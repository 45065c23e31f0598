"""What a connection may still repeat, and whether its replay repeats what it must.

What was settled after the requested revision was published after it. So a replay must repeat something that
is known from after the revision; one that does not has lost what the provider no longer has.
"""

from __future__ import annotations

from math import inf

from bridge.dedup.deduplicator import Deduplicator
from bridge.feed.position import Position
from bridge.records.checkpoint import Checkpoint, UnprovenReplay
from bridge.service.held import OVER, Held


class ReplayTracker:
    """The replay of one connection after the other."""

    def __init__(self, position: Position, deduplicator: Deduplicator, start: Checkpoint) -> None:
        self._position = position
        self._deduplicator = deduplicator
        self.unproven = start.unproven
        """What the replay must repeat, until it repeats something known from after its revision."""
        self.provisional = False
        """Whether what was published before this connection may be lacking: `newest` does not follow it."""
        self._moved_from = min(start.moved.start, int(start.moved.at)) if start.moved else 0
        """The position before an operator moved it. What lies before may never have been received."""
        self._stood_at = position.revision
        """The position when the connection began, or `_moved_from` if that is later."""
        self.newest = start.newest
        """The newest published settlementTime that is not in the future, Unix seconds."""
        self.since = inf
        """Unix seconds from which this connection may still repeat known bets."""
        self.held = Held()
        self.news = 0
        """Number of new contents in a row, after all that this connection may repeat."""

    def asked(self, revision: int | None, at: float) -> None:
        """Note an attempt to have all from this revision replayed, before it is made and committed.

        Whoever goes on after a crash awaits the same, by what was received before `at`, Unix seconds.
        """
        known, unproven = self._deduplicator, self.unproven
        # What revision 0 brings need not follow what is known: the next one asks for what lies between.
        begin = self._position.revision if revision is None else revision
        after = max(begin, self._moved_from)
        if unproven and unproven.newest <= after:
            unproven = None  # a gap reaches beyond it: what came since is known as well
        known.connected(revision, replay_unproven=unproven is not None)
        newest, since = self.newest, max(at, known.received_until + 0.001)  # the clock may have been set back
        if unproven:  # its attempt's clock may have been ahead
            newest, since = unproven.newest, min(unproven.since, since)
        self.unproven = None
        if newest is not None and newest > after:
            self.unproven = UnprovenReplay(begin, since, newest)

    def connected(self, revision: int | None, *, provisional: bool) -> None:
        """Begin a connection that replays from this revision, which was `asked` for."""
        self.held, self.news = Held(), 0  # the replay brings it again
        self._position.held = False
        self.provisional = provisional
        self.since = inf if revision is None else float(revision)
        self._stood_at = max(self._position.revision, self._moved_from)

    @property
    def is_before_move(self) -> bool:
        """Whether the position is before that from which an operator moved it."""
        return self._position.revision < self._moved_from

    @property
    def is_unproven(self) -> bool:
        """Whether the position has passed the revision, and nothing known was repeated."""
        return self.unproven is not None and self._position.revision > self._stood_at

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
            self.unproven = None

    def brought_new(self, letter: bytes) -> None:
        """Take note of something new, which known bets come before, because the feed is ordered.

        It is not as new as that if it was the dead letter of this identity until this version of the bridge
        could convert it, or if an operator moved the position back to where nothing was received.
        """
        unproven = self.unproven
        if unproven and self._deduplicator.letter_proves_replay(letter, since=unproven.revision):
            self.unproven = None
        was_letter = self._deduplicator.dead_letter_time(letter) is not None
        if not was_letter and not self.is_before_move:
            self.since = inf
