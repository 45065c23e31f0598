"""The provider's limits on connections and recovery, and its own book of who asked for what.

Where the interface leaves room, the strictest reading is taken, so that a client which is let in here
is let in by any provider that keeps to it (interface, "Limits"):

- attempts without a revision and with one that is too small share one window;
- 0 and a too small revision are older than an hour, so they count as large recoveries, too;
- the window of connections with a proper revision counts all others as well, so that a provider which allows
  five of any kind is satisfied, too;
- a small recovery is blocked when the bucket would overflow, not only when it is full already
  (`bucket_may_overflow` is the literal reading);
- an attempt counts whatever the answer, be it 401, and what it asked for fills the bucket;
- one whose revision is no number counts as one without.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from bridge_sandbox.provider.model import Model

Connections = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
Kind = Literal["initial", "small", "large"]
"""How an attempt is classed: without a (large enough) revision, or by the recovery it asks for."""
Rule = Literal["active", "initial", "proper", "large", "bucket"]
"""Which limit was broken."""


@dataclass(frozen=True)
class Breach:
    """A limit that an attempt broke."""

    at: float
    """Unix seconds."""
    revision: int | None
    rule: Rule
    reason: str
    holder: str = ""
    """With rule `active`: the name of the client whose connection was active; empty without a name."""


class _Window:
    """At most `limit` attempts in any `seconds`."""

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._attempts: deque[float] = deque()

    def add(self, now: float) -> str | None:
        while self._attempts and now - self._attempts[0] >= self._seconds:
            self._attempts.popleft()
        self._attempts.append(now)
        if len(self._attempts) <= self._limit:
            return None
        return f"{len(self._attempts)} within {self._seconds:g} s, {self._limit} are allowed"


class _Bucket:
    """A leaky bucket of recovered seconds. One that `may_overflow` blocks what comes while it is full."""

    def __init__(self, capacity: float, drain: float, *, may_overflow: bool) -> None:
        self._capacity = capacity
        self._drain = drain
        self._may_overflow = may_overflow
        self._level = 0.0
        self._at = 0.0

    def add(self, now: float, seconds: float) -> str | None:
        before = max(0.0, self._level - (now - self._at) * self._drain)
        level = before + seconds
        self._at = now
        if self._may_overflow:
            self._level = level
            return None if before < self._capacity else f"it holds {before:g} of {self._capacity:g} s"
        self._level = min(level, self._capacity)
        if level <= self._capacity:
            return None
        return f"{seconds:g} s more would fill it to {level:g} of {self._capacity:g} s"


class LimitSettings(Model):
    """The figures of the limits, by the names of the bridge's settings `limits`. Those of the interface."""

    model_config = ConfigDict(allow_inf_nan=False)

    initial_connections: Connections = 5
    initial_window_seconds: Positive = 1800
    proper_connections: Connections = 5
    proper_window_seconds: Positive = 300
    large_connections: Connections = 5
    large_window_seconds: Positive = 1800
    large_age_seconds: Positive = 3600
    bucket_seconds: Positive = 3600
    bucket_drain: Positive = 4
    max_age_seconds: Positive = 259_200


class Limits:
    """Judges attempts to connect. `now` is in Unix seconds and never goes back.

    `scale` makes every duration (windows, ages, the bucket) that many times shorter. The drain, which is
    seconds a second, stays as it is.
    """

    def __init__(
        self, scale: float = 1.0, *, bucket_may_overflow: bool = False, settings: LimitSettings | None = None
    ) -> None:
        of = settings or LimitSettings()
        self.scale = scale
        self.max_age = of.max_age_seconds / scale
        self.large_age = of.large_age_seconds / scale
        self.breaches: list[Breach] = []
        self._initial = _Window(of.initial_connections, of.initial_window_seconds / scale)
        self._proper = _Window(of.proper_connections, of.proper_window_seconds / scale)
        self._large = _Window(of.large_connections, of.large_window_seconds / scale)
        self._bucket = _Bucket(of.bucket_seconds / scale, of.bucket_drain, may_overflow=bucket_may_overflow)

    def attempt(
        self, now: float, revision: int | None, *, holder: str | None = None, ahead: float = 0
    ) -> tuple[Kind, Breach | None]:
        """Enter an attempt in the book; return its class, and the limit that refuses it, if any.

        `holder` is the client whose connection is active, if one is. The clock that revisions are readings of
        is `ahead` of `now`.
        """
        age = now + ahead - revision if revision else inf
        kind: Kind = "initial" if age > self.max_age else "large" if age > self.large_age else "small"
        found: list[tuple[Rule, str | None]] = []
        if holder is not None:
            found.append(("active", "another connection is active"))
        if kind == "initial":
            found.append(("initial", self._initial.add(now)))
        found.append(("proper", self._proper.add(now)))
        if kind == "small":
            found.append(("bucket", self._bucket.add(now, max(0.0, age))))
        elif revision is not None:
            found.append(("large", self._large.add(now)))
        breaches = [
            Breach(now, revision, rule, f"{rule}: {why}", (holder or "") if rule == "active" else "")
            for rule, why in found
            if why
        ]
        self.breaches += breaches
        return kind, breaches[0] if breaches else None
