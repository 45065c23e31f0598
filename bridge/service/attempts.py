"""How connections to the feed ended, and what may follow: the pause after a failure, and what counts."""

from __future__ import annotations

import random
from collections import Counter

from bridge.clock import Instant
from bridge.errors import FeedError, FeedRefused, FeedUnreached
from bridge.feed.backoff import Backoff
from bridge.feed.rate_limits import Decision
from bridge.log import get
from bridge.masking import concealed
from bridge.records.checkpoint import State
from bridge.service.term import Term


class Attempts:
    """The attempts of a term to connect."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._backoff = Backoff(term.settings.limits.scale, random.uniform)
        self._failure = ""
        """How the last attempt or connection ended."""
        self.unreached = False
        """Whether that reached nobody."""
        self._opened_at: float | None = None
        self.results: Counter[str] = Counter()
        """Attempts so far: `accepted`, `refused`, `failed`."""

    def accepted(self, now: Instant) -> None:
        """Account for an open connection."""
        self._opened_at = now.monotonic
        self.results["accepted"] += 1

    def ended(self, error: FeedError) -> None:
        """Account for the end of a connection, or of an attempt."""
        now, limiter = self._term.clock(), self._term.limiter
        refused = self.is_refusal(error)
        if refused and self._opened_at is not None:  # accepted, then closed because of a limit
            limiter.answered(now, refused=True)
        if self._opened_at is None or refused:
            self.results["refused" if refused else "failed"] += 1
        lasted = 0.0 if self._opened_at is None else now.monotonic - self._opened_at
        self._opened_at = None
        before, self.unreached = (self.unreached, self._failure), isinstance(error, FeedUnreached)
        # Into topics, too; what a provider answered may be a page.
        self._failure = " ".join(concealed(str(error)).split())
        if self.unreached:
            self._backoff.unreached(now.monotonic)
        else:
            # Attempts that ask for 0 are few, too: not all may be spent on one short trouble.
            scarce = refused or self._term.starting
            self._backoff.failed(now.monotonic, lasted=lasted, refused=scarce)
        if before != (True, self._failure):  # it may be tried each second
            get().warning("disconnected", reason=str(error), failures=self._backoff.failures)

    def pause(self, now: Instant) -> tuple[State, Decision]:
        """Return when the pause is over, and the state until then."""
        over_at = now.wall + self._backoff.left(now.monotonic)
        return State.BACKING_OFF, Decision(over_at, self._failure)

    def is_refusal(self, error: FeedError) -> bool:
        """Return whether the answer is a refusal for a limit. Any other answer is a fault."""
        statuses = self._term.settings.feed.refusal_statuses
        return isinstance(error, FeedRefused) and error.status in {None, *statuses}
