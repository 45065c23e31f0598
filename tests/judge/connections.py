"""The rules for connections, by the provider's own log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.judge.model import Anomaly, Excuse, Findings


def judge_connections(
    attempts: Sequence[Mapping[str, Any]],
    breaches: Sequence[Mapping[str, Any]],
    excused: Sequence[Excuse],
    findings: Findings,
) -> int:
    """Judge all attempts: no limit is broken, and nobody connects while another connection is active.

    An excuse explains that one connection was closed: the second one to be closed was made meanwhile. Returns
    how many attempts were excused.
    """
    spent: set[int] = set()
    refused = 0
    for attempt in attempts:
        at, holder = attempt["at"], attempt["holder"]
        if attempt["replaced"] and not _is_explained(at, holder, excused, spent):
            what = f"the connection attempt at {at:.3f} closed another connection{_of(holder)}"
            findings.add(Anomaly.SECOND_CONNECTION, at, what)
    for breach in breaches:
        at, rule = breach["at"], breach["rule"]
        if rule != "active":
            what = f"{breach['reason']} at {at:.3f}, revision {breach['revision']}"
            findings.add(Anomaly.LIMIT_BREACHED, at, what)
        elif any(it.covers(at, breach["holder"]) for it in excused):
            refused += 1
        else:
            what = (
                f"a connection attempt at {at:.3f} was refused, because another connection"
                f"{_of(breach['holder'])} was active"
            )
            findings.add(Anomaly.SECOND_CONNECTION, at, what)
    return len(spent) + refused


def _is_explained(at: float, holder: str, excused: Sequence[Excuse], spent: set[int]) -> bool:
    """Whether an excuse is left that covers it, which is then spent: the one that ends first."""
    left = [n for n, it in enumerate(excused) if it.covers(at, holder) and n not in spent]
    spent.update(sorted(left, key=lambda n: excused[n].end)[:1])
    return bool(left)


def _of(holder: str) -> str:
    return f" of {holder}" if holder else ""
