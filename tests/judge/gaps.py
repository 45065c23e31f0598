"""The rules for gaps: declared exactly where the provider could not replay."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tests.judge.checkpoints import Promise
from tests.judge.model import CLOCKS_SECONDS, Anomaly, Case, Findings
from tests.judge.timeline import Gap, Timeline

LOST = "RecordsLost"
"""The cause of a gap over what a topic lacks. What the provider still has is asked for again all the same."""


def judge_gaps(
    gaps: Sequence[Gap], timeline: Timeline, promises: Sequence[Promise], case: Case, findings: Findings
) -> None:
    """Judge whether there was a reason for each gap when it was declared."""
    declared: set[tuple[float, float]] = set()
    for gap in gaps:
        again = gap[:2] in declared
        declared.add(gap[:2])
        why = "it was declared before" if again else _in_vain(gap, timeline, promises, case)
        if why:
            findings.add(Anomaly.GAP_IN_VAIN, gap.detected_at, f"{_named(gap)}: {why}")


def judge_missing(
    what: str, published: float, gaps: Sequence[Gap], timeline: Timeline, case: Case, findings: Findings
) -> None:
    """Judge a message that is missing inside a gap: the provider could not replay it either."""
    reading = timeline.reading(published)
    covering = [gap for gap in gaps if gap.covers(reading) and gap.cause not in ("MovedByOperator", LOST)]
    if covering and all(_reachable(published, gap, timeline, case) for gap in covering):
        text = (
            f"{_named(covering[0])}: {what}, published at {published:.3f}, is missing and could be replayed"
        )
        findings.add(Anomaly.GAP_IN_VAIN, published, text)


def _in_vain(gap: Gap, timeline: Timeline, promises: Sequence[Promise], case: Case) -> str:
    if gap.cause == "MovedByOperator":
        return "" if case.has_operator else "nobody moved the position"
    now = gap.detected_at
    if gap.cause == LOST:
        return "" if case.made_anew else "no topic was made anew"
    if gap.cause == "PositionInFuture":
        return "the position was not in the future" if gap.end <= now else ""
    if gap.end > max(now, timeline.reading(now)) + _margin(gap, case):
        return "it goes on in the future"
    if gap.cause == "TooOld" and gap.start + 1 < (position := _position(gap, promises)):
        return f"it begins before the position, {position}"
    if gap.cause == "MissingInReplay" and not timeline.was_asked_for(gap.start, now):
        return "no replay was asked for from there"
    memory = timeline.memory(now)
    if timeline.first(gap.start) - _margin(gap, case) > memory:
        return f"the provider remembered everything from {memory:.3f} on"
    if gap.cause == "TooOld" and timeline.first(gap.end) > memory + case.gap_margin:
        return f"it ends too late, the provider remembered everything from {memory:.3f} on"
    return ""


def _position(gap: Gap, promises: Sequence[Promise]) -> float:
    """Return the position when a gap was declared, -inf without one."""
    # The checkpoint of its own transaction has a revision of its end or later.
    before = (it for it in reversed(promises) if it.committed_at < gap.committed and it.revision < gap.end)
    return next((it.revision for it in before), -inf)


def _reachable(published: float, gap: Gap, timeline: Timeline, case: Case) -> bool:
    if gap.cause == "MissingInReplay" and published >= timeline.sent_from(gap.detected_at):
        return True  # it was in that replay, or behind it
    return published > timeline.memory(gap.detected_at) + _margin(gap, case)


def _margin(gap: Gap, case: Case) -> float:
    """Return how much a gap may cover of what the provider remembered: nothing if it was seen in a replay."""
    return case.gap_margin if gap.cause == "TooOld" else CLOCKS_SECONDS


def _named(gap: Gap) -> str:
    return f"gap {gap.cause} from {gap.start:.0f} to {gap.end:.0f}, declared at {gap.detected_at:.3f}"
