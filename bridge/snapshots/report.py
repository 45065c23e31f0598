"""What a run says when it is over: for a person, for a script, and for metrics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from bridge import errors
from bridge.formatting import utc
from bridge.snapshots.coverage import Covered
from bridge.snapshots.model import NO_RIGHT, LeftOut, Snapshot

MOST_LINES: Final = 10
"""For people: of what was left out, one by one."""


@dataclass(frozen=True, slots=True)
class Report:
    """One published snapshot, and how it came about."""

    snapshot: Snapshot
    full: bool
    """Whether everything was asked about anew."""
    bets: int
    """Settled bets that were read to learn what to ask about."""
    requests: int
    seconds: float
    """From the first question to the commit."""
    coverage: list[Covered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def written(self) -> int:
        """Records that were new or changed."""
        return sum(counts.written for counts in self.snapshot.counts.values())

    @property
    def removed(self) -> int:
        """Tombstones."""
        return sum(counts.removed for counts in self.snapshot.counts.values())

    def raise_if_left_out(self) -> None:
        """Raises LeftOut, with the first things that were, when the provider did not tell all of it."""
        snapshot = self.snapshot
        if not snapshot.left_out:
            return
        lines = [_line(left) for left in snapshot.left_out[:MOST_LINES]]
        if more := len(snapshot.left_out) - len(lines):
            lines.append(f"and {more:,} more: see leftOut in --json, or in the Snapshot record")
        lines.append(f"All else is published. The next run asks again about {snapshot.owed:,} things.")
        if snapshot.forbidden:
            lines.append("Ask the provider for the right to what answers 403, or choose kinds with --kind.")
        raise errors.LeftOut("\n".join(lines))

    def as_json(self) -> dict[str, Any]:
        """With its times in words."""
        snapshot = self.snapshot
        return {
            "job": snapshot.job,
            "snapshot": snapshot.id,
            "startedAt": utc(snapshot.started_at),
            "finishedAt": utc(snapshot.finished_at),
            "refreshedAt": None if snapshot.refreshed_at is None else utc(snapshot.refreshed_at),
            "seconds": round(self.seconds, 3),
            "full": self.full,
            "complete": snapshot.complete,
            "languages": list(snapshot.languages),
            "forbidden": list(snapshot.forbidden),
            "leftOut": [left._asdict() for left in snapshot.left_out],
            "owed": snapshot.owed,
            "bets": self.bets,
            "requests": self.requests,
            "written": self.written,
            "removed": self.removed,
            "kinds": {kind: asdict(counts) for kind, counts in snapshot.counts.items()},
            "ends": {str(partition): offset for partition, offset in sorted(snapshot.ends.items())},
            "coverage": {row.kind: row.as_json() for row in self.coverage},
            "notes": self.notes,
        }


def _line(left: LeftOut) -> str:
    if left.id is None and left.why == NO_RIGHT:
        return f"the provider gives no right to {left.endpoint} (403): it is left out"
    return f"left out: {left.endpoint}{'' if left.id is None else f', {left.id}'}: {left.why}"
