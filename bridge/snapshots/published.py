"""Step 4: the records of a job's topic, as a run has found them and changes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeAlias, TypeVar

from bridge.avro.codec import Codec
from bridge.config.api import LISTED
from bridge.errors import SchemaError, SchemaNotFound
from bridge.snapshots.asking import Account
from bridge.snapshots.model import MAX_RECORD_BYTES, Counts, Currency, Omission, Translation, kind_of
from bridge.snapshots.report import Covered, some

R = TypeVar("R", Translation, Currency)
_WHOLE: Final = frozenset({*LISTED, "event"})
"""The kinds of which a run may need what it has written; of a million others, only languages and event."""


@dataclass(slots=True)
class Portion:
    """What one transaction publishes."""

    id: str
    # Without a repr: asyncio makes one of a task's result, and a whole snapshot's is more than 100 MB.
    written: dict[bytes, bytes] = field(repr=False)
    """Key → value of new and changed records."""
    removed: set[bytes] = field(repr=False)
    counts: dict[str, Counts]
    """Of the run so far."""
    forbidden: tuple[str, ...]
    """Paths of the endpoints without a right (403)."""
    left_out: tuple[Omission, ...]
    owed: set[str] = field(repr=False)
    """Names of what the next run asks about again."""
    coverage: list[Covered] = field(default_factory=list)
    """Of the last one of a run, like the notes."""
    notes: list[str] = field(default_factory=list)
    """Notes for people: assumptions confirmed or refuted, oddities of the provider."""


PublishIfDue: TypeAlias = Callable[[Callable[[str], Portion | None], bool], Awaitable[None]]
"""Called after each answer with what makes a portion, given its id."""


class Published(Generic[R]):
    """The records by key. `values` are encoded, and counted by kind, of which `kinds` come first."""

    def __init__(self, values: dict[bytes, bytes], codec: Codec, of: type[R], kinds: Iterable[str]) -> None:
        self.values, self.was_empty = values, not values
        self.gone: set[bytes] = set()
        """Keys of records to remove at the end: no bet uses them, or the provider knows them no more."""
        self.broken: dict[bytes, SchemaError] = {}
        """Keys of records that cannot be decoded, and why."""
        self._codec = codec
        self._type: type[R] = of
        self._counts = {kind: Counts() for kind in kinds}
        for key in values:
            self._count(key).records += 1

    def get(self, key: bytes) -> R | None:
        """Return the record of a key; None if there is none, or if it cannot be decoded.

        Raises SchemaNotFound: what is only not readable now must not be written again or lose its names.
        """
        if (value := self.values.get(key)) is None:
            return None
        try:
            found: R = self._type.from_avro(self._codec.decode(value))
        except SchemaNotFound:
            raise
        except SchemaError as error:
            self.broken[key] = error
            return None
        return found

    def change(self, id_: str, records: Iterable[R], account: Account, *, whole: bool = False) -> Portion:
        """Write records, and if the run is `whole` now, remove those that are gone; return what to publish.

        Too large ones are left out and owed.
        """
        written: dict[bytes, bytes] = {}
        briefs: dict[bytes, bytes] = {}  # one for all selections of an event
        for record in records:
            value, key = self._codec.encode(record.to_avro(id_)), record.key
            if len(value) > MAX_RECORD_BYTES:
                why = f"{len(value):,} bytes of names, more than Kafka's {MAX_RECORD_BYTES:,}"
                account.leave_out("", key.decode(), why)
                account.owed.add(record.asked_as)
                continue
            if key in self.values:
                self._count(key).records -= 1
            self.values[key] = written[key] = value
            if isinstance(record, Translation) and record.kind not in _WHOLE:
                brief = Translation(record.kind, 0, dict.fromkeys(record.texts, ""), record.event_id)
                value = self._codec.encode(brief.to_avro(""))
                self.values[key] = briefs.setdefault(value, value)
            counts = self._count(key)
            counts.records, counts.written = counts.records + 1, counts.written + 1
        gone = {*self.gone} if whole else set[bytes]()
        for key in gone:
            counts = self._count(key)
            counts.records, counts.removed = counts.records - 1, counts.removed + 1
            del self.values[key]
        counted = {kind: replace(counts) for kind, counts in self._counts.items()}
        return Portion(id_, written, gone, counted, account.forbidden, account.left_out, {*account.owed})

    def notes(self) -> list[str]:
        """Return notes for people about records that are broken, and about those that are removed."""
        found = []
        if self.broken:
            what, why = some(key.decode() for key in self.broken), next(iter(self.broken.values()))
            found.append(
                f"{len(self.broken):,} records of the topic cannot be read, {what} ({why}): "
                f"a full run writes them anew if the provider has them"
            )
        if self.gone:
            found.append(f"{len(self.gone):,} records are removed, {some(key.decode() for key in self.gone)}")
        return found

    def _count(self, key: bytes) -> Counts:
        kind = kind_of(key) if self._type is Translation else getattr(self.get(key), "type", "Unknown")
        return self._counts.setdefault(kind, Counts())
