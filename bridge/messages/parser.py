"""Bytes of the feed → the Avro datum of a settled bet, or the reason why not.

Most messages pass `read_feed_message` as they are, in one go. Where all that is wrong with a message is
tolerable (fields the interface does not know, and missing ones that the operator has allowed), those
places are mended in the JSON document and it goes through the very same validation again, so that
both ways read every number alike.

A message may be anything, so each step is linear in its size and bounded in memory. A large one is looked
at first: what it would become in memory depends on how many values it has. Of those larger than any bet, only
what lacks no field goes to pydantic: for each field that is missing it copies a whole object into the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, NotRequired, get_origin, get_type_hints

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from bridge.errors import ConversionError
from bridge.messages.model import (
    FeedMessage,
    SettledBet,
    nested_records,
    omittable_fields,
    read_feed_message,
)

SMALL_BYTES: Final = 32 * 1024
"""No smaller message can do harm, whatever it is."""
BET_BYTES, BET_VALUES = 800 * 1024, 16_500
"""More than the largest bet that comes to mind takes (`tests/unit/messages/test_parser_large.py`)."""
MOST_VALUES: Final = 10 * BET_VALUES
"""Parsed, each takes up to 500 bytes."""
MOST_EXTRAS: Final = 100
"""Paths of unknown fields that are told apart in one message."""
_FIELDS: Final = FeedMessage.__annotations__.keys()
_REASON_LENGTH: Final = 500
_ERRORS_SHOWN: Final = 5
_NAME_LENGTH: Final = 60
_INPUT_LENGTH: Final = 40


def look(data: bytes) -> bool:
    """Whether a message beyond `SMALL_BYTES` is larger than any bet. Raises ConversionError for too much.

    What counts is marks that stand before a value, so that a comma in a text is one too many.
    """
    values = data.count(b",") + data.count(b"{") + data.count(b"[")
    if values > MOST_VALUES:
        raise ConversionError(f"{values} values are more than any bet has; {MOST_VALUES} are read")
    return len(data) > BET_BYTES or values > BET_VALUES


def holds_objects(data: bytes) -> bool:
    """Whether a message has objects, or lists, in fields that the interface does not know."""
    fields = from_json(data).items()
    return any(isinstance(value, dict | list) for name, value in fields if name not in _FIELDS)


class Message(NamedTuple):
    """A message of the feed (interface, "Events"). A ping, a bet, both, or neither: then it is empty."""

    ping_id: str | None
    bet: SettledBet | None
    """The Avro datum of the schema `SettledBet`."""
    extras: tuple[str, ...]
    """Paths of the fields that the interface does not know, such as `data.selections[].foo`, each once."""


class Converter:
    """Reads messages.

    `optional_fields` holds the paths of non-nullable fields, such as `data.selections[].limitsFactor`,
    that the provider leaves out when they hold their type's zero: 0, false, None (of a
    SettlementResult) or 0001-01-01T00:00:00.
    """

    def __init__(self, optional_fields: frozenset[str] = frozenset()) -> None:
        zeros = omittable_fields()
        self.zeros: Final = {path: zeros[path] for path in optional_fields}
        """Path → the JSON that a field stands for when it is missing."""
        self._message: Final = _Place(FeedMessage, "", self.zeros)

    def decode(self, data: bytes) -> Message:
        """Convert one message.

        Raises ConversionError, whose reason lists the paths of the fields and what is wrong with them.
        """
        if len(data) > SMALL_BYTES and look(data):
            return self._mend(data, None)
        try:
            message = read_feed_message(data)
        except ValidationError as error:
            return self._mend(data, error)
        return Message(message["pingId"], message["data"], ())

    def _mend(self, data: bytes, error: ValidationError | None) -> Message:
        """Convert what pydantic has refused, or has not seen yet because it is larger than any bet."""
        try:
            document = from_json(data)
        except ValueError as invalid:
            raise ConversionError(_cut(f"Invalid JSON: {invalid}", _REASON_LENGTH)) from None
        ping_id, mends, unknown = _ping_id(document), _Mends(), ""
        if isinstance(document, dict):
            unknown = _held_by_unknown_fields(document)
            self._message.mend(document, (), mends)
        if error is None and mends.missing:
            raise ConversionError(_listed(mends.missing), ping_id=ping_id)
        if error is None or mends.made:
            text = to_json(document) if mends.made else data
            del document  # a long text may take four times its bytes
            try:
                message = read_feed_message(text)
            except ValidationError as found:
                raise ConversionError(_reason(found), ping_id=ping_id) from None
            if unknown and message["pingId"] is None and message["data"] is None:
                raise ConversionError(f"neither pingId nor data, but: {unknown}", extras=tuple(mends.extras))
            return Message(message["pingId"], message["data"], tuple(mends.extras))
        # Few: of a list or a map pydantic names the first that is wrong, and there is nothing unknown.
        raise ConversionError(_reason(error), ping_id=ping_id) from None


class _Mends:
    """What was done to a document, and what could not be."""

    def __init__(self) -> None:
        self.made = False
        self.extras: dict[str, None] = {}
        """Paths of what was removed, in order, each once."""
        self.missing: list[str] = []
        """The first few fields that are missing and must not be, as reasons."""


class _Place:
    """The fields of a TypedDict that is at one path of a message, such as `data.selections[].`."""

    def __init__(self, record: Any, path: str, zeros: Mapping[str, Any]) -> None:
        self._path: Final = path
        self._below: Final[list[tuple[str, bool, _Place]]] = []
        """The fields with objects in them, and whether these are in a list."""
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

    def mend(self, found: dict[str, Any], at: tuple[int, ...], mends: _Mends) -> None:
        """Remove unknown fields and fill in zeros, here and below; `at` are the indices on the path."""
        for name, listed, place in self._below:
            value = found.get(name)
            if not listed:
                if isinstance(value, dict):
                    place.mend(value, at, mends)
            elif isinstance(value, list):
                for number, item in enumerate(value):
                    if isinstance(item, dict):
                        place.mend(item, (*at, number), mends)
        if not found.keys() >= self._zeros.keys():
            mends.made = True
            found.update({name: zero for name, zero in self._zeros.items() if name not in found})
        if not found.keys() >= self._required:
            self._name_missing(found, at, mends)
        if not found.keys() <= self._known:
            self._remove_unknown(found, mends)

    def _name_missing(self, found: dict[str, Any], at: tuple[int, ...], mends: _Mends) -> None:
        path = self._path.replace("[]", "[{}]").format(*at)
        room = _ERRORS_SHOWN - len(mends.missing)
        missing = [f"{path}{name}: Field required" for name in self._required if name not in found]
        mends.missing += missing[:room]

    def _remove_unknown(self, found: dict[str, Any], mends: _Mends) -> None:
        mends.made = True
        for name in [name for name in found if name not in self._known]:
            del found[name]
            if len(mends.extras) < MOST_EXTRAS:
                mends.extras[f"{self._path}{_cut(name, _NAME_LENGTH)}"] = None


def _reason(error: ValidationError) -> str:
    return _listed([_explain(found) for found in error.errors(include_url=False, include_context=False)])


def _listed(reasons: Sequence[str]) -> str:
    shown = "; ".join(reasons[:_ERRORS_SHOWN])
    rest = f"; and {len(reasons) - _ERRORS_SHOWN} more" if len(reasons) > _ERRORS_SHOWN else ""
    return _cut(shown, _REASON_LENGTH - len(rest)) + rest


def _explain(error: ErrorDetails) -> str:
    where = _path(error["loc"]) or "the message"
    got = error["input"]
    if error["type"] == "missing" or isinstance(got, dict | list):
        return f"{where}: {error['msg']}"
    if isinstance(got, str):
        got = got[:_INPUT_LENGTH]
    return f"{where}: {error['msg']}, got {_cut(to_json(got).decode(), _INPUT_LENGTH)}"


def _path(location: tuple[int | str, ...]) -> str:
    """Such as `data.selections[0].price`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{_cut(part, _NAME_LENGTH)}"
    return path.removeprefix(".")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _held_by_unknown_fields(document: dict[str, Any]) -> str:
    """The names of the first few fields of a message that hold something, and that nobody knows."""
    names = (name for name, value in document.items() if value is not None)
    unknown = (_cut(name, _NAME_LENGTH) for name in names if name not in _FIELDS)
    return ", ".join(islice(unknown, _ERRORS_SHOWN))


def _ping_id(document: Any) -> str | None:
    found = document.get("pingId") if isinstance(document, dict) else None
    return found if isinstance(found, str) else None
