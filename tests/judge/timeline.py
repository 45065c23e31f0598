"""What the provider's own log says about time: its clock, its memory, who was connected from where on.

Moments are the provider's, Unix seconds that never go back; readings are what its clock showed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import inf, nextafter
from typing import Any, NamedTuple


class Gap(NamedTuple):
    """A declared gap: readings of the provider's clock, Unix seconds."""

    start: float
    end: float
    cause: str
    detected_at: float
    """By the bridge, but no later than its commit."""
    offset: int = 0
    committed: float = -inf
    """When its transaction was committed; -infinity if that says nothing."""

    def covers(self, reading: float) -> bool:
        """Whether what was published at this reading may be missing."""
        return self.start <= reading < self.end


class Timeline:
    """The simulator's `/state` and `/attempts`."""

    def __init__(
        self, state: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]], start_age: float = 0.0
    ) -> None:
        self.attempts = attempts
        self._start_age = start_age
        steps: list[tuple[float, float]] = [(it["after"], it["ahead"]) for it in state["clock_steps"]]
        self._steps = [(-inf, 0.0), *steps]
        self._remembers = float(state["remembers_seconds"])
        self._forgotten: list[tuple[float, float]] = [(it["at"], it["before"]) for it in state["forgotten"]]
        accepted = [it for it in attempts if it["since"] is not None]
        self.replays = [(float(it["at"]), float(it["since"]), float(it["revision"] or 0)) for it in accepted]
        """Of each accepted attempt: its moment, from when on data was sent, and the revision asked for."""
        self._accepted = [(at, since) for at, since, _ in self.replays]

    @property
    def begin(self) -> float:
        """The moment from which on everything must be published; infinity without an attempt.

        That is where the first connection attempt wanted to begin, whatever its answer was, and no later than
        it had to, or than it was sent messages from.
        """
        if not self.attempts:
            return inf
        first = self.attempts[0]
        asked = self.first(first["revision"]) if first["revision"] else inf
        sent = float(first["at"] if first["since"] is None else first["since"])
        return min(asked, sent, float(first["at"]) - self._start_age)

    def reading(self, moment: float) -> float:
        """What the provider's clock showed."""
        step = bisect_left(self._steps, moment, lo=1, key=lambda it: it[0]) - 1
        return moment + self._steps[step][1]

    def first(self, reading: float) -> float:
        """The first moment at which the clock showed a reading or a later one: a replay begins there."""
        ends = [begin for begin, _ in self._steps[1:]] + [inf]
        moments = (
            (max(nextafter(begin, inf), reading - ahead), end)
            for (begin, ahead), end in zip(self._steps, ends, strict=True)
        )
        return next(moment for moment, end in moments if moment <= end)

    def memory(self, moment: float) -> float:
        """The beginning of what the provider could replay at a moment."""
        forgotten = [before for at, before in self._forgotten if at <= moment]
        return max(moment - self._remembers, *forgotten[-1:], -inf)

    def out_of_reach(self, published: float) -> bool:
        """Whether the provider could not replay a message when a replay would have brought it back.

        That is at the first accepted attempt after the last connection that began before the message. If the
        provider still had it then, the bridge asked for too little.
        """
        after = [at for at, _ in self._accepted]
        sent = [number for number, (_, since) in enumerate(self._accepted) if since <= published]
        following = sent[-1] + 1 if sent else bisect_left(after, published)
        return following < len(after) and self.memory(after[following]) > published

    def is_forgotten(self, published: float, after: float) -> bool:
        """Whether the first attempt accepted after a moment could not bring back a message any more."""
        accepted = next((at for at, _ in self._accepted if at > after), after)
        return published < self.memory(accepted)

    def sent_from(self, moment: float) -> float:
        """From when on the connection accepted last at a moment was sent messages; infinity: none."""
        return next((since for at, since in reversed(self._accepted) if at <= moment), inf)

    def was_asked_for(self, revision: float, before: float) -> bool:
        """Whether a connection accepted by a moment had asked for this revision, give or take a second."""
        return any(at <= before and abs(asked - revision) <= 1 for at, _, asked in self.replays)

    def connected_between(self, earlier: float, later: float, before: float = inf) -> bool:
        """Whether a connection was sent what was published from between two moments on.

        Only those count that were accepted `before` another moment.
        """
        return any(earlier < since <= later and at < before for at, since in self._accepted)
