"""The rules for checkpoints, in the order of their offsets. Any of them may have been compacted away."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.judge.model import Anomaly, Case, Findings
from tests.judge.timeline import Gap, Timeline

_MARKERS_SECONDS = 60.0
"""Within so long a transaction ends in all partitions; and another position in the future takes longer."""
_STILL = 10
"""Of so many checkpoints in a row of a bridge that is live, the position must have moved."""
_OUTCOMES = ("published", "duplicates", "stale", "deadLettered", "pings", "empty")


class Entry(NamedTuple):
    """An attempt to connect in a ledger."""

    at: float
    """When the bridge decided to make it, Unix seconds."""
    recovery_seconds: int
    """How far back it asked the feed to go; 0 for everything."""


class Checkpoint(NamedTuple):
    """A committed checkpoint of the feed; times in Unix seconds."""

    revision: int
    updated_at: float
    counters: Mapping[str, int]
    moved: Any
    """How an operator moved the position last."""
    offset: int
    committed_at: float = -inf
    """When its transaction was committed."""
    ledger: Sequence[Entry] = ()
    """The attempts that the bridge remembers."""
    state: str = ""


class Promise(NamedTuple):
    """A checkpoint that was the first to promise what was published before its revision."""

    before: float
    """The moment of the provider before which everything must have been committed."""
    updated_at: float
    """By the bridge, but no later than its commit."""
    offset: int
    revision: int
    committed_at: float
    counters: Mapping[str, int]
    followed_at: float = inf
    """When the next transaction of the feed was committed."""

    def may_be_behind(self, gap: Gap) -> bool:
        """Whether it may have been committed with a gap, or after it.

        A position in the future promised nothing: it is a gap of its own.
        """
        if self.revision > self.committed_at:
            return True
        return gap.committed <= self.followed_at and gap.detected_at <= self.updated_at


class Commits:
    """When the transaction of each promise ended in a topic, to the last record.

    Of two transactions of a feed, the first ends in all partitions before the second begins. So by the times
    of their commits, the n-th record belongs to the transaction whose checkpoint counts n. Where the topic of
    checkpoints was made anew, n begins with the records that the first checkpoint does not count.
    """

    def __init__(self, counter: str) -> None:
        self._counter = counter
        self._before: Counter[int] = Counter()
        """How many records were committed before each promise, and not before the one before that."""
        self._around: dict[int, Counter[float]] = defaultdict(Counter)
        """How many at each time from then to the next checkpoint: few times, those of the partitions."""
        self._ends: list[float] = []

    def add(self, committed: float, promises: Sequence[Promise]) -> None:
        """Count a record, once all promises are known."""
        place = bisect_right(promises, committed, key=lambda it: it.committed_at)
        self._before[place] += 1
        if place and committed <= promises[place - 1].followed_at:
            self._around[place - 1][committed] += 1

    def end(self, place: int, promises: Sequence[Promise]) -> float:
        """Return when the transaction of a promise ended, once all records are counted."""
        if not self._ends:
            self._ends = list(self._computed(promises))
        return self._ends[place]

    def _computed(self, promises: Sequence[Promise]) -> Iterator[float]:
        count = min(0, promises[0].counters[self._counter] - self._before[0]) if promises else 0
        for place, promise in enumerate(promises):
            count += self._before[place]
            end, left = promise.committed_at, promise.counters[self._counter] - count
            for at, records in sorted(self._around[place].items()):
                if left > 0:
                    end, left = at, left - records
            yield end


class Checkpoints:
    """Takes the checkpoints of a feed one after the other. Keeps one row for each second of the position."""

    def __init__(self, timeline: Timeline, gaps: Sequence[Gap], case: Case, findings: Findings) -> None:
        self._timeline = timeline
        self._case = case
        self._gaps = gaps
        self._findings = findings
        self.promises: list[Promise] = []
        self._commits = {name: Commits(name) for name in ("published", "deadLettered")}
        self.last: Checkpoint | None = None
        self.count = 0
        self._still, self._stands_since = 0, inf
        """How many checkpoints a live bridge has written with the last position, and when the first."""

    def take(self, it: Checkpoint) -> None:
        """Judge the next checkpoint."""
        self.count += 1
        if self.promises and self.last is not None and self.promises[-1].offset == self.last.offset:
            self.promises[-1] = self.promises[-1]._replace(followed_at=it.committed_at)
        counters = it.counters
        given, ends = counters["received"] + counters["redriven"], sum(counters[name] for name in _OUTCOMES)
        if given != ends or min(counters.values()) < 0 or counters["corrections"] > counters["published"]:
            self._add(Anomaly.COUNTERS, it, f"{dict(counters)}: {given} messages have {ends} outcomes")
        if self.last is not None:
            self._follows(self.last, it)
        if self._case.has_operator and self.last is not None and it.moved != self.last.moved:
            while self.promises and self.promises[-1].revision > it.revision:  # it may be asked for again
                self.promises.pop()
        self._judge_still(it)
        self.last = it
        if not self.promises or it.revision > self.promises[-1].revision:
            before, updated_at = self._timeline.first(it.revision), min(it.updated_at, it.committed_at)
            promise = Promise(before, updated_at, it.offset, it.revision, it.committed_at, counters)
            self.promises.append(promise)

    def promise(self, published: float) -> Promise | None:
        """Return the first checkpoint that promised a message of this moment; None if none did."""
        place = bisect_right(self.promises, published, key=lambda it: it.before)
        return self.promises[place] if place < len(self.promises) else None

    def committed(self, counter: str, at: float) -> None:
        """Note when a record was committed that a counter counts, once all checkpoints were taken."""
        self._commits[counter].add(at, self.promises)

    def judge_order(
        self, what: str, published: float, received: float, committed: float, counter: str = "published"
    ) -> None:
        """Judge a message by its first record: none promised it before it was received and committed.

        `counter` counts such records.
        """
        place = bisect_right(self.promises, published, key=lambda it: it.before)
        if place == len(self.promises):
            return
        promise = self.promises[place]
        if promise.updated_at < received:
            self._findings.add(
                Anomaly.CHECKPOINT_AHEAD,
                received,
                f"{what}, published at {published:.3f}, was received at {received:.3f}: after the checkpoint "
                f"at offset {promise.offset}, of {promise.updated_at:.3f}, had revision {promise.revision}",
            )
        elif (end := self._commits[counter].end(place, self.promises)) < committed:
            self._findings.add(
                Anomaly.CHECKPOINT_AHEAD,
                committed,
                f"{what}, published at {published:.3f}, was committed at {committed:.3f}: later than the "
                f"transaction of the checkpoint at offset {promise.offset} with revision {promise.revision}, "
                f"which ended at {end:.3f}",
            )

    def judge_counts(
        self, found: Mapping[str, int], corrections: int, torn: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Compare the counters of the last checkpoint with what the topics have, and with what was `torn`.

        A correction of a bet that the bridge has forgotten is not counted as one.
        """
        if self.last is None:
            self._findings.add(Anomaly.COUNTERS, 0.0, "the feed has no checkpoint")
            return
        for name, count in found.items():
            if not 0 <= self.last.counters[name] - count <= torn.get(name, 0):
                text = f"{name} is {self.last.counters[name]:,}, the topic has {count:,}"
                self._add(Anomaly.COUNTERS, self.last, text)
        if self.last.counters["corrections"] > corrections + torn.get("published", 0):
            text = f"corrections is {self.last.counters['corrections']:,}, the topic has {corrections:,}"
            self._add(Anomaly.COUNTERS, self.last, text)

    def position(self, before: float) -> int | None:
        """Return the highest position that was committed before, None without one.

        One in the future, which is given up, is none.
        """
        place = bisect_left(self.promises, before, key=lambda it: it.committed_at)
        committed = (it for it in reversed(self.promises[:place]) if it.revision <= it.committed_at)
        return next((it.revision for it in committed), None)

    def judge_position(self, end: float) -> None:
        """Judge how far the last position is behind the end of the stream, a reading of the clock."""
        if self.last is not None and self.last.revision < end - self._case.position_margin:
            text = f"revision {self.last.revision}, and the stream ended at {end:.3f}"
            self._add(Anomaly.POSITION_BEHIND, self.last, text)

    def _judge_still(self, it: Checkpoint) -> None:
        """Judge whether the position stands while the bridge is live; `last` is the checkpoint before."""
        last = self.last
        stands = last is not None and last.revision == it.revision and last.state == it.state == "Live"
        if not stands:
            self._still, self._stands_since = 0, it.updated_at
        self._still += 1
        if self._still > _STILL and it.updated_at > self._stands_since + self._case.position_margin:
            text = f"revision {it.revision} since {self._stands_since:.3f}, with the bridge live"
            self._add(Anomaly.POSITION_BEHIND, it, text)
            self._still, self._stands_since = 0, inf

    def _follows(self, last: Checkpoint, it: Checkpoint) -> None:
        fallen = [name for name, value in last.counters.items() if it.counters[name] < value]
        if fallen:
            text = f"{fallen[0]} falls from {last.counters[fallen[0]]} to {it.counters[fallen[0]]}"
            self._add(Anomaly.COUNTERS, it, text)
        is_moved = self._case.has_operator and it.moved != last.moved
        if it.revision < last.revision and not is_moved and not self._is_taken_back(last, it):
            text = f"revision {last.revision} at offset {last.offset} becomes {it.revision}"
            self._add(Anomaly.CHECKPOINT_BACK, it, text)

    def _is_taken_back(self, last: Checkpoint, it: Checkpoint) -> bool:
        """Whether a position in the future was given up, with a gap over it."""
        return any(
            gap.cause == "PositionInFuture"
            and gap.start <= it.revision
            and gap.end >= last.revision
            and last.committed_at < gap.committed <= it.committed_at + _MARKERS_SECONDS
            for gap in self._gaps
        )

    def _add(self, anomaly: Anomaly, it: Checkpoint, text: str) -> None:
        self._findings.add(anomaly, it.updated_at, f"checkpoint at offset {it.offset}: {text}")
