"""The rule for the ledger: an attempt to connect is committed before it is made."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tests.judge.checkpoints import Checkpoint
from tests.judge.model import Anomaly, Findings

_REACH_SECONDS = 60.0
"""An attempt reaches the provider at most so long after the bridge has decided to make it."""
_CLOCKS_SECONDS = 0.1
_KEPT_SECONDS = 900.0
"""For so long at least a ledger has an attempt: half of the longest window of the provider's limits."""


class Ledger:
    """Takes the checkpoints one after the other, and looks for each attempt in the first behind it."""

    def __init__(self, attempts: Sequence[Mapping[str, Any]], scale: float, findings: Findings) -> None:
        self._left = deque(float(attempt["at"]) for attempt in attempts)
        self._kept = _KEPT_SECONDS / scale
        self._findings = findings
        self._spent: set[float] = set()
        """Entries of attempts that were found: each is for one."""
        self._last: Checkpoint | None = None

    def take(self, it: Checkpoint) -> None:
        """Judge the attempts between the last checkpoint and this one."""
        while self._left and self._left[0] <= it.committed_at:
            at = self._left.popleft()
            if it.committed_at < at + self._kept:  # or what is between them was compacted away
                self._judge(at, it)
        self._last = it

    def close(self) -> None:
        """Judge the attempts behind the last checkpoint."""
        while self._left and self._last is not None:
            self._judge(self._left.popleft(), self._last)

    def _judge(self, at: float, it: Checkpoint) -> None:
        decided = [
            entry
            for entry in it.ledger
            if at - _REACH_SECONDS <= entry <= at + _CLOCKS_SECONDS and entry not in self._spent
        ]
        if decided:
            self._spent.add(max(decided))
            return
        what = f"the connection attempt at {at:.3f} is not in the checkpoint at offset {it.offset}"
        self._findings.add(Anomaly.ATTEMPT_NOT_COMMITTED, at, f"{what}, committed at {it.committed_at:.3f}")
