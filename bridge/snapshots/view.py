"""What the status page says about a snapshot job at one moment. Sans-IO; all lists are bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridge.observability.view import Says
from bridge.snapshots.model import Counts, LeftOut, Snapshot
from bridge.snapshots.results import Covered
from bridge.snapshots.status import JobStatus

MOST_LEFT_OUT: Final = 20
MOST_KINDS: Final = 50
MOST_LANGUAGES: Final = 5

_STUCK = Says("bad", "Stuck: this job makes no progress.", "Read in the log what it waits for; restart it.")
_RUNNING = Says("busy", "A run is under way. The topic changes when it is complete, in one transaction.")
_FAILED = Says(
    "bad",
    "The last run failed. The last snapshot stands as it was.",
    "Nothing if the next run succeeds; if they keep failing, act on the reason.",
)
_NOTHING = Says("busy", "Waiting for the first run.")
_COMPLETE = Says("good", "The last snapshot is complete.")
_NARROWED = Says("good", "The last snapshot has the part that this job was started for.")
_LEFT_OUT = Says(
    "busy",
    "The last snapshot is partial: the provider left something unanswered.",
    "Nothing: the next run asks for it again. What is left out stands as it was.",
)
_FORBIDDEN = Says(
    "bad",
    "The last snapshot is partial: the provider gives no right to some of it.",
    "Ask the provider for the rights named below, or select kinds with --kind.",
)


class Coverage(NamedTuple):
    """The share of the ids of a kind that have a name, in the language that has the fewest."""

    kind: str
    share: float
    """From 0 to 1."""
    percent: str
    """The same, rounded down: 100 % is all."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A snapshot job at one moment, in words and figures."""

    now: float
    status: JobStatus
    state: str
    """In a word, for the title."""
    says: Says
    reason: str
    next_in: float | None
    """Seconds until the next run; None during a run."""
    coverage: tuple[Coverage, ...]
    kinds: Mapping[str, Counts]
    more_kinds: int
    left_out: tuple[LeftOut, ...]
    more_left_out: int


def job_view(status: JobStatus, now: float) -> JobView:
    """Return what there is to say at `now`, Unix seconds."""
    snapshot = status.last.snapshot if status.last else None
    state, says, reason = _state(status, snapshot, now)
    counts = snapshot.counts if snapshot else {}
    left_out = snapshot.left_out if snapshot else ()
    return JobView(
        now=now,
        status=status,
        state=state,
        says=says,
        reason=reason,
        next_in=None if status.rests_until is None else max(0.0, status.rests_until - now),
        coverage=tuple(_covered(row) for row in status.coverage),
        kinds=dict(sorted(counts.items())[:MOST_KINDS]),
        more_kinds=max(0, len(counts) - MOST_KINDS),
        left_out=left_out[:MOST_LEFT_OUT],
        more_left_out=max(0, len(left_out) - MOST_LEFT_OUT),
    )


def _state(status: JobStatus, snapshot: Snapshot | None, now: float) -> tuple[str, Says, str]:
    healthy = status.health(now).healthy
    if not healthy.ok:
        return "Stuck", _STUCK, healthy.reason
    if status.rests_until is None:
        return "Running", _RUNNING, status.failure and f"the run before failed: {status.failure}"
    if status.failure:
        return "Failed", _FAILED, status.failure
    if snapshot is None:
        return "Waiting", _NOTHING, ""
    if snapshot.complete:
        return "Complete", _COMPLETE, ""
    if snapshot.left_out or snapshot.owed:
        why = f"{left.endpoint}: {left.why}" if (left := next(iter(snapshot.left_out), None)) else ""
        return "Partial", _FORBIDDEN if snapshot.forbidden else _LEFT_OUT, why
    return "Narrowed", _NARROWED, ""


def _covered(row: Covered) -> Coverage:
    lacking = sorted((named, language) for language, named in row.named.items() if named < row.seen)
    words = f"{row.seen:,} ids in bets, all with a name in each language"
    if lacking:
        counts = [f"{language} {named:,}" for named, language in lacking[:MOST_LANGUAGES]]
        more = f" and {len(lacking) - MOST_LANGUAGES} more languages" if len(lacking) > MOST_LANGUAGES else ""
        words = f"of {row.seen:,} ids in bets have a name: {', '.join(counts)}{more}"
        if row.missing:
            words += f"; without one is {row.missing[0]}"
    share = min(map(row.share, row.named), default=1.0)
    return Coverage(row.kind, share, f"{math.floor(10_000 * share) / 100:g} %", words)
