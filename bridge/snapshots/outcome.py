"""What the two jobs have in common: what they know before they ask, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridge.snapshots.coverage import Covered
from bridge.snapshots.mentions import Mentions
from bridge.snapshots.records import Counts, LeftOut, Snapshot


class Publishable(Protocol):
    """A record of the job's topic, such as `Translation`."""

    @property
    def key(self) -> bytes:
        """The key of its record."""

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """The datum of its value."""


@dataclass(slots=True)
class Known:
    """What Kafka told at the beginning of a run."""

    last: Snapshot | None
    present: Mapping[bytes, bytes]
    """Key → value, of all records of the job's topic."""
    mentions: Mentions
    """What bets mention that is new; in a full run all that recent ones mention."""
    full: bool
    """Whether everything is asked about anew."""
    kept: Mentions | None = None
    """In a full run what all bets mention that names are kept for: more than what is asked about."""
    owed: frozenset[str] = frozenset()
    """The names of what the last run was not told."""
    shrunk: frozenset[str] = frozenset()
    """Lists that the last full run found to be too short to be believed."""


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
    shrunk: frozenset[str] | None = None
    """Lists that this run found to be too short to be believed; None when it was not full."""
    coverage: list[Covered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a person should know: assumptions confirmed or refuted, oddities of the provider."""
