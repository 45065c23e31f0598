"""Judges whether bets are in the partitions of their keys, or where fewer partitions had put them.

When partitions are added, earlier records stay. They lie as the earlier number puts them, all of them, and
all are older than each record that this number would have put elsewhere. That is a warning, anything else a
violation.
"""

from __future__ import annotations

from math import inf

from bridge.audit.findings import MOST_SHOWN, AuditFinding, Findings
from bridge.kafka.partitioner import partition_of


class Placement:
    """The placement of a topic's records. Needs all of them, each partition in the order of its offsets."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._possible = set(range(1, partitions))
        """Earlier numbers of partitions that explain all misplaced records."""
        self._oldest_unlike: dict[int, float] = dict.fromkeys(self._possible, inf)
        """Number of partitions → timestamp of the oldest record that it would have put elsewhere."""
        self._searched: set[int] = set()
        """Numbers for which the present partition has not shown such a record yet."""
        self._newest_misplaced = -inf
        self._misplaced: list[AuditFinding] = []
        """The first ones."""
        self._count = 0

    def begin(self, partition: int) -> None:
        """Begin a partition, at its first record."""
        self._searched = set(range(1 if partition else 2, self._partitions))

    def right(self, key: bytes, partition: int, at: int) -> bool:
        """Return whether the record is in the partition of its key. `at` is its timestamp."""
        if self._searched:
            for number in [n for n in self._searched if partition_of(key, n) != partition]:
                self._searched.discard(number)
                self._oldest_unlike[number] = min(self._oldest_unlike[number], at)
        if partition_of(key, self._partitions) == partition:
            return True
        self._possible = {n for n in self._possible if partition_of(key, n) == partition}
        self._newest_misplaced = max(self._newest_misplaced, at)
        self._count += 1
        return False

    def keep(self, found: AuditFinding) -> None:
        """Keep the place of a misplaced record, of the first ones."""
        if len(self._misplaced) < MOST_SHOWN:
            self._misplaced.append(found)

    def conclude(self, findings: Findings) -> None:
        """Report the misplaced records, once all have been judged."""
        if not self._count:
            return
        earlier = [n for n in self._possible if self._newest_misplaced < self._oldest_unlike[n]]
        first, *others = self._misplaced
        rest = self._count - len(others)
        if earlier:
            text = f"partitions were added: {self._count:,} bets lie as {max(earlier)} partitions put them"
            findings.warn(first._replace(text=text), self._count)
            return
        findings.violate(first, rest)
        for found in others:
            findings.violate(found)
