"""What the status page says about a snapshot job at one moment. Sans-IO; all lists are bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bridge.observability.view import Headline
from bridge.snapshots.model import MAX_LEFT_OUT, NO_RIGHT, Omission
from bridge.snapshots.status import ITS_TURN, JobStatus

MOST_LEFT_OUT: Final = 20
MOST_KINDS: Final = 50

_STUCK = Headline(
    "bad",
    "Stuck: this job makes no progress.",
    "Check the log for what it is waiting for, then restart it.",
)
_TROUBLE = Headline(
    "bad",
    "Kafka is failing; the run keeps trying. What is published stays.",
    "Restore the service named in the reason; the run resumes by itself.",
)
_WAITING = Headline("busy", "Waiting for another run of this job to end, or for Kafka.")
_RUNNING = Headline("busy", "A run is under way. What it publishes, it publishes in whole transactions.")
_FAILED = Headline(
    "bad",
    "The last run failed. What was published stays unchanged.",
    "Nothing if the next run succeeds; if runs keep failing, act on the reason.",
)
_COMPLETE = Headline("good", "The last snapshot is complete.")
_UNNAMED = Headline(
    "busy",
    "The last snapshot is complete, but names are missing.",
    "See the coverage below. Ask the provider whether it translates into that language, or take it out of "
    "api.languages.",
)
_NARROWED = Headline("good", "The last snapshot contains what --kind, --language or --event selected.")
_LEFT_OUT = Headline(
    "busy",
    "The last snapshot is partial: some requests failed.",
    "The next run asks again. If the same things are left out every time, tell the provider.",
)
_TOO_LARGE = Headline(
    "bad",
    "The last snapshot is partial: a record is too large for Kafka.",
    "Ask the provider about the names below: nothing else has a megabyte of them.",
)
_FORBIDDEN = Headline(
    "bad",
    "The last snapshot is partial: the provider denies access to some endpoints (403).",
    "Ask the provider for access to the endpoints below",
)


class JobView:
    """What there is to say at `now`, Unix seconds, about a job that other threads go on with.

    None is what is not known.
    """

    def __init__(self, status: JobStatus, now: float) -> None:
        self.now, self.status = now, replace(status)
        self.state, self.headline, self.reason = _state(self.status, now)
        self.coverage = [*self.status.coverage.values()]
        snapshot = self.status.last.snapshot if self.status.last else None
        counts = snapshot.counts if snapshot else {}
        self.kinds = dict(sorted(counts.items())[:MOST_KINDS]) if snapshot else None
        self.more_kinds = max(0, len(counts) - MOST_KINDS)
        left_out = sorted(snapshot.left_out, key=_urgency) if snapshot else []
        self.left_out = left_out[:MOST_LEFT_OUT] if snapshot else None
        """What nobody but the provider can mend comes first."""
        more, at_least = len(left_out) - MOST_LEFT_OUT, len(left_out) == MAX_LEFT_OUT
        self.more_left_out = f"and {'at least ' if at_least else ''}{more:,} more" if more > 0 else ""

    def since(self, moment: float) -> float:
        """How long ago that was, in whole seconds; 0 for what another thread has noted just now."""
        return max(0.0, round(self.now - moment))


def _state(status: JobStatus, now: float) -> tuple[str, Headline, str]:
    """Return a word for the title, what to say, and why."""
    healthy = status.health(now).healthy
    if not healthy.ok:
        return "Stuck", _STUCK, healthy.reason
    state, headline, reason = _last(status)
    if status.rests_until is not None:
        return state, headline, reason
    if status.trouble:
        return "Retrying", _TROUBLE, status.trouble
    running = _WAITING if status.doing == ITS_TURN else _RUNNING
    if headline.tone == "good":
        return "Running", running, ""
    # What was wrong with the last one still is.
    before = f"{headline.sentence} {reason}".strip()
    return "Running", Headline(headline.tone, running.sentence, headline.todo), before


def _last(status: JobStatus) -> tuple[str, Headline, str]:
    """Return what the last run leaves to be said."""
    if status.failure:
        return "Failed", _FAILED, status.failure
    if status.last is None:
        return "Running", Headline("good", ""), ""
    snapshot = status.last.snapshot
    if snapshot.complete:
        is_low = any(row.is_low for row in status.coverage.values())
        return "Complete", _UNNAMED if is_low else _COMPLETE, ""
    if not snapshot.left_out:  # it owes what it was told not to ask for
        return "Narrowed", _NARROWED, ""
    if snapshot.forbidden:
        way_out = ", or take their kinds out of api.kinds." if snapshot.job == "translations" else "."
        return "Partial", _FORBIDDEN._replace(todo=_FORBIDDEN.todo + way_out), ", ".join(snapshot.forbidden)
    first = min(snapshot.left_out, key=_urgency)
    return (
        "Partial",
        _LEFT_OUT if first.endpoint else _TOO_LARGE,
        f"{first.endpoint or first.id}: {first.why}",
    )


def _urgency(left: Omission) -> int:
    """Return a lower number for what the next run cannot mend: no right, or too large."""
    return 0 if left.why == NO_RIGHT else 1 if not left.endpoint else 2
