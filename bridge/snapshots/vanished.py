"""Decides which names that a list lacks are believed to be gone (decision 0014)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

Id = TypeVar("Id", int, str)


class Vanished:
    """Compares lists with the topic. Only a `full` run believes that anything is gone.

    A list that lacks more than `max_share` of its names is believed only about those that the last full run
    missed as well: `before` has their names, such as `league:9`.
    """

    def __init__(self, max_share: float, before: Collection[str], *, full: bool) -> None:
        self.missing = set(before)
        """The names for the next full run to compare with."""
        self.notes: list[str] = []
        """Notes for people about lists that are too short."""
        self._max_share = max_share
        self._full = full

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
        self.notes.append(
            f"the list of {plural} lacks {len(missing):,} of its former {len(known):,}, more than "
            "api.max_shrink_share: "
            + (
                "the last full run found the same, so it is believed"
                if found
                else "nothing is removed until another full run finds the same"
            )
        )
        if self._full:
            self.missing = (self.missing - before) | names.keys()
        return found
