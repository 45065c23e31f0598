"""The rules for what readers see: exactly what transactions have committed, and soon."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from math import inf

from tests.judge.log import COMMITTED, Batch
from tests.judge.model import Anomaly, Findings
from tests.judge.topics import Record

STUCK_SECONDS = 60.0
"""How long a last stable offset may stand still below an earlier high watermark: longer than any transaction
of a campaign may stay open."""
Place = tuple[str, int]
"""A topic and a partition."""

_NOTHING = Batch(-1, -1, 0, "", COMMITTED, -inf)
_UNKNOWN = Batch(0, 2**63, 0, "", COMMITTED, inf)
"""What was compacted away between the two readings: it was committed at some time."""


def judge_visible(
    place: Place,
    records: Iterable[Record],
    log: Iterable[Batch],
    findings: Findings,
    legal: Container[str] = (COMMITTED,),
) -> Iterator[tuple[Record, float]]:
    """Yield each record that a `read_committed` consumer sees, with the time of its commit.

    It is visible if, and only if, the fate of its batch is `legal`. Both are in the order of offsets.
    """
    batches = iter(log)
    batch, seen = _NOTHING, 0
    for record in records:
        while batch.last < record.offset:
            _judge_batch(place, batch, seen, findings, legal)
            batch, seen = next(batches, _UNKNOWN), 0
        seen += 1
        yield record, batch.ended_at
    for following in batches:
        _judge_batch(place, batch, seen, findings, legal)
        batch, seen = following, 0
    _judge_batch(place, batch, seen, findings, legal)


def _judge_batch(place: Place, batch: Batch, seen: int, findings: Findings, legal: Container[str]) -> None:
    where = f"{place[0]}, partition {place[1]}, offset {batch.first}: {batch.records} records of producer"
    what = f"{where} {batch.producer}, {batch.fate}"
    if seen and batch.fate not in legal:
        findings.add(Anomaly.ABORTED_READ, batch.ended_at, f"{what}, are visible")
    # Checkpoints may be compacted between the two readings.
    if seen < batch.records and batch.fate == COMMITTED and place[0] != "checkpoints":
        findings.add(Anomaly.LOST_WRITE, batch.ended_at, f"{what}: only {seen} are visible")


class Standstill:
    """Waits for the last stable offsets to reach the high watermarks of the beginning."""

    def __init__(self, ends: Mapping[Place, int]) -> None:
        self._ends = ends
        self._since: float | None = None
        self.hidden: dict[Place, int] = {}
        """The last stable offset of each partition that has not reached its end."""

    def look(self, now: float, stable: Mapping[Place, int]) -> bool:
        """Return whether to wait longer, given the last stable offsets at a monotonic time."""
        before, self.hidden = self.hidden, {at: end for at, end in stable.items() if end < self._ends[at]}
        moved = any(stable[at] > end for at, end in before.items())
        if self._since is None or moved:
            self._since = now
        return bool(self.hidden) and now - self._since < STUCK_SECONDS
