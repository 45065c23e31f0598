"""Step 5: what is believed to be gone (decision 0014)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from bridge.config import ApiSettings
from bridge.snapshots.model import Translation
from bridge.snapshots.usage import Usage

Id = TypeVar("Id", int, str)


class Vanished:
    """Compares lists with the topic. Only a `full` run believes that anything is gone.

    A list that lacks more than `api.max_shrink_share` of its names is believed only about those that the last
    full run missed as well: `before` has their names, such as `league:9`.
    """

    def __init__(self, settings: ApiSettings, before: Iterable[str], *, full: bool) -> None:
        self.missing = {*before}
        """The names for the next full run to compare with."""
        self.notes: list[str] = []
        """Notes for people about lists that are too short."""
        self._max_share = settings.max_shrink_share
        self._full = full and settings.keep_names == "days"

    def believed(self, kind: str, known: Collection[Id], missing: Collection[Id], plural: str) -> set[Id]:
        """Return which ids are believed to be gone of the `missing` ones of a list that was read completely.

        `known` are the ids that the topic has.
        """
        names = {f"{kind}:{id_}": id_ for id_ in missing}
        before = {name for name in self.missing if name.startswith(f"{kind}:")}
        if len(missing) <= self._max_share * len(known):
            self.missing -= before
            return set(missing) if self._full else set()
        found = {id_ for name, id_ in names.items() if self._full and name in before}
        then = (
            "the last full run found the same, so it is believed"
            if found
            else "nothing is removed until another full run finds the same"
        )
        self.notes.append(
            f"the list of {plural} lacks {len(missing):,} of its former {len(known):,}, more than "
            f"api.max_shrink_share: {then}"
        )
        if self._full:
            self.missing = (self.missing - before) | names.keys()
        return found


def forgotten(
    present: Iterable[bytes], read: Callable[[bytes], Translation | None], usage: Usage
) -> set[bytes]:
    """Return the keys of records that belong to no event and no selection that bets use."""
    found, events = set[bytes](), usage.of["event"]
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
    used = usage.selections_among(unclear.values())
    return found | {key for key, number in unclear.items() if number not in used}
