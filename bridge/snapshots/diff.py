"""What a run changes in the topic: the records to write and the keys to remove, nothing else.

What was not asked about stands. A text goes only when all was asked anew and nobody gave it; a record only
when its whole list was read and the provider does not know it any more, or when its event is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import replace

from bridge.snapshots.model import KINDS, Counts, Translation, kind_of
from bridge.snapshots.packed import CompactTranslation

Read = Callable[[bytes], Translation | None]
"""Reads the record of a key; None where there is none, or none that can be read."""


def merge(collected: dict[bytes, CompactTranslation], read: Read, whole: Container[bytes]) -> None:
    """Leave in `collected` what is new or changed, completed by what the topic has.

    `whole` has the keys of those that were told in all languages: a text that they lack is gone.
    """
    for key in list(collected):
        if (old := read(key)) is None:
            continue
        new = collected[key].unpack()
        if old.supersedes(new):
            del collected[key]
            continue
        if new.supersedes(old):
            continue
        # What a thing belongs to may be told by one endpoint and not by another.
        new.complete(replace(old, texts={}) if key in whole else old)
        if new == old:
            del collected[key]
        else:
            collected[key] = CompactTranslation(new)


def forgotten(
    present: Iterable[bytes],
    read: Read,
    events: Container[int],
    selections: Callable[[Collection[int]], set[int]],
) -> set[bytes]:
    """The keys of what belongs to no event and no selection that bets mention.

    `events` are those; `selections` says which of some are.
    """
    found: set[bytes] = set()
    unclear: dict[bytes, int] = {}
    for key in present:
        kind, *ids = key.split(b":")
        match kind:
            case b"event" | b"market" if int(ids[0]) not in events:
                found.add(key)
            case b"selection-template":
                unclear[key] = int(ids[0])
            case b"selection" if (record := read(key)) is not None and record.event_id not in events:
                unclear[key] = int(ids[0])
    used = selections(set(unclear.values()))
    return found | {key for key, number in unclear.items() if number not in used}


def count(
    present: Collection[bytes], written: Collection[bytes], gone: Collection[bytes]
) -> dict[str, Counts]:
    """Kind → how many records there are, were written and were removed."""
    counts: dict[str, Counts] = {kind: Counts() for kind in KINDS}

    def of(key: bytes) -> Counts:
        return counts.setdefault(kind_of(key), Counts())

    for key in present:
        of(key).records += 1
    for key in written:
        of(key).written += 1
        of(key).records += key not in present
    for key in gone:
        of(key).removed += 1
        of(key).records -= 1
    return counts
