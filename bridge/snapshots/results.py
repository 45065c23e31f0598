"""The results of a run: its records, its join coverage, and the report for people, scripts and metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from bridge import errors
from bridge.avro.codec import Codec
from bridge.config.api import KINDS, Kind
from bridge.formatting import format_utc
from bridge.snapshots.asking import Account
from bridge.snapshots.model import (
    MAX_RECORD_BYTES,
    NO_RIGHT,
    Counts,
    Currency,
    LeftOut,
    Snapshot,
    Translation,
    key_of,
)
from bridge.snapshots.plan import Scope
from bridge.snapshots.references import References

MAX_EXAMPLES = 10

Lookup = Callable[[bytes], Translation | None]
"""Returns the record of a key in the snapshot."""


@dataclass(slots=True)
class Covered:
    """The join coverage of one kind: which of the ids in bets have names."""

    kind: Kind
    seen: int = 0
    """Number of ids that bets mention."""
    named: dict[str, int] = field(default_factory=dict)
    """Language → how many of these ids have a text in it."""
    missing: list[str] = field(default_factory=list)
    """The first keys that lack a language."""

    def share(self, language: str) -> float:
        """Return the share with a text in the language, from 0 to 1; 1 if there are no ids."""
        return self.named[language] / self.seen if self.seen else 1.0


def cover(
    references: References, scope: Scope, lookup: Lookup, owed: Collection[bytes] = ()
) -> list[Covered]:
    """Return a row for each kind of the scope that the bets mention, or of which a key was `owed`.

    Competitors are those of the mentioned events.
    """
    events = (lookup(key) for key in references.keys("event"))
    competitors = {key_of("competitor", x) for event in events if event for x in event.competitor_ids or ()}
    rows = []
    for kind in KINDS:
        if kind not in scope.kinds:
            continue
        keys = competitors if kind == "competitor" else {*references.keys(kind)}
        keys |= {key for key in owed if key.startswith(f"{kind}:".encode())}
        if (row := _cover(kind, keys, scope.languages, lookup)).seen:
            rows.append(row)
    return rows


def _cover(kind: Kind, keys: Iterable[bytes], languages: Sequence[str], lookup: Lookup) -> Covered:
    row = Covered(kind, named=dict.fromkeys(languages, 0))
    for key in sorted(keys):
        record = lookup(key)
        if record is None and key.endswith(b":0"):
            continue  # 0 may be how the provider writes "none"
        row.seen += 1
        has = [language for language in languages if record is not None and language in record.texts]
        for language in has:
            row.named[language] += 1
        if len(has) < len(languages) and len(row.missing) < MAX_EXAMPLES:
            row.missing.append(key.decode())
    return row


@dataclass
class IdComparison:
    """Compares two ids that the interface only suggests to be the same."""

    ours: str
    theirs: str
    seen: int = 0
    """Number of comparisons."""
    other: int = 0
    """Number of those in which they differ."""
    example: str = ""

    def see(self, event: int, ours: int, theirs: int) -> None:
        """Compare `ours` from a bet on the event (0: none) with `theirs` from the event itself."""
        if not ours:
            return
        self.seen += 1
        if ours != theirs:
            self.other += 1
            self.example = self.example or f"event {event}: {self.ours} {ours}, {self.theirs} {theirs}"

    def __str__(self) -> str:
        if not self.other:
            return f"{self.ours} is the {self.theirs} in all {self.seen:,} events of this run"
        return (
            f"{self.ours} is NOT the {self.theirs} in {self.other:,} of {self.seen:,} events ({self.example})"
        )


def encode(
    records: Iterable[Translation | Currency], codec: Codec, snapshot_id: str, account: Account
) -> dict[bytes, bytes]:
    """Return key → value of the records. Those that are too large for Kafka are left out and owed."""
    found: dict[bytes, bytes] = {}
    for record in records:
        value = codec.encode(record.to_avro(snapshot_id))
        if len(value) <= MAX_RECORD_BYTES:
            found[record.key] = value
        else:
            why = f"{len(value):,} bytes of names, more than Kafka's {MAX_RECORD_BYTES:,}"
            account.leave_out("", record.key.decode(), why)
            account.owed.add(record.asked_as)
    return found


def count(
    kinds: Iterable[str],
    kind_of: Callable[[bytes], str],
    present: Collection[bytes],
    written: Collection[bytes],
    gone: Collection[bytes],
) -> dict[str, Counts]:
    """Return the numbers of records that exist, are written and are removed, by kind."""
    counts = {kind: Counts() for kind in kinds}
    for key in {*present, *written}:
        found = counts.setdefault(kind_of(key), Counts())
        found.written += key in written
        found.removed += key in gone
        found.records += key not in gone
    return counts


def some(things: Iterable[object]) -> str:
    """Return the first of some things for a note."""
    return f"such as {', '.join(sorted(map(str, things))[:MAX_EXAMPLES])}"


@dataclass(slots=True)
class Outcome:
    """What a run publishes and reports."""

    # Without a repr: asyncio makes one of a task's result, and a whole snapshot's is more than 100 MB.
    written: dict[bytes, bytes] = field(repr=False)
    """Key → value of new and changed records."""
    removed: set[bytes] = field(repr=False)
    counts: dict[str, Counts]
    forbidden: tuple[str, ...] = ()
    """Paths of the endpoints without a right (403)."""
    left_out: tuple[LeftOut, ...] = ()
    """What the provider failed to answer."""
    owed: set[str] = field(default_factory=set, repr=False)
    """Names of what the next run asks about again."""
    partial: set[str] = field(default_factory=set, repr=False)
    """Names of what narrowed runs have asked about and kept a part of: the next whole run asks again."""
    missing: set[str] = field(default_factory=set, repr=False)
    """Names of what lists lack, if they are too short to be believed."""
    coverage: list[Covered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Notes for people: assumptions confirmed or refuted, oddities of the provider."""


MAX_LINES: Final = 10
"""Things left out that the error message names."""


@dataclass(frozen=True, slots=True)
class Report:
    """A published snapshot, and how it was made."""

    snapshot: Snapshot
    full: bool
    """Whether everything was fetched again."""
    bets: int
    """Settled bets read to learn references."""
    requests: int
    seconds: float
    """From the first request to the commit."""
    coverage: list[Covered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def written(self) -> int:
        """Number of new and changed records."""
        return sum(counts.written for counts in self.snapshot.counts.values())

    @property
    def removed(self) -> int:
        """Number of tombstones."""
        return sum(counts.removed for counts in self.snapshot.counts.values())

    def raise_if_left_out(self) -> None:
        """Raise LeftOut, which names the first things, if anything was left out."""
        snapshot = self.snapshot
        if not snapshot.left_out:
            return
        lines = [_line(left) for left in snapshot.left_out[:MAX_LINES]]
        if more := len(snapshot.left_out) - len(lines):
            lines.append(f"and {more:,} more: see leftOut in --json, or in the Snapshot record")
        lines.append(f"Everything else is published. The next run asks again about {snapshot.owed:,} things.")
        if snapshot.forbidden:
            way_out = "" if snapshot.job == "currencies" else ", or take their kinds out of api.kinds"
            lines.append(f"Ask the provider for the missing rights (403){way_out}.")
        raise errors.LeftOut("\n".join(lines))

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        snapshot = self.snapshot
        return {
            "job": snapshot.job,
            "snapshot": snapshot.id,
            "startedAt": format_utc(snapshot.started_at),
            "finishedAt": format_utc(snapshot.finished_at),
            "refreshedAt": None if snapshot.refreshed_at is None else format_utc(snapshot.refreshed_at),
            "seconds": round(self.seconds, 3),
            "full": self.full,
            "complete": snapshot.complete,
            "languages": list(snapshot.languages),
            "forbidden": list(snapshot.forbidden),
            "leftOut": [left._asdict() for left in snapshot.left_out],
            "owed": snapshot.owed,
            "bets": self.bets,
            "requests": self.requests,
            "written": self.written,
            "removed": self.removed,
            "kinds": {kind: asdict(counts) for kind, counts in snapshot.counts.items()},
            "ends": {str(partition): offset for partition, offset in sorted(snapshot.ends.items())},
            "coverage": {
                row.kind: {"seen": row.seen, "named": row.named, "missing": row.missing}
                for row in self.coverage
            },
            "notes": self.notes,
        }


def _line(left: LeftOut) -> str:
    if left.id is None and left.why == NO_RIGHT:
        return f"the provider gives no right to {left.endpoint} (403): it is left out"
    return f"left out: {left.endpoint}{'' if left.id is None else f', {left.id}'}: {left.why}"
