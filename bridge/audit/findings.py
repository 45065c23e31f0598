"""What an audit finds: violations by proof, warnings, a table of hours. Bounded, however much is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

HOUR_MS = 3_600_000
MOST_HOURS = 100_000
"""Rows of the table, eleven years. Records of more hours count in none."""
MOST_SHOWN = 100
"""Violations and warnings that are kept with their place; all are counted."""


class Proof(Enum):
    """What is proven, in `words`. docs/decisions/0024-audit.md says what each can and cannot show."""

    IDENTITY = "identity", "each received message has one outcome"
    COUNTERS = "counters", "no counter goes back"
    POSITION = "position", "no position goes back undeclared"
    GAP = "gap", "every gap is declared"
    AHEAD = "ahead", "no checkpoint is ahead of its data"
    PUBLISHED = "published", "every published bet is there"
    DEAD_LETTERS = "deadletters", "every dead letter is there"
    VERSION = "version", "no bet goes back"
    DOUBLED = "doubled", "no bet is doubled"
    UNREADABLE = "unreadable", "the last record of each key can be read"
    KEY = "key", "the key is the betId"
    TOPICS = "topics", "topics are those that were written, and as long"
    PARTITION = "partition", "each bet is in its key's partition"

    words: str

    def __new__(cls, value: str, words: str) -> Proof:
        proof = object.__new__(cls)
        proof._value_, proof.words = value, words
        return proof


class AuditFinding(NamedTuple):
    """A violation or a warning, with the place of its record as far as there is one."""

    proof: Proof
    text: str
    topic: str
    partition: int | None = None
    offset: int | None = None
    at: int | None = None
    """Timestamp of the record, Unix milliseconds."""
    key: str | None = None
    """betId, name of a feed, or the key of a dead letter."""


@dataclass(slots=True)
class Hour:
    """Counts of an hour, by the timestamps of the records."""

    bets: int = 0
    corrections: int = 0
    dead_letters: int = 0
    gaps: int = 0
    violations: int = 0


@dataclass
class Findings:
    """Violations, warnings and hours."""

    hours: dict[int, Hour] = field(default_factory=dict)
    """By the Unix hour."""
    violations: list[AuditFinding] = field(default_factory=list)
    """The first ones, in the order in which they were found."""
    counts: Counter[Proof] = field(default_factory=Counter)
    """Number of violations."""
    warnings: list[AuditFinding] = field(default_factory=list)
    """The first ones."""
    warned: Counter[Proof] = field(default_factory=Counter)
    """Number of warnings."""
    unproven: dict[Proof, str] = field(default_factory=dict)
    """Why a proof could not be made, or only in part."""
    _beyond: Hour = field(default_factory=Hour)

    def hour(self, at: int) -> Hour:
        """Return the row of a timestamp, Unix milliseconds."""
        number = at // HOUR_MS
        row = self.hours.get(number)
        if row is None:
            if len(self.hours) >= MOST_HOURS:
                return self._beyond
            row = self.hours[number] = Hour()
        return row

    def violate(self, found: AuditFinding, count: int = 1) -> None:
        """Add a violation that stands for `count` of its kind."""
        self.counts[found.proof] += count
        if found.at is not None:
            self.hour(found.at).violations += count
        if len(self.violations) < MOST_SHOWN:
            self.violations.append(found)

    def warn(self, found: AuditFinding, count: int = 1) -> None:
        """Add a warning that stands for `count` of its kind: something that need not be wrong."""
        self.warned[found.proof] += count
        if len(self.warnings) < MOST_SHOWN:
            self.warnings.append(found)
