"""A deliberate fault of the bridge: patches of its source, and what the judge must find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.judge import Anomaly


class StaleError(ValueError):
    """A patch does not apply exactly once: the bridge has changed."""


class Patch(NamedTuple):
    """Replaces a text that is in a file of `bridge/` once."""

    file: str
    old: str
    new: str

    def applied(self, source: str) -> str:
        """Return the source with the new text. Raises StaleError."""
        if (found := source.count(self.old)) != 1:
            raise StaleError(f"bridge/{self.file} has {found} times, not once:\n{self.old}")
        return source.replace(self.old, self.new)

    @property
    def module(self) -> str:
        """The module that it changes, such as `bridge.feed.position`."""
        return ".".join(("bridge", *Path(self.file).with_suffix("").parts))


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, the drill in which it shows, and what shows it: any of `expected`."""

    name: str
    wrong: str
    drill: str
    expected: Sequence[Anomaly]
    patches: Sequence[Patch] = field(repr=False)
    shown_by: Mapping[Anomaly, str] = field(default_factory=dict, hash=False)
    """What the first example of an anomaly must say, where another fault could cause one as well."""
    records: float = 0.5
    """Records for each bet that is due, at least: one that publishes hardly anything shows something else."""


SOUND = Fault("sound", "nothing", "", (), ())
"""The bridge as it is, in plain Python like the others."""
