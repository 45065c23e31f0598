"""What the two jobs have in common: what they know before they ask, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridge.snapshots.coverage import Covered
from bridge.snapshots.model import Counts, LeftOut, Snapshot, kind_of
from bridge.snapshots.references import References


class Publishable(Protocol):
    """A record of the job's topic, such as `Translation`."""

    @property
    def key(self) -> bytes:
        """The key of its record."""

    @property
    def asked_as(self) -> str:
        """The name under which it is owed."""

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """The datum of its value."""


@dataclass(slots=True)
class JobInput:
    """What Kafka told at the beginning of a run."""

    last: Snapshot | None
    present: Mapping[bytes, bytes]
    """Key → value, of all records of the job's topic."""
    references: References
    """What bets mention that is new; in a full run all that recent ones mention."""
    full: bool
    """Whether everything is asked about anew."""
    kept: References | None = None
    """In a full run what all bets mention that names are kept for: more than what is asked about."""
    selections_in_use: Callable[[Collection[int]], set[int]] | None = None
    """Those of some selections that are among that; where it is None `kept` has them."""
    owed: frozenset[str] = frozenset()
    """The names of what the last run was not told."""
    missing: frozenset[str] = frozenset()
    """The names of what lists lacked in the last full run, where they were too short to be believed."""
    lost: bool = False
    """Whether the topic does not hold what the last snapshot left there."""
    turn: int = 0
    """Counts the runs."""


@dataclass(slots=True)
class Outcome:
    """What is to be published, and what is to be told about it."""

    # Without a repr: asyncio makes one of a task's result, and that of a whole snapshot is 100 MB and more.
    written: dict[bytes, Publishable] = field(repr=False)
    """New and changed records. Emptied while they are encoded, so that they are not there twice."""
    removed: set[bytes] = field(repr=False)
    counts: dict[str, Counts]
    forbidden: tuple[str, ...] = ()
    """Paths of the endpoints to which the provider gave no right."""
    left_out: tuple[LeftOut, ...] = ()
    """What the provider did not tell."""
    owed: frozenset[str] = field(default=frozenset(), repr=False)
    """The names of what the next run has to ask about again."""
    missing: frozenset[str] = field(default=frozenset(), repr=False)
    """The names of what lists lack that are too short to be believed."""
    coverage: list[Covered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a person should know: assumptions confirmed or refuted, oddities of the provider."""

    def leave_out(self, key: bytes, owed: str, why: str, *, is_new: bool) -> None:
        """A record that cannot be written after all: it stands as it was."""
        self.left_out = (*self.left_out, LeftOut.of("", key.decode(), why))
        self.owed |= {owed}
        if counts := self.counts.get(kind_of(key)):
            counts.written -= 1
            counts.records -= is_new
