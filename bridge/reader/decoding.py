"""The topics, and how their messages become typed records, written with any version of their schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from confluent_kafka import Message

from bridge.avro.schemas import Fields
from bridge.errors import SchemaError
from bridge.reader.records import Bet, Currency, Gap, Snapshot, Translation
from bridge.records.avro_form import PLAIN, AvroField, AvroForm
from bridge.records.dead_letter import DeadLetter
from bridge.records.message import at, headers_of, original_receipt, place_fields
from bridge.records.place import Place, Removed, moment
from bridge.registry import Registry

T_co = TypeVar("T_co", bound=Place, covariant=True)
_Place: TypeAlias = Mapping[str, Any]
"""The fields of a `Place`."""


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
        self._codec = topic.schema and registry.codec(topic.schema, fields, strict=fields is not None)

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


def _dead_letter(place: _Place, message: Message) -> DeadLetter:
    return DeadLetter.read(place, headers_of(message), message.value() or b"")


def _form(of: type[T_co], **others: AvroField) -> Callable[[_Place, Mapping[str, Any]], T_co]:
    """Return what makes records of a type: its fields are those of the schema, but for `others`."""
    own = [field.name for field in fields(of) if field.name not in Place.__slots__]
    form = AvroForm(of, **(dict.fromkeys(own, PLAIN) | others))
    return lambda place, datum: form.from_avro(datum, f"not a {of.__name__}: ", **place)


def _time(micros: int, path: str) -> datetime:
    """Return a time that a bridge has read from its clock. Raises SchemaError for one that is none."""
    if (found := moment(micros)) is None:
        raise SchemaError(f"{path}: {micros} microseconds are not a time between the years 1 and 9999")
    return found


_TIME: Final = AvroField(_time)
_TUPLE: Final = AvroField(lambda found, _: tuple(found))
_ENDS: Final = AvroField(lambda found, _: {end["partition"]: end["offset"] for end in found})

BETS: Final = Topic("bets", "settled-bet", _bet)
TRANSLATIONS: Final = Topic(
    "translations", "translation", _form(Translation, texts=PLAIN.called("translations"))
)
CURRENCIES: Final = Topic("currencies", "currency", _form(Currency))
GAPS: Final = Topic(
    "gaps", "feed-gap", _form(Gap, start=_TIME.called("from"), end=_TIME.called("to"), detected_at=_TIME)
)
SNAPSHOTS: Final = Topic(
    "snapshots",
    "snapshot",
    _form(
        Snapshot,
        finished_at=_TIME,
        complete=AvroField(lambda scope, _: scope == "Complete", name="scope"),
        languages=_TUPLE,
        kinds=_TUPLE,
        ends=_ENDS,
    ),
)
DEAD_LETTERS: Final = Topic("deadletters", None, _dead_letter)
