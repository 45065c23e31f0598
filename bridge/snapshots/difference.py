"""What a run changes in the topic: the records to write and the keys to remove, nothing else.

What was not asked about stands. A text goes only when all was asked anew and nobody gave it; a record only
when its whole list was read and the provider does not know it any more, or when its event is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from bridge.snapshots.records import KINDS, Counts, Kind, Listed, Translation, key_of

Read = Callable[[bytes], Translation]
"""Reads the value of a record."""

_OF_BETS = {b"event", b"market", b"selection", b"selection-template"}
"""The kinds that are known for what bets mention of them."""


def merge(
    collected: dict[bytes, Translation],
    present: Mapping[bytes, bytes],
    read: Read,
    forgets: Collection[Kind],
) -> None:
    """Leave in `collected` what is new or changed, completed by what the topic has.

    `forgets` are the kinds all of which was asked about: a text that nobody gave is gone.
    """
    for key in list(collected):
        new = collected[key]
        value = present.get(key)
        if value is None:
            continue
        old = read(value)
        if new.kind not in forgets:
            new.texts = old.texts | new.texts
        if _completed(new, old) == old:
            del collected[key]
        else:
            collected[key] = _completed(new, old)


def _completed(new: Translation, old: Translation) -> Translation:
    """What a thing belongs to may be told by one endpoint and not by another."""
    known = {
        name: getattr(old, name)
        for name in ("event_id", "sport_id", "region_id", "league_id", "competitor_ids", "market_type_id")
        if getattr(new, name) is None and getattr(old, name) is not None
    }
    return replace(new, **known) if known else new


def removed(gone: Mapping[Listed, Collection[int]], collected: Mapping[bytes, Translation]) -> set[bytes]:
    """The keys of what the provider does not know any more."""
    keys = {key_of(kind, number) for kind, numbers in gone.items() for number in numbers}
    return {key for key in keys if key not in collected}


def forgotten(
    present: Mapping[bytes, bytes], read: Read, events: Collection[int], selections: Collection[int]
) -> Iterator[bytes]:
    """The keys of what belongs to no event of `events`, and of templates of no selection of `selections`."""
    for key, value in present.items():
        kind = key.partition(b":")[0]
        if kind not in _OF_BETS:
            continue
        record = read(value)
        if kind == b"selection-template":
            is_known = record.id in selections
        else:
            is_known = (record.id if kind == b"event" else record.event_id) in events
        if not is_known:
            yield key


def count(
    present: Collection[bytes], written: Collection[bytes], gone: Collection[bytes]
) -> dict[str, Counts]:
    """Kind → how many records there are, were written and were removed."""
    counts: dict[str, Counts] = {kind: Counts() for kind in KINDS}

    def of(key: bytes) -> Counts:
        return counts.setdefault(key.partition(b":")[0].decode(), Counts())

    for key in present:
        of(key).records += 1
    for key in written:
        of(key).written += 1
        of(key).records += key not in present
    for key in gone:
        of(key).removed += 1
        of(key).records -= 1
    return counts
