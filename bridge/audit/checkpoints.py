"""Judges the checkpoints of all feeds in the order of their offsets.

The topic is compacted, so checkpoints are missing between those that it still has. All rules hold for any two
of a feed, whatever was between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from operator import attrgetter
from typing import NamedTuple

from bridge.audit.findings import HOUR_MS, AuditFinding, Findings, Proof
from bridge.clock import MICROS
from bridge.formatting import camel_case, format_utc
from bridge.records.checkpoint import Checkpoint
from bridge.records.counters import Counters
from bridge.records.gap import Cause, FeedGap

MOST_SUSPECTS = 10_000
"""Movements of positions that are kept until the gaps are known."""
_COUNTERS = tuple(counter.name for counter in fields(Counters))
_counts = attrgetter(*_COUNTERS)


class _Suspect(NamedTuple):
    """A violation unless a gap explains it."""

    found: AuditFinding
    feed: str
    start: int
    end: int


@dataclass
class _Feed:
    """What is known of a feed."""

    last: Checkpoint
    updated_at: float = -inf
    """The newest time of a commit."""
    is_retired: bool = False
    """Whether the last checkpoint says that the feed is over."""


class CheckpointsCheck:
    """Judges checkpoints. Where a position stands still or moves is compared with the gaps at the end.

    `skew_seconds` is how far two clocks may be apart.
    """

    def __init__(self, findings: Findings, skew_seconds: float) -> None:
        self._findings = findings
        self._skew = skew_seconds
        self._feeds: dict[str, _Feed] = {}
        self._suspects: list[_Suspect] = []
        self._newest: dict[tuple[str, int], tuple[int, AuditFinding]] = {}
        self.records = 0

    @property
    def last(self) -> Mapping[str, Checkpoint]:
        """The last checkpoint of each feed."""
        return {name: feed.last for name, feed in self._feeds.items()}

    @property
    def newest(self) -> Mapping[int, AuditFinding]:
        """The newest settlementTimes published, microseconds, as the last checkpoint of each hour has them.

        Each with the violation that it is if no bet has it.
        """
        return dict(self._newest.values())

    def take(
        self, checkpoint: Checkpoint, place: AuditFinding, *, retires: bool = False, succeeds: bool = False
    ) -> None:
        """Judge the next checkpoint. `place` is its place, with any text.

        One that `succeeds` a retired feed may have that feed's position. So may the next one after one that
        `retires` its own.
        """
        self.records += 1
        self._identity(checkpoint, place)
        feed = self._feeds.setdefault(checkpoint.feed, _Feed(checkpoint))
        self._compare_counters(feed.last, checkpoint, place)
        if not feed.is_retired and not succeeds:
            self._compare_positions(feed.last, checkpoint, place)
        feed.is_retired = retires
        feed.updated_at = max(feed.updated_at, checkpoint.updated_at)
        if checkpoint.revision > feed.updated_at + 2 * self._skew:
            text = f"the position {format_utc(checkpoint.revision)} is later than any commit before it"
            found = place._replace(proof=Proof.AHEAD, text=text)
            self._suspect(_Suspect(found, checkpoint.feed, checkpoint.revision, checkpoint.revision))
        feed.last = checkpoint
        if checkpoint.newest is not None:
            micros = round(checkpoint.newest * MICROS)
            text = f"no bet has its newestSettlement, {format_utc(checkpoint.newest)}"
            hour = (place.at or 0) // HOUR_MS
            self._newest[checkpoint.feed, hour] = micros, place._replace(proof=Proof.AHEAD, text=text)

    def removed(self, feed: str) -> None:
        """Take note of a tombstone: the feed begins anew."""
        self._feeds.pop(feed, None)

    def conclude(self, gaps: Sequence[FeedGap], since: float) -> None:
        """Report each movement of a position that no gap explains.

        `since` is the Unix time in milliseconds from which on no gap was deleted: what explained an earlier
        movement may be gone.
        """
        for suspect in self._suspects:
            if (suspect.found.at or 0) <= since:
                continue
            own = [gap for gap in gaps if gap.feed == suspect.feed]
            future = [gap for gap in own if gap.cause is Cause.POSITION_IN_FUTURE]
            match suspect.found.proof:
                case Proof.GAP:
                    explained = covered(suspect.start, suspect.end, own)
                case Proof.POSITION:  # from `end` back to `start`
                    explained = any(gap.start <= suspect.start and suspect.end <= gap.end for gap in future)
                case _:
                    explained = any(gap.start <= suspect.end <= gap.end for gap in future)
            if not explained:
                self._findings.violate(suspect.found)

    def _identity(self, checkpoint: Checkpoint, place: AuditFinding) -> None:
        if not checkpoint.counters.balanced:
            words = ", ".join(
                f"{camel_case(name)} {count:,}"
                for name, count in zip(_COUNTERS, _counts(checkpoint.counters), strict=True)
            )
            text = f"the outcomes do not add up to what was received: {words}"
            self._findings.violate(place._replace(proof=Proof.IDENTITY, text=text))

    def _compare_counters(self, before: Checkpoint, after: Checkpoint, place: AuditFinding) -> None:
        counts = zip(_COUNTERS, _counts(before.counters), _counts(after.counters), strict=True)
        back = [f"{camel_case(name)} from {old:,} to {new:,}" for name, old, new in counts if new < old]
        if back:
            text = f"a counter went back: {', '.join(back)}"
            self._findings.violate(place._replace(proof=Proof.COUNTERS, text=text))

    def _compare_positions(self, before: Checkpoint, after: Checkpoint, place: AuditFinding) -> None:
        if after.revision < before.revision and after.moved == before.moved:
            text = (
                f"the position went back from {format_utc(before.revision)} to {format_utc(after.revision)}"
            )
            found = place._replace(proof=Proof.POSITION, text=text)
            self._suspect(_Suspect(found, after.feed, after.revision, before.revision))
        # Only messages move a position, and gaps. Before the first connection attempt it promises nothing.
        unmoved = after.counters.received == before.counters.received
        if after.revision > before.revision and unmoved and (before.ledger or before.counters.received):
            interval = f"{format_utc(before.revision)} to {format_utc(after.revision)}"
            text = f"the position moved from {interval} without a message or a gap"
            found = place._replace(proof=Proof.GAP, text=text)
            self._suspect(_Suspect(found, after.feed, before.revision, after.revision))

    def _suspect(self, suspect: _Suspect) -> None:
        if len(self._suspects) < MOST_SUSPECTS:
            self._suspects.append(suspect)
        else:
            self._findings.unproven[suspect.found.proof] = f"only the first {MOST_SUSPECTS:,} movements"


def covered(start: float, end: float, gaps: Sequence[FeedGap]) -> bool:
    """Return whether the gaps cover the interval [start, end) without a hole."""
    for gap in sorted(gaps, key=lambda gap: gap.start):
        if gap.start > start:
            break
        start = max(start, gap.end)
    return start >= end
