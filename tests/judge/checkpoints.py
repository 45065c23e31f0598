"""The rules for checkpoints, in the order of their offsets. Any of them may have been compacted away."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from tests.judge.model import Anomaly, Case, Findings
from tests.judge.timeline import Gap, Timeline

_OUTCOMES = ("published", "duplicates", "stale", "deadLettered", "pings", "empty")


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


class Promise(NamedTuple):
    """A checkpoint that was the first to promise what was published before its revision."""

    before: float
    """The moment of the provider before which everything must have been committed."""
    updated_at: float
    offset: int
    revision: int
    followed_at: float = inf
    """When the next transaction of the feed was committed."""


class Checkpoints:
    """Takes the checkpoints of a feed one after the other. Keeps one row for each second of the position."""

    def __init__(self, timeline: Timeline, gaps: Sequence[Gap], case: Case, findings: Findings) -> None:
        self._timeline = timeline
        self._has_operator = case.has_operator
        self._gaps = gaps
        self._findings = findings
        self._promises: list[Promise] = []
        self.last: Checkpoint | None = None
        self.count = 0

    def take(self, it: Checkpoint) -> None:
        """Judge the next checkpoint."""
        self.count += 1
        if self._promises and self.last is not None and self._promises[-1].offset == self.last.offset:
            self._promises[-1] = self._promises[-1]._replace(followed_at=it.committed_at)
        counters = it.counters
        given, ends = counters["received"] + counters["redriven"], sum(counters[name] for name in _OUTCOMES)
        if given != ends or min(counters.values()) < 0 or counters["corrections"] > counters["published"]:
            self._add(Anomaly.COUNTERS, it, f"{dict(counters)}: {given} messages have {ends} outcomes")
        if self.last is not None:
            self._follows(self.last, it)
        self.last = it
        if not self._promises or it.revision > self._promises[-1].revision:
            before = self._timeline.first(it.revision)
            self._promises.append(Promise(before, it.updated_at, it.offset, it.revision))

    def promise(self, published: float) -> Promise | None:
        """Return the first checkpoint that promised a message of this moment; None if none did."""
        place = bisect_right(self._promises, published, key=lambda it: it.before)
        return self._promises[place] if place < len(self._promises) else None

    def judge_order(self, what: str, published: float, received: float, committed: float) -> None:
        """Judge a message by its first record: none promised it before it was received and committed.

        Of two transactions of a feed, the first ends in all partitions before the second begins. So what was
        committed after the checkpoint behind the promise was not in the transaction of the promise.
        """
        promise = self.promise(published)
        if promise is None:
            return
        if promise.updated_at < received:
            self._findings.add(
                Anomaly.CHECKPOINT_AHEAD,
                received,
                f"{what}, published at {published:.3f}, was received at {received:.3f}: after the checkpoint "
                f"at offset {promise.offset}, of {promise.updated_at:.3f}, had revision {promise.revision}",
            )
        elif promise.followed_at < committed:
            self._findings.add(
                Anomaly.CHECKPOINT_AHEAD,
                committed,
                f"{what}, published at {published:.3f}, was committed at {committed:.3f}: later than the "
                f"checkpoint behind the one at offset {promise.offset} with revision {promise.revision}",
            )

    def judge_counts(self, records: int, letters: int, redriven: int) -> None:
        """Compare the last checkpoint with the number of records, dead letters and marks in the topics."""
        if self.last is None:
            self._findings.add(Anomaly.COUNTERS, 0.0, "the feed has no checkpoint")
            return
        for name, found in (("published", records), ("deadLettered", letters), ("redriven", redriven)):
            if self.last.counters[name] != found:
                text = f"{name} is {self.last.counters[name]:,}, the topic has {found:,}"
                self._add(Anomaly.COUNTERS, self.last, text)

    def _follows(self, last: Checkpoint, it: Checkpoint) -> None:
        fallen = [name for name, value in last.counters.items() if it.counters[name] < value]
        if fallen:
            text = f"{fallen[0]} falls from {last.counters[fallen[0]]} to {it.counters[fallen[0]]}"
            self._add(Anomaly.COUNTERS, it, text)
        is_moved = self._has_operator and it.moved != last.moved
        if it.revision < last.revision and not is_moved and not self._is_taken_back(last, it):
            text = f"revision {last.revision} at offset {last.offset} becomes {it.revision}"
            self._add(Anomaly.CHECKPOINT_BACK, it, text)

    def _is_taken_back(self, last: Checkpoint, it: Checkpoint) -> bool:
        """Whether a position in the future was given up, with a gap over it."""
        return any(
            gap.cause == "PositionInFuture" and gap.start <= it.revision and gap.end >= last.revision
            for gap in self._gaps
        )

    def _add(self, anomaly: Anomaly, it: Checkpoint, text: str) -> None:
        self._findings.add(anomaly, it.updated_at, f"checkpoint at offset {it.offset}: {text}")
