"""What a record says: its key, headers and times, its value decoded, and its place in an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.errors import ForeignRecord, SchemaError
from bridge.formatting import parse_unix
from bridge.log import get

T = TypeVar("T")
RECEIVED: Final = "received"
"""Header with the time of receipt: of dead letters, and of bets that were redriven."""


def key_of(message: Message) -> bytes:
    """Return the key of a record. Raises ForeignRecord where it is not UTF-8 text, as all of ours are."""
    key = message.key()
    try:
        if isinstance(key, bytes) and key.decode():
            return key
    except UnicodeDecodeError:
        pass
    raise ForeignRecord("its key is not UTF-8 text" if key else "it has no key")


def headers_of(message: Message) -> dict[str, str]:
    """Return the headers of a record as text."""
    return {
        name: value if isinstance(value, str) else (value or b"").decode("utf-8", "replace")
        for name, value in dict(message.headers() or []).items()
    }


def place_fields(message: Message) -> dict[str, Any]:
    """Return the fields of a record's `Place`. Raises ForeignRecord as `key_of`."""
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": key_of(message).decode(),
    }


def place_of(message: Message) -> tuple[int, int]:
    """Return partition and offset of a record."""
    return message.partition() or 0, message.offset() or 0


def received_at(message: Message) -> float:
    """Return the timestamp of a record, Unix seconds: when its message was received, or it was committed."""
    return message.timestamp()[1] / 1000


def original_receipt(headers: Mapping[str, str]) -> float | None:
    """Return when the message of a redriven bet was received, Unix seconds; None for any other bet."""
    try:
        return parse_unix(headers[RECEIVED])
    except (LookupError, ValueError):
        return None


def first_received_at(message: Message) -> float:
    """Return when the message of a record was received, Unix seconds; of a redriven one its dead letter's."""
    return original_receipt(headers_of(message)) or received_at(message)


def record_of(message: Message, codec: Codec, make: Callable[[dict[str, Any]], T]) -> T:
    """Return what `make` makes of the datum of a message.

    Raises SchemaError or ForeignRecord, which name the record's place.
    """
    try:
        return make(codec.decode(message.value() or b""))
    except SchemaError as error:
        raise at(message, error) from None


def where(message: Message) -> str:
    """Return the place of a message in words."""
    return f"{message.topic()} partition {message.partition()} offset {message.offset()}"


def at(message: Message, error: SchemaError) -> SchemaError:
    """Return the error with the place of the record that cannot be read."""
    place = where(message)
    if isinstance(error, ForeignRecord):
        return ForeignRecord(f"{place} was not written by a bridge: {error}")
    return type(error)(f"{place} cannot be read: {error}")


class SkippedRecords:
    """Counts what a reader skips: tombstones, and records that no bridge wrote, of which it keeps the first.

    The end of one that `follows` may never come: the first is logged at once.
    """

    def __init__(self, *, follows: bool = False) -> None:
        self._follows = follows
        self.count = 0
        self.first = ""
        """Its place and what is wrong with it."""
        self.tombstones = 0
        """Of erased bets, by a reader that has no way to show them."""

    def add(self, error: SchemaError) -> None:
        """Count a record."""
        self.count += 1
        self.first = self.first or str(error)
        if self._follows and self.count == 1:
            get().warning("foreign record skipped", reason=self.first)

    def log(self) -> None:
        """Log the counts that are not 0. Call it once, after reading."""
        if self.count:
            get().warning("foreign records skipped", count=self.count, first=self.first)
        if self.tombstones:
            why = "these bets are erased, and only compaction takes their records out of the topics"
            get().warning("tombstones left out", count=self.tombstones, reason=why)
