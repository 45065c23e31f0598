"""What a run changes in the topic: the records to write and the keys to remove, nothing else.

What was not asked about stands. A text goes only when all was asked anew and nobody gave it; a record only
when its whole list was read and the provider does not know it any more, or when its event is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import replace

from bridge.snapshots.mentions import Mentions
from bridge.snapshots.packed import Packed
from bridge.snapshots.records import KINDS, Counts, Translation, kind_of

Read = Callable[[bytes], Translation | None]
"""Reads the record of a key; None where there is none, or none that can be read."""


def merge(collected: dict[bytes, Packed], read: Read, whole: Container[bytes]) -> None:
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
            collected[key] = Packed(new)


def forgotten(present: Iterable[bytes], read: Read, mentions: Mentions) -> Iterator[bytes]:
    """The keys of what belongs to no event and no selection that bets mention."""
    selections = mentions.all_selections()
    for key in present:
        kind, *ids = key.split(b":")
        match kind:
            case b"event" | b"market":
                is_mentioned = int(ids[0]) in mentions.events
            case b"selection":
                record = read(key)
                is_mentioned = record is None or record.event_id in mentions.events
            case b"selection-template":
                is_mentioned = int(ids[0]) in selections
            case _:
                is_mentioned = True
        if not is_mentioned:
            yield key


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
