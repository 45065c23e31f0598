"""The rules for connections, by the provider's own log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.judge.model import Anomaly, Findings

Excused = Sequence[tuple[float, float]]


def judge_connections(
    attempts: Sequence[Mapping[str, Any]],
    breaches: Sequence[Mapping[str, Any]],
    excused: Excused,
    findings: Findings,
) -> None:
    """Judge all attempts: no limit is broken, and nobody connects while another connection is active."""
    for attempt in attempts:
        if attempt["replaced"] and not _is_excused(attempt["at"], excused):
            what = f"the connection attempt at {attempt['at']:.3f} closed another connection"
            findings.add(Anomaly.SECOND_CONNECTION, attempt["at"], what)
    for breach in breaches:
        at, rule = breach["at"], breach["rule"]
        if rule != "active":
            what = f"{breach['reason']} at {at:.3f}, revision {breach['revision']}"
            findings.add(Anomaly.LIMIT_BREACHED, at, what)
        elif not _is_excused(at, excused):
            what = f"a connection attempt at {at:.3f} was refused, because another connection was active"
            findings.add(Anomaly.SECOND_CONNECTION, at, what)


def _is_excused(at: float, excused: Excused) -> bool:
    return any(begin <= at <= end for begin, end in excused)
