"""Join coverage: of the ids in settled bets, the share that has a name, by kind and language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.snapshots.model import KINDS, Kind, Translation, key_of
from bridge.snapshots.references import References

MOST_EXAMPLES = 10

Lookup = Callable[[bytes], Translation | None]
"""The record of a key, as the snapshot has it."""


@dataclass(slots=True)
class Covered:
    """Of one kind."""

    kind: Kind
    seen: int = 0
    """Ids that bets mention."""
    named: dict[str, int] = field(default_factory=dict)
    """Language → how many of them have a text in it."""
    missing: list[str] = field(default_factory=list)
    """The first keys that lack a language."""

    def share(self, language: str) -> float:
        """From 0 to 1; of nothing all is covered."""
        return self.named[language] / self.seen if self.seen else 1.0

    def as_json(self) -> dict[str, Any]:
        """For a script."""
        return {"seen": self.seen, "named": self.named, "missing": self.missing}


def cover(references: References, languages: Sequence[str], lookup: Lookup) -> list[Covered]:
    """One row a kind that the bets mention anything of, in the order of the kinds."""
    rows = (_cover(kind, keys, languages, lookup) for kind, keys in _keys(references, lookup))
    return [row for row in rows if row.seen]


def _keys(references: References, lookup: Lookup) -> Iterable[tuple[Kind, Iterable[bytes]]]:
    for kind in KINDS:
        if kind == "competitor":
            yield kind, {key_of("competitor", c) for c in _competitors(references, lookup)}
        else:
            yield kind, set(references.keys(kind))


def _competitors(references: References, lookup: Lookup) -> Iterable[int]:
    """Bets do not name them: their events do."""
    for key in references.keys("event"):
        event = lookup(key)
        yield from (event and event.competitor_ids) or ()


def _cover(kind: Kind, keys: Iterable[bytes], languages: Sequence[str], lookup: Lookup) -> Covered:
    row = Covered(kind, named=dict.fromkeys(languages, 0))
    for key in sorted(keys):
        record = lookup(key)
        if record is None and key.endswith(b":0"):
            continue  # it may be how the provider writes that there is none
        row.seen += 1
        has = [language for language in languages if record is not None and language in record.texts]
        for language in has:
            row.named[language] += 1
        if len(has) < len(languages) and len(row.missing) < MOST_EXAMPLES:
            row.missing.append(key.decode())
    return row
