"""The results of a run: its join coverage, and the report for people, scripts and metrics."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field
from itertools import chain, filterfalse
from typing import Any, Final

from bridge import errors
from bridge.config.api import KINDS, Kind
from bridge.formatting import format_utc
from bridge.snapshots.model import NO_RIGHT, Omission, Snapshot, Translation, key_of
from bridge.snapshots.usage import Usage
from bridge.snapshots.wanted import Task

MAX_EXAMPLES: Final = 10
MOST_LANGUAGES: Final = 5
NEARLY_ALL: Final = 95
"""Percent of ids with a name, below which the alert fires, too."""
MAX_LINES: Final = 10
"""Things left out that the error message names."""


@dataclass(slots=True)
class Covered:
    """The join coverage of one kind: which of the ids in bets have names."""

    kind: Kind
    seen: int = 0
    """Number of ids that bets use."""
    named: dict[str, int] = field(default_factory=dict)
    """Language → how many of these ids have a text in it."""
    missing: list[str] = field(default_factory=list)
    """The first keys that lack a language."""

    def share(self, language: str) -> float:
        """Return the share with a text in the language, from 0 to 1; 1 if there are no ids."""
        return self.named[language] / self.seen if self.seen else 1.0

    @property
    def percent(self) -> float:
        """The share in the language that has the fewest, rounded down to two digits: 100 is all."""
        return 10_000 * min(self.named.values(), default=0) // self.seen / 100

    @property
    def is_low(self) -> bool:
        """Whether somebody should look."""
        return self.percent < NEARLY_ALL

    @property
    def words(self) -> str:
        """The languages that lack names, for people."""
        lacking = sorted((named, language) for language, named in self.named.items() if named < self.seen)
        if not lacking:
            return f"all {self.seen:,} have a name in every language"
        counts = ", ".join(f"{named:,} in {language}" for named, language in lacking[:MOST_LANGUAGES])
        others = len(lacking) - MOST_LANGUAGES
        more = f" and fewer than all in {others} more" if others > 0 else ""
        example = f"; e.g. {self.missing[0]} lacks a language" if self.missing else ""
        return f"of {self.seen:,}, {counts} have a name{more}{example}"


def cover(
    usage: Usage,
    task: Task,
    lookup: Callable[[bytes], Translation | None],
    owed: Collection[bytes] = (),
) -> list[Covered]:
    """Return a row for each kind of the task that the bets use, or of which a key was `owed`.

    Competitors are those of the events.
    """
    rows = []
    for kind in KINDS:
        if kind not in task.kinds:
            continue
        looked_up = {key for key in owed if key.startswith(f"{kind}:".encode())}
        keys: Iterable[bytes] = usage.keys(kind)
        if kind == "competitor":
            events = (lookup(key) for key in usage.keys("event"))
            keys = {key_of("competitor", x) for event in events if event for x in event.competitor_ids or ()}
        row, missing = Covered(kind, named=dict.fromkeys(task.languages, 0)), list[bytes]()
        # One at a time: there may be a million.
        for key in chain(looked_up, filterfalse(looked_up.__contains__, keys)):
            record = lookup(key)
            if record is None and key.endswith(b":0"):
                continue  # 0 may be how the provider writes "none"
            row.seen += 1
            has = [x for x in task.languages if record is not None and x in record.texts]
            for language in has:
                row.named[language] += 1
            if len(has) < len(task.languages):
                insort(missing, key)
                del missing[MAX_EXAMPLES:]
        row.missing = [key.decode() for key in missing]
        if row.seen:
            rows.append(row)
    return rows


@dataclass
class IdComparison:
    """Compares two ids of an event that the interface only suggests to be the same."""

    ours: str
    theirs: str
    seen: int = 0
    other: int = 0
    """Number of comparisons in which they differ."""
    example: str = ""

    def see(self, event: int, ours: int, theirs: int) -> None:
        """Compare `ours` from a bet on the event (0: none) with `theirs` from the event itself."""
        self.seen += ours != 0
        if ours not in (0, theirs):
            self.other += 1
            self.example = self.example or f"event {event}: {self.ours} {ours}, {self.theirs} {theirs}"

    def __str__(self) -> str:
        if not self.other:
            return f"{self.ours} is the {self.theirs} in all {self.seen:,} events of this run"
        shown = f"{self.other:,} of {self.seen:,} events ({self.example})"
        return f"{self.ours} is NOT the {self.theirs} in {shown}"


def some(things: Iterable[object]) -> str:
    """Return the first of some things for a note."""
    return f"such as {', '.join(sorted(map(str, things))[:MAX_EXAMPLES])}"


@dataclass(frozen=True, slots=True)
class Report:
    """A published snapshot, and how it was made."""

    snapshot: Snapshot
    full: bool
    """Whether everything was asked about again."""
    bets: int
    """Settled bets read to learn what they use."""
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
        again = f" The next run asks again about {snapshot.owed:,} things." if snapshot.owed else ""
        lines.append(f"Everything else is published.{again}")
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


def _line(left: Omission) -> str:
    if left.id is None and left.why == NO_RIGHT:
        return f"the provider gives no right to {left.endpoint} (403): it is left out"
    return f"left out: {left.endpoint}{'' if left.id is None else f', {left.id}'}: {left.why}"
