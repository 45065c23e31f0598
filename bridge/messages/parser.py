"""Parses messages of the feed: bytes → the Avro datum of a settled bet, or the reason why not.

Most messages pass `read_feed_message` unchanged. If a message has only tolerable errors (fields that the
interface does not document, and missing ones that the operator has allowed), these places are repaired in the
JSON document, which is validated again in the same way. So both ways read every number alike.

A message may be anything, so each step is linear in its size and bounded in memory. The values of a large
message are counted first: its size in memory depends on them. A message larger than any bet reaches pydantic
only if no field is missing, because pydantic copies the whole object into the error of each missing field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, NotRequired, get_origin, get_type_hints

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from bridge.errors import ConversionError
from bridge.messages.extras import NAME_LENGTH, Extras, cut
from bridge.messages.model import (
    FeedMessage,
    SettledBetModel,
    nested_records,
    omittable_fields,
    read_feed_message,
)

SMALL_BYTES: Final = 32 * 1024
"""Smaller messages need no check: they are harmless, whatever they hold."""
BET_BYTES, BET_VALUES = 800 * 1024, 16_500
"""More than the largest conceivable bet has (`tests/unit/messages/test_parser_large.py`)."""
MOST_VALUES: Final = 10 * BET_VALUES
"""Each takes up to 500 bytes when parsed."""
_FIELDS: Final = FeedMessage.__annotations__.keys()
_REASON_LENGTH: Final = 500
_ERRORS_SHOWN: Final = 5
_INPUT_LENGTH: Final = 40


def exceeds_any_bet(data: bytes) -> bool:
    """Return whether a message is larger than any bet. Raises ConversionError for more than `MOST_VALUES`.

    Values are counted by the characters before them, so a comma in a string counts as well.
    """
    values = data.count(b",") + data.count(b"{") + data.count(b"[")
    if values > MOST_VALUES:
        raise ConversionError(f"{values} values are more than any bet has; the limit is {MOST_VALUES}")
    return len(data) > BET_BYTES or values > BET_VALUES


def holds_objects(data: bytes) -> bool:
    """Return whether a message has objects or lists in fields that the interface does not document."""
    fields = from_json(data).items()
    return any(isinstance(value, dict | list) for name, value in fields if name not in _FIELDS)


class Message(NamedTuple):
    """A message of the feed (interface, "Events"): a ping, a bet, both, or empty."""

    ping_id: str | None
    bet: SettledBetModel | None
    """The Avro datum of the schema `SettledBet`."""
    extras: tuple[str, ...]
    """Distinct paths of fields that the interface does not document, such as `data.selections[].foo`."""


class MessageParser:
    """Parses and validates messages.

    `optional_fields` holds the paths of non-nullable fields, such as `data.selections[].limitsFactor`,
    that the provider leaves out when they hold their type's zero: 0, false, None (of a
    SettlementResult) or 0001-01-01T00:00:00.
    """

    def __init__(self, optional_fields: frozenset[str] = frozenset()) -> None:
        zeros = omittable_fields()
        self.zeros: Final = {path: zeros[path] for path in optional_fields}
        """Path → JSON value of the field when it is missing."""
        self._message: Final = _Place(FeedMessage, "", self.zeros)

    def parse(self, data: bytes) -> Message:
        """Parse one message.

        Raises ConversionError, whose reason lists the wrong fields with their paths.
        """
        if len(data) > SMALL_BYTES and exceeds_any_bet(data):
            return self._repair(data, None)
        try:
            message = read_feed_message(data)
        except ValidationError as error:
            return self._repair(data, error)
        return Message(message["pingId"], message["data"], ())

    def _repair(self, data: bytes, error: ValidationError | None) -> Message:
        """Repair and parse a message that pydantic refused, or (`error` is None) one larger than any bet."""
        try:
            document = from_json(data)
        except ValueError as invalid:
            raise ConversionError(cut(f"Invalid JSON: {invalid}", _REASON_LENGTH)) from None
        ping_id, repairs, unknown = _ping_id(document), _Repairs(), ""
        if isinstance(document, dict):
            unknown = _unknown_with_values(document)
            self._message.repair(document, (), repairs)
        if error is None and repairs.missing:
            raise ConversionError(_listed(repairs.missing), ping_id=ping_id)
        if error is None or repairs.made:
            text = to_json(document) if repairs.made else data
            del document  # a long string may take four times its bytes
            try:
                message = read_feed_message(text)
            except ValidationError as found:
                raise ConversionError(_reason(found), ping_id=ping_id) from None
            if unknown and message["pingId"] is None and message["data"] is None:
                raise ConversionError(
                    f"neither pingId nor data, but: {unknown}", extras=repairs.extras.paths()
                )
            return Message(message["pingId"], message["data"], repairs.extras.paths())
        # The errors are few: pydantic reports the first of a list or map, and no field is unknown.
        raise ConversionError(_reason(error), ping_id=ping_id) from None


class _Repairs:
    """Repairs made in a document, and fields that could not be repaired."""

    def __init__(self) -> None:
        self.made = False
        self.extras = Extras()
        """The removed fields."""
        self.missing: list[str] = []
        """The first few required fields that are missing, as reasons."""


class _Place:
    """The fields of a TypedDict at one path of a message, such as `data.selections[].`."""

    def __init__(self, record: Any, path: str, zeros: Mapping[str, Any]) -> None:
        self._path: Final = path
        self._below: Final[list[tuple[str, bool, _Place]]] = []
        """Each field that holds objects: its name, whether they are in a list, and their place."""
        hints = get_type_hints(record, include_extras=True)
        for name, hint in hints.items():
            for nested, suffix in nested_records(hint):
                place = _Place(nested, f"{path}{name}{suffix}.", zeros)
                self._below.append((name, suffix == "[]", place))
        self._known: Final = hints.keys()
        self._zeros: Final = {name: zeros[path + name] for name in hints if path + name in zeros}
        self._required: Final = {
            name: None
            for name, hint in hints.items()
            if name not in self._zeros and get_origin(hint) is not NotRequired
        }.keys()

    def repair(self, found: dict[str, Any], at: tuple[int, ...], repairs: _Repairs) -> None:
        """Remove unknown fields and fill in zeros, here and below; `at` has the list indices of the path."""
        for name, listed, place in self._below:
            value = found.get(name)
            if not listed:
                if isinstance(value, dict):
                    place.repair(value, at, repairs)
            elif isinstance(value, list):
                for number, item in enumerate(value):
                    if isinstance(item, dict):
                        place.repair(item, (*at, number), repairs)
        if not found.keys() >= self._zeros.keys():
            repairs.made = True
            found.update({name: zero for name, zero in self._zeros.items() if name not in found})
        if not found.keys() >= self._required:
            self._name_missing(found, at, repairs)
        if not found.keys() <= self._known:
            self._remove_unknown(found, repairs)

    def _name_missing(self, found: dict[str, Any], at: tuple[int, ...], repairs: _Repairs) -> None:
        path = self._path.replace("[]", "[{}]").format(*at)
        room = _ERRORS_SHOWN - len(repairs.missing)
        missing = [f"{path}{name}: Field required" for name in self._required if name not in found]
        repairs.missing += missing[:room]

    def _remove_unknown(self, found: dict[str, Any], repairs: _Repairs) -> None:
        repairs.made = True
        for name in [name for name in found if name not in self._known]:
            del found[name]
            repairs.extras.note(self._path, name)


def _reason(error: ValidationError) -> str:
    return _listed([_explain(found) for found in error.errors(include_url=False, include_context=False)])


def _listed(reasons: Sequence[str]) -> str:
    shown = "; ".join(reasons[:_ERRORS_SHOWN])
    rest = f"; and {len(reasons) - _ERRORS_SHOWN} more" if len(reasons) > _ERRORS_SHOWN else ""
    return cut(shown, _REASON_LENGTH - len(rest)) + rest


def _explain(error: ErrorDetails) -> str:
    where = _path(error["loc"]) or "the message"
    got = error["input"]
    if error["type"] == "missing" or isinstance(got, dict | list):
        return f"{where}: {error['msg']}"
    if isinstance(got, str):
        got = got[:_INPUT_LENGTH]
    return f"{where}: {error['msg']}, got {cut(to_json(got).decode(), _INPUT_LENGTH)}"


def _path(location: tuple[int | str, ...]) -> str:
    """Return the path of a location, such as `data.selections[0].price`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{cut(part, NAME_LENGTH)}"
    return path.removeprefix(".")


def _unknown_with_values(document: dict[str, Any]) -> str:
    """Return the names of the first few unknown fields of a message that are not null."""
    names = (name for name, value in document.items() if value is not None)
    unknown = (cut(name, NAME_LENGTH) or '""' for name in names if name not in _FIELDS)
    return ", ".join(islice(unknown, _ERRORS_SHOWN))


def _ping_id(document: Any) -> str | None:
    found = document.get("pingId") if isinstance(document, dict) else None
    return found if isinstance(found, str) else None
