"""Histories for the judge, without Kafka: a provider's log, messages, and what a topic has of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.judge.bets import Sent, Stored, judge_bet
from tests.judge.checkpoints import Checkpoint, Checkpoints
from tests.judge.model import Anomaly, Case, Findings
from tests.judge.timeline import Gap, Timeline
from tests.judge.trial import Trial

NOW = 1_790_000_000.0
CASE = Case("", "", "", "")
STATE: dict[str, Any] = {"clock_steps": [], "remembers_seconds": 1000.0, "forgotten": []}
COUNTERS = {
    "received": 0,
    "published": 0,
    "duplicates": 0,
    "stale": 0,
    "corrections": 0,
    "deadLettered": 0,
    "pings": 0,
    "empty": 0,
    "redriven": 0,
}


def attempt(at: float, since: float | None, **changes: Any) -> dict[str, Any]:
    """A connection attempt, seconds after NOW; refused if `since` is None. It asks for what it is sent."""
    found = {"at": NOW + at, "since": None if since is None else NOW + since, "replaced": False, "holder": ""}
    return {**found, "revision": int(NOW + (at if since is None else since)), **changes}


FIRST = attempt(0, -10)


def trial(
    *attempts: dict[str, Any],
    gaps: Sequence[Gap] = (),
    checkpoints: Sequence[Checkpoint] = (),
    case: Case = CASE,
    **state: Any,
) -> Trial:
    """A trial of a feed whose first attempt asked for ten seconds before NOW."""
    timeline, findings = Timeline(STATE | state, attempts or [FIRST], case.start_age), Findings()
    taken = Checkpoints(timeline, gaps, case, findings)
    for it in checkpoints:
        taken.take(it)
    return Trial(case, timeline, gaps, taken, findings, lambda *place: f"data.x differs at {place[2:]}")


def checkpoint(revision: float, updated_at: float, offset: int = 0, **changes: Any) -> Checkpoint:
    """A checkpoint of a revision, written at a time, both in seconds after NOW, committed when written."""
    given: dict[str, Any] = {"counters": COUNTERS, "moved": None, "committed_at": NOW + updated_at, **changes}
    return Checkpoint(int(NOW + revision), NOW + updated_at, offset=offset, **given)


def sent(text: str, of: Trial) -> list[Sent]:
    """Messages such as `1a 2b 2c`: version and content, one every ten seconds from NOW on."""
    return [
        Sent(int(it[0]), it[1].encode(), NOW + 10 * n, n, of.is_due(NOW + 10 * n))
        for n, it in enumerate(text.split())
    ]


def stored(text: str, after: float = 100.0) -> list[Stored]:
    """Records in the same form, received `after` seconds later than the first message, and so on."""
    return [
        Stored(int(it[0]), it[1].encode(), 3, 100 + n, NOW + after + 10 * n, NOW + after + 10 * n)
        for n, it in enumerate(text.split())
    ]


def bet(
    messages: str, records: str, of: Trial | None = None, **options: Any
) -> dict[Anomaly, tuple[int, str]]:
    """What is found in the history of one bet."""
    of = of or trial()
    judge_bet("b", sent(messages, of), stored(records, **options), of)
    return found(of)


def found(of: Trial) -> dict[Anomaly, tuple[int, str]]:
    """Each anomaly with its number and its first example."""
    return {kind: (it.count, it.first) for kind, it in of.findings.found().items()}
