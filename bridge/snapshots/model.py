"""What a snapshot is made of: names of things, currencies, and the record that says it is whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from bridge.clock import MICROS
from bridge.formatting import shortened
from bridge.rest.answers import MAX_WHY_CHARACTERS
from bridge.rest.endpoints import LISTED, Listed

Job: TypeAlias = Literal["translations", "currencies"]
"""A snapshot job: the name of its command, and of its topic without the prefix."""

OfEvent = Literal["event", "market", "selection"]
"""The kinds that belong to an event, and go when no bet mentions it any more."""
Template = Literal["selection-template", "market-type-template"]
Kind = Literal[Listed, OfEvent, Template]

KINDS: Final[tuple[Kind, ...]] = (*LISTED, *get_args(OfEvent), *get_args(Template))

Texts: TypeAlias = dict[str, str]
"""Language → text."""


@dataclass(slots=True)
class Translation:
    """The names of one thing. What it belongs to is known where the interface tells it."""

    kind: Kind
    id: int
    texts: Texts
    event_id: int | None = None
    sport_id: int | None = None
    region_id: int | None = None
    league_id: int | None = None
    competitor_ids: tuple[int, ...] | None = None
    market_type_id: int | None = None

    def complete(self, other: Translation) -> None:
        """Take what is missing here from another record of the same thing; what is here stands."""
        for language, text in other.texts.items():
            self.texts.setdefault(language, text)
        for name in _BELONGING:
            if getattr(self, name) is None:
                setattr(self, name, getattr(other, name))

    def supersedes(self, other: Translation) -> bool:
        """Whether two selections of one id are of two events, and this is the one of the later event.

        Ids of events are taken to grow: a selection's id that is used again has nothing of its old texts.
        """
        mine, others = self.event_id, other.event_id
        return mine is not None and others is not None and mine > others

    @property
    def key(self) -> bytes:
        """The key of its record."""
        match self.kind:
            case "market":
                assert self.event_id is not None
                return key_of("market", self.id, self.event_id)
            case "market-type-template":
                assert self.sport_id is not None
                return key_of("market-type-template", self.id, self.sport_id)
            case _:
                return key_of(self.kind, self.id)

    @property
    def asked_as(self) -> str:
        """The name of what is asked about to learn it, such as `markets:77`."""
        return f"markets:{self.event_id}" if self.kind in ("market", "selection") else self.key.decode()

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """The datum of the Avro record `Translation`, changed in that snapshot."""
        return {
            "kind": self.kind,
            "id": self.id,
            "eventId": self.event_id,
            "sportId": self.sport_id,
            "regionId": self.region_id,
            "leagueId": self.league_id,
            "competitorIds": None if self.competitor_ids is None else list(self.competitor_ids),
            "marketTypeId": self.market_type_id,
            "translations": dict(sorted(self.texts.items())),
            "snapshotId": snapshot_id,
        }

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Translation:
        """The inverse of `to_avro`."""
        members = datum["competitorIds"]
        return cls(
            kind=datum["kind"],
            id=datum["id"],
            texts=datum["translations"],
            event_id=datum["eventId"],
            sport_id=datum["sportId"],
            region_id=datum["regionId"],
            league_id=datum["leagueId"],
            competitor_ids=None if members is None else tuple(members),
            market_type_id=datum["marketTypeId"],
        )


_BELONGING: Final = ("event_id", "sport_id", "region_id", "league_id", "competitor_ids", "market_type_id")


def key_of(kind: Kind, number: int, within: int | None = None) -> bytes:
    """The key of a thing's record. `within` is the event of a market, the sport of a market type template."""
    return f"{kind}:{number}".encode() if within is None else f"{kind}:{within}:{number}".encode()


_KEY: Final = re.compile(r"([a-z]+(?:-[a-z]+)*)((?::(?:0|-?[1-9][0-9]{0,18})){1,2})")
_WITHIN: Final = frozenset({"market", "market-type-template"})
"""The kinds whose ids are one's own within another's."""


def is_key(text: str) -> bool:
    """Whether a bridge may have made it, be it a newer one: nobody else's record is removed or counted."""
    found = _KEY.fullmatch(text)
    if found is None:
        return False
    kind, numbers = found[1], [int(number) for number in found[2][1:].split(":")]
    fits = kind not in KINDS or len(numbers) == (2 if kind in _WITHIN else 1)
    return fits and all(-(2**63) <= number < 2**63 for number in numbers)


def kind_of(key: bytes) -> str:
    """The kind in a key; of a newer bridge's record it may be one that is unknown here."""
    return key.partition(b":")[0].decode()


CurrencyType = Literal["Unknown", "Fiat", "Crypto", "Custom"]


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency; of the type Unknown where the provider's list lacks it, or has a type of its own."""

    symbol: str
    type: CurrencyType
    precision: int

    @property
    def key(self) -> bytes:
        """The key of its record."""
        return self.symbol.encode()

    @property
    def asked_as(self) -> str:
        """The name of what is asked about to learn it."""
        return f"currency:{self.symbol}"

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """The datum of the Avro record `Currency`, changed in that snapshot."""
        return {
            "symbol": self.symbol,
            "type": self.type,
            "precision": self.precision,
            "snapshotId": snapshot_id,
        }

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Currency:
        """The inverse of `to_avro`."""
        return cls(datum["symbol"], datum["type"], datum["precision"])


Offsets: TypeAlias = dict[int, int]
"""Partition → the first offset that was not read, or is not part of it."""


@dataclass(slots=True)
class Counts:
    """How many records of one kind a snapshot has, how many of these it wrote, how many it removed."""

    records: int = 0
    written: int = 0
    removed: int = 0


class LeftOut(NamedTuple):
    """What the provider did not tell, and how it refused to."""

    endpoint: str
    """Its path, as the interface writes it."""
    id: str | None
    """Of what was asked about, or is in the answer; of a list its language. None: all of the endpoint."""
    why: str

    @classmethod
    def of(cls, endpoint: str, id_: str | None, why: str) -> LeftOut:
        """Its text is cut: a provider may answer with anything."""
        return cls(endpoint, id_, shortened(why, MAX_WHY_CHARACTERS))


NO_RIGHT: Final = "there is no right to it (403)"
"""Why, of a whole endpoint."""
MAX_LEFT_OUT: Final = 1_000
"""So much is told one by one in a Snapshot record: it is to fit into one."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a run has published, and where. Moments are Unix seconds.

    A reader that stops at `ends` in the job's topic has exactly this snapshot.
    """

    job: str
    id: str
    started_at: float
    finished_at: float
    refreshed_at: float | None
    complete: bool
    languages: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    """Paths of the endpoints to which the provider gave no right."""
    left_out: tuple[LeftOut, ...] = ()
    """What was not told, these endpoints included; at most `MAX_LEFT_OUT` of it."""
    owed: int = 0
    """How many things the next run will ask about again."""
    counts: Mapping[str, Counts] = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    position: Offsets = field(default_factory=dict)
    """How far the settled bets were read."""

    def to_avro(self) -> dict[str, Any]:
        """The datum of the Avro record `Snapshot`."""
        return {
            "job": self.job,
            "id": self.id,
            "startedAt": round(self.started_at * MICROS),
            "finishedAt": round(self.finished_at * MICROS),
            "refreshedAt": None if self.refreshed_at is None else round(self.refreshed_at * MICROS),
            "scope": "Complete" if self.complete else "Partial",
            "languages": list(self.languages),
            "forbidden": list(self.forbidden),
            "leftOut": [left._asdict() for left in self.left_out],
            "owed": self.owed,
            "counts": {kind: asdict(counts) for kind, counts in sorted(self.counts.items())},
            "ends": _places(self.ends.items()),
            "position": _places(self.position.items()),
        }

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Snapshot:
        """The inverse of `to_avro`; date-times are integers of microseconds."""
        refreshed = datum["refreshedAt"]
        return cls(
            job=datum["job"],
            id=datum["id"],
            started_at=datum["startedAt"] / MICROS,
            finished_at=datum["finishedAt"] / MICROS,
            refreshed_at=None if refreshed is None else refreshed / MICROS,
            complete=datum["scope"] == "Complete",
            languages=tuple(datum["languages"]),
            forbidden=tuple(datum["forbidden"]),
            left_out=tuple(LeftOut(**left) for left in datum["leftOut"]),
            owed=datum["owed"],
            counts={kind: Counts(**counts) for kind, counts in datum["counts"].items()},
            ends={place["partition"]: place["offset"] for place in datum["ends"]},
            position={place["partition"]: place["offset"] for place in datum["position"]},
        )


def _places(offsets: Iterable[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"partition": partition, "offset": offset} for partition, offset in sorted(offsets)]
