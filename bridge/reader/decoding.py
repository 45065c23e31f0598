"""The topics, and how their messages become typed records, written with any version of their schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from confluent_kafka import Message

from bridge.errors import SchemaError
from bridge.reader.records import Bet, Currency, Gap, Snapshot, Translation
from bridge.records.dead_letter import DeadLetter
from bridge.records.message import at, headers_of, original_receipt, place_fields
from bridge.records.place import Place, Removed, moment
from bridge.registry import Registry

T_co = TypeVar("T_co", bound=Place, covariant=True)
_Place: TypeAlias = Mapping[str, Any]
"""The fields of a `Place`."""
_Datum: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Topic(Generic[T_co]):
    """A topic of the bridge, by its name without the prefix, and the type of its records."""

    name: str
    schema: str | None
    """Name of the schema of its values; None if they are not Avro."""
    make: Callable[[_Place, Any], T_co]
    """Makes a record of a place and its decoded value; of the message where that is not Avro."""


class MessageDecoder(Generic[T_co]):
    """Decodes the messages of a topic."""

    def __init__(self, topic: Topic[T_co], registry: Registry) -> None:
        self._make = topic.make
        self._codec = topic.schema and registry.codec(topic.schema)

    def decode(self, message: Message) -> T_co | Removed:
        """Return the record of a message.

        Raises ForeignRecord if no bridge has written it, SchemaError if it cannot be read; both name its
        place.
        """
        value = message.value()
        try:
            place = place_fields(message)
            if value is None:
                return Removed(**place)
            made = self._make(place, self._codec.decode(value) if self._codec else message)
            if isinstance(made, Bet) and message.headers():
                return replace(made, redriven_from=original_receipt(headers_of(message)))
            return made
        except SchemaError as error:
            raise at(message, error) from None


def _bet(place: _Place, datum: Any) -> Bet:
    return Bet(**place, value=datum)


def _translation(place: _Place, datum: _Datum) -> Translation:
    return Translation(
        **place,
        kind=datum["kind"],
        id=datum["id"],
        event_id=datum["eventId"],
        sport_id=datum["sportId"],
        region_id=datum["regionId"],
        league_id=datum["leagueId"],
        competitor_ids=datum["competitorIds"],
        market_type_id=datum["marketTypeId"],
        texts=datum["translations"],
        snapshot_id=datum["snapshotId"],
    )


def _currency(place: _Place, datum: _Datum) -> Currency:
    return Currency(
        **place,
        symbol=datum["symbol"],
        type=datum["type"],
        precision=datum["precision"],
        snapshot_id=datum["snapshotId"],
    )


def _gap(place: _Place, datum: _Datum) -> Gap:
    return Gap(
        **place,
        feed=datum["feed"],
        start=_time(datum["from"]),
        end=_time(datum["to"]),
        cause=datum["cause"],
        detected_at=_time(datum["detectedAt"]),
    )


def _snapshot(place: _Place, datum: _Datum) -> Snapshot:
    return Snapshot(
        **place,
        job=datum["job"],
        id=datum["id"],
        finished_at=_time(datum["finishedAt"]),
        complete=datum["scope"] == "Complete",
        languages=tuple(datum["languages"]),
        kinds=tuple(datum["kinds"]),
        ends={end["partition"]: end["offset"] for end in datum["ends"]},
    )


def _dead_letter(place: _Place, message: Message) -> DeadLetter:
    return DeadLetter.read(place, headers_of(message), message.value() or b"")


def _time(micros: int) -> datetime:
    """Return a time that a bridge has read from its clock. Raises SchemaError for one that is none."""
    if (found := moment(micros)) is None:
        raise SchemaError(f"{micros} microseconds are not a time between the years 1 and 9999")
    return found


BETS: Final = Topic("bets", "settled-bet", _bet)
TRANSLATIONS: Final = Topic("translations", "translation", _translation)
CURRENCIES: Final = Topic("currencies", "currency", _currency)
GAPS: Final = Topic("gaps", "feed-gap", _gap)
SNAPSHOTS: Final = Topic("snapshots", "snapshot", _snapshot)
DEAD_LETTERS: Final = Topic("deadletters", None, _dead_letter)
