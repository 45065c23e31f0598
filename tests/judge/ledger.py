"""The rules for the ledger: an attempt is committed before it is made, and asks from the position onwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil, inf

from tests.judge.checkpoints import Checkpoint, Checkpoints, Entry
from tests.judge.model import Anomaly, Case, Findings
from tests.judge.timeline import Timeline

_REACH_SECONDS = 60.0
"""An attempt reaches the provider at most so long after the bridge has decided to make it."""
_CLOCKS_SECONDS = 0.1
_WRITTEN_SECONDS = 0.02
"""A checkpoint that was written so long after an attempt was not committed before it: on one machine."""
_SAME_SECONDS = 0.005
"""A bridge moves its entries with its clock, by less than that, and each is for another attempt."""
_KEPT_SECONDS = 900.0
"""For so long at least a ledger has an attempt: half of the longest window of the provider's limits."""
_NEXT = 2
"""From the offset of a checkpoint to that of the next one, with the commit marker between them: none was
compacted away or aborted there."""


class Ledger:
    """Takes the checkpoints one after the other, and looks for each attempt in the first behind it.

    `checkpoints` has taken each of them before.
    """

    def __init__(self, timeline: Timeline, checkpoints: Checkpoints, case: Case, findings: Findings) -> None:
        attempts = ((float(it["at"]), it["revision"]) for it in timeline.attempts)
        anew_at = case.anew_at if case.was_made_anew("checkpoints") else -inf
        self._left = deque(it for it in attempts if it[0] > anew_at)
        self._checkpoints = checkpoints
        self._kept = _KEPT_SECONDS / case.limits_scale
        self._has_operator = case.has_operator
        self._findings = findings
        self._was_live = False
        """Whether all had come that revision 0 replays: until then it may be asked for."""
        self._spent: list[Entry] = []
        """Entries of attempts that were found: each is for one."""
        self._last: Checkpoint | None = None

    def take(self, it: Checkpoint) -> None:
        """Judge the attempts between the last checkpoint and this one."""
        while self._left and self._left[0][0] <= it.committed_at:
            at, revision = self._left.popleft()
            if it.committed_at < at + self._kept:  # or what is between them was compacted away
                self._judge(at, revision, it)
        self._last = it
        self._was_live |= it.state in ("Live", "Quiet")

    def close(self) -> None:
        """Judge the attempts behind the last checkpoint."""
        while self._left and self._last is not None:
            self._judge(*self._left.popleft(), self._last)

    def _judge(self, at: float, revision: int | None, it: Checkpoint) -> None:
        what = f"the connection attempt at {at:.3f}"
        where = f"the checkpoint at offset {it.offset}, committed at {it.committed_at:.3f}"
        entry = self._entry(at, revision, it)
        if entry is None:
            self._findings.add(Anomaly.ATTEMPT_NOT_COMMITTED, at, f"{what} is not in {where}")
            return
        self._spent.append(entry)
        last = self._last
        is_first = last is not None and it.offset == last.offset + _NEXT and not _has(last.ledger, entry)
        if is_first and it.updated_at > at + _WRITTEN_SECONDS:
            text = f"{what} was made before {where}, was written at {it.updated_at:.3f}"
            self._findings.add(Anomaly.ATTEMPT_NOT_COMMITTED, at, text)
        position = self._checkpoints.position(entry.at)
        may_ask = not self._was_live if not revision else position is None or revision >= position
        if position is not None and not may_ask and not self._has_operator:
            text = f"{what} asked for {revision}, and the position was {position}"
            self._findings.add(Anomaly.POSITION_BEHIND, at, text)

    def _entry(self, at: float, revision: int | None, it: Checkpoint) -> Entry | None:
        """Return the newest entry that is left for an attempt which asked for this revision."""
        fitting = [
            entry
            for entry in it.ledger
            if at - _REACH_SECONDS <= entry.at <= at + _CLOCKS_SECONDS
            and _fits(entry, revision)
            and not _has(self._spent, entry)
        ]
        return max(fitting, key=lambda entry: (entry.at <= at, entry.at), default=None)


def _fits(entry: Entry, revision: int | None) -> bool:
    """Whether the entry says how far back the revision was when the attempt was decided."""
    asked = 0 if revision is None else max(0, ceil(entry.at - revision))
    return abs(entry.recovery_seconds - asked) <= 1


def _has(entries: Sequence[Entry], entry: Entry) -> bool:
    return any(abs(other.at - entry.at) < _SAME_SECONDS for other in entries)
