"""The records of a snapshot: translations, currencies, and the Snapshot record that completes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from bridge.config.api import KINDS, Kind
from bridge.formatting import camel_case, shortened
from bridge.records.avro_form import PLAIN, TIME, AvroField, AvroForm
from bridge.rest.answers import MAX_WHY_CHARACTERS

Job: TypeAlias = Literal["translations", "currencies"]
"""A snapshot job: the name of its command, and of its topic without the prefix."""
Texts: TypeAlias = dict[str, str]
"""Language → text."""
Offsets: TypeAlias = dict[int, int]
"""Partition → the first offset that was not read, or is not included."""
CurrencyType: TypeAlias = Literal["Unknown", "Fiat", "Crypto", "Custom"]

MAX_RECORD_BYTES: Final = 1_000_000
"""The default limit of a topic, and far more than the names of one entity."""
MAX_LEFT_OUT: Final = 1_000
"""Entries in a Snapshot record, which has a maximum size."""
NO_RIGHT: Final = "there is no right to it (403)"
"""The reason for a whole endpoint."""


@dataclass(slots=True)
class Translation:
    """The names of one thing. The ids it belongs to are None if the interface does not give them."""

    kind: Kind
    id: int
    texts: Texts
    event_id: int | None = None
    sport_id: int | None = None
    region_id: int | None = None
    league_id: int | None = None
    competitor_ids: list[int] | None = None
    market_type_id: int | None = None

    def complete(self, other: Translation) -> None:
        """Add what is missing here from another record of the same thing."""
        for language, text in other.texts.items():
            self.texts.setdefault(language, text)
        for name in _BELONGING:
            if getattr(self, name) is None:
                setattr(self, name, getattr(other, name))

    def supersedes(self, other: Translation) -> bool:
        """Return whether this is the same selection id reused in a later event.

        Event ids are assumed to grow. A reused id keeps nothing of its old texts.
        """
        mine, others = self.event_id, other.event_id
        return mine is not None and others is not None and mine > others

    @property
    def key(self) -> bytes:
        """The key of its record."""
        within = {"market": self.event_id, "market-type-template": self.sport_id}
        return key_of(self.kind, self.id, within.get(self.kind))

    @property
    def asked_as(self) -> str:
        """The name of the thing to ask about for it, such as `markets:77`."""
        return f"markets:{self.event_id}" if self.kind in ("market", "selection") else self.key.decode()

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """Return the Avro datum `Translation`, changed in that snapshot."""
        datum = {name: getattr(self, field) for field, name in _AVRO_NAMES.items()}
        return {**datum, "translations": dict(sorted(self.texts.items())), "snapshotId": snapshot_id}

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Translation:
        """The inverse of `to_avro`."""
        return cls(**{field: datum[name] for field, name in _AVRO_NAMES.items()})


_BELONGING: Final = Translation.__slots__[3:]
_AVRO_NAMES: Final = {"kind": "kind", "id": "id", "texts": "translations"} | {
    name: camel_case(name) for name in _BELONGING
}
"""Field of a translation → field of its Avro datum."""
_KEY: Final = re.compile(r"([a-z]+(?:-[a-z]+)*)((?::(?:0|-?[1-9][0-9]{0,18})){1,2})")
_WITHIN: Final = frozenset({"market", "market-type-template"})
"""The kinds whose ids are unique only within an event or a sport."""


def key_of(kind: Kind, number: int, within: int | None = None) -> bytes:
    """Return a record's key. `within` is the event of a market, or the sport of a market type template."""
    return f"{kind}:{number}".encode() if within is None else f"{kind}:{within}:{number}".encode()


def is_key(text: str) -> bool:
    """Return whether a bridge, possibly a newer one, may have written this key: others are never removed."""
    found = _KEY.fullmatch(text)
    if found is None:
        return False
    kind, numbers = found[1], [int(number) for number in found[2][1:].split(":")]
    fits = kind not in KINDS or len(numbers) == (2 if kind in _WITHIN else 1)
    return fits and all(-(2**63) <= number < 2**63 for number in numbers)


def numbers_in(name: str) -> tuple[str, tuple[int, ...]]:
    """Return kind and ids of a key, or of a thing to ask about: of `market-type-template:1:18`, 1 and 18."""
    kind, *ids = name.split(":")
    return kind, tuple(map(int, ids))


def kind_of(key: bytes) -> str:
    """Return the kind in a key; a newer bridge may have kinds that are unknown here."""
    return key.partition(b":")[0].decode()


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency; of type Unknown if the provider's list lacks it or gives an unknown type."""

    symbol: str
    type: CurrencyType
    precision: int

    @property
    def key(self) -> bytes:
        """The key of its record."""
        return self.symbol.encode()

    @property
    def asked_as(self) -> str:
        """The name of the thing to ask about for it."""
        return f"currency:{self.symbol}"

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """Return the Avro datum `Currency`, changed in that snapshot."""
        return {**asdict(self), "snapshotId": snapshot_id}

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Currency:
        """The inverse of `to_avro`."""
        return cls(datum["symbol"], datum["type"], datum["precision"])


@dataclass(slots=True)
class Counts:
    """The numbers of records of one kind in a snapshot, written by its run, and removed by it."""

    records: int = 0
    written: int = 0
    removed: int = 0


class Omission(NamedTuple):
    """Something that the provider failed to answer, and why."""

    endpoint: str
    """The path as the interface writes it; empty for a record that is too large."""
    id: str | None
    """The id asked about or in the answer; a list's language; None for the whole endpoint."""
    why: str

    @classmethod
    def of(cls, endpoint: str, id_: str | None, why: str) -> Omission:
        """Create one with a shortened reason: a provider may answer with anything."""
        return cls(endpoint, id_, shortened(why, MAX_WHY_CHARACTERS))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a run has published, and where. Times are Unix seconds.

    A reader that stops at `ends` in the job's topic has exactly this snapshot.
    """

    job: str
    id: str
    started_at: float
    finished_at: float
    refreshed_at: float | None
    complete: bool
    languages: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    """Kinds of names that whole runs ask for; empty for currencies, and of an older bridge, which had all."""
    forbidden: tuple[str, ...] = ()
    """Paths of the endpoints without a right (403)."""
    left_out: tuple[Omission, ...] = ()
    """What the provider failed to answer, these endpoints included; at most `MAX_LEFT_OUT` entries."""
    owed: int = 0
    """Number of things that the next run asks about again."""
    counts: Mapping[str, Counts] = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    position: Offsets = field(default_factory=dict)
    """Position up to which the settled bets were read."""

    @property
    def goes_on(self) -> bool:
        """Whether it is a portion of a first run, where the next run goes on: its id ends with a number."""
        return self.refreshed_at is None and "." in self.id.rpartition("-")[2]

    def to_avro(self) -> dict[str, Any]:
        """Return the Avro datum `Snapshot`."""
        return _SNAPSHOT.to_avro(self)

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Snapshot:
        """The inverse of `to_avro`. Raises SchemaError as `AvroForm.from_avro`."""
        return _SNAPSHOT.from_avro(datum, "not a Snapshot: ")


_TUPLE: Final = AvroField(lambda found, _: tuple(found), list)
_OFFSETS: Final = AvroField(
    lambda places, _: {place["partition"]: place["offset"] for place in places},
    lambda offsets: [{"partition": x, "offset": offset} for x, offset in sorted(offsets.items())],
)
_SNAPSHOT: Final = AvroForm(
    Snapshot,
    job=PLAIN,
    id=PLAIN,
    started_at=TIME,
    finished_at=TIME,
    refreshed_at=TIME,
    complete=AvroField(
        lambda scope, _: scope == "Complete", lambda whole: "Complete" if whole else "Partial", "scope"
    ),
    languages=_TUPLE,
    kinds=_TUPLE,
    forbidden=_TUPLE,
    left_out=AvroForm(Omission, endpoint=PLAIN, id=PLAIN, why=PLAIN).many,
    owed=PLAIN,
    counts=AvroField(
        lambda found, _: {kind: Counts(**counts) for kind, counts in found.items()},
        lambda counts: {kind: asdict(counted) for kind, counted in sorted(counts.items())},
    ),
    ends=_OFFSETS,
    position=_OFFSETS,
)
