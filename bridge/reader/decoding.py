"""The topics, and how their messages become typed records, written with any version of their schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from confluent_kafka import Message

from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import Fields, load, only
from bridge.errors import ForeignRecord, SchemaError
from bridge.formatting import is_time, parse_whole
from bridge.reader.records import (
    Bet,
    Currency,
    DeadLetter,
    Gap,
    Place,
    Removed,
    Snapshot,
    Translation,
    moment,
)
from bridge.records.message import at, headers_of, key_of, original_receipt
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
    """Decodes the messages of a topic; with `fields`, only these of each, but all of it is checked."""

    def __init__(self, topic: Topic[T_co], registry: Registry, fields: Fields | None = None) -> None:
        self._make = topic.make
        self._codec = topic.schema and registry.codec(topic.schema)
        if topic.schema and fields:
            wanted = only(load(topic.schema), fields)
            self._codec = Codec(wanted, READ_ONLY, registry.schema_by_id, strict=True)

    def decode(self, message: Message) -> T_co | Removed:
        """Return the record of a message.

        Raises ForeignRecord if no bridge has written it, SchemaError if it cannot be read; both name its
        place.
        """
        value = message.value()
        try:
            place: dict[str, Any] = {
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "key": key_of(message).decode(),
            }
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
    headers = headers_of(message)
    try:
        revision, size = parse_whole(headers["revision"]), parse_whole(headers["size"])
        if not is_time(revision) or size < 0:
            raise ValueError(f"revision {revision}, size {size}")
        return DeadLetter(
            **place,
            body=message.value() or b"",
            kind=headers["kind"],
            reason=headers["reason"],
            feed=headers["feed"],
            revision=revision,
            size=size,
        )
    except (LookupError, ValueError) as error:
        raise ForeignRecord(f"its headers are not those of a dead letter: {error!r}") from None


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
