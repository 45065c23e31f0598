"""The rules for gaps: declared exactly where the provider could not replay."""

from __future__ import annotations

from collections.abc import Sequence

from tests.judge.model import Anomaly, Case, Findings
from tests.judge.timeline import Gap, Timeline


def judge_gaps(gaps: Sequence[Gap], timeline: Timeline, case: Case, findings: Findings) -> None:
    """Judge whether there was a reason for each gap when it was declared."""
    for gap in gaps:
        why = _in_vain(gap, timeline, case)
        if why:
            findings.add(Anomaly.GAP_IN_VAIN, gap.detected_at, f"{_named(gap)}: {why}")


def judge_missing(
    what: str, published: float, gaps: Sequence[Gap], timeline: Timeline, case: Case, findings: Findings
) -> None:
    """Judge a message that is missing inside a gap: the provider could not replay it either."""
    reading = timeline.reading(published)
    covering = [gap for gap in gaps if gap.covers(reading) and gap.cause != "MovedByOperator"]
    if covering and all(_reachable(published, gap, timeline, case) for gap in covering):
        text = (
            f"{_named(covering[0])}: {what}, published at {published:.3f}, is missing and could be replayed"
        )
        findings.add(Anomaly.GAP_IN_VAIN, published, text)


def _in_vain(gap: Gap, timeline: Timeline, case: Case) -> str:
    if gap.cause == "MovedByOperator":
        return "" if case.has_operator else "nobody moved the position"
    now = gap.detected_at
    if gap.cause == "PositionInFuture":
        return "the position was not in the future" if gap.end <= now else ""
    memory = timeline.memory(now)
    if timeline.first(gap.start) - case.gap_margin > memory:
        return f"the provider remembered everything from {memory:.3f} on"
    return ""


def _reachable(published: float, gap: Gap, timeline: Timeline, case: Case) -> bool:
    return published > timeline.memory(gap.detected_at) + case.gap_margin


def _named(gap: Gap) -> str:
    return f"gap {gap.cause} from {gap.start:.0f} to {gap.end:.0f}, declared at {gap.detected_at:.3f}"
