"""Bytes of the feed → the Avro datum of a settled bet, or the reason why not.

Most messages pass `read_feed_message` as they are, in one go. Where all that is wrong with a message is
tolerable (fields the interface does not know, and missing ones that the operator has allowed), those
places are mended in the JSON document and it goes through the very same validation again, so that
both ways read every number alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import getitem
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json
from typing_extensions import is_typeddict

from bridge.errors import ConversionError, SettingsError
from bridge.model import FeedMessage, SettledBet, Zero, read_feed_message

_REASON_LENGTH: Final = 500
_ERRORS_SHOWN: Final = 5
_NAME_LENGTH: Final = 60
_INPUT_LENGTH: Final = 40


class Message(NamedTuple):
    """A message of the feed (interface, "Events"). A ping, a bet, both, or neither: then it is empty."""

    ping_id: str | None
    bet: SettledBet | None
    """The Avro datum of the schema `SettledBet`."""
    extras: tuple[str, ...]
    """Paths of the fields that the interface does not know, such as `data.selections[].foo`, each once."""


class Converter:
    """Reads messages.

    `may_be_missing` holds the paths of non-nullable fields, such as `data.selections[].limitsFactor`,
    that the provider leaves out when they hold their type's zero: 0, false, None (of a
    SettlementResult) or 0001-01-01T00:00:00. Raises SettingsError for a path that is no such field.
    """

    def __init__(self, may_be_missing: frozenset[str] = frozenset()) -> None:
        zeros = dict(_zeros(FeedMessage))
        if unknown := sorted(may_be_missing - zeros.keys()):
            raise SettingsError(
                f"feed.may_be_missing: {', '.join(unknown)}: not a field that can be left out, which are the "
                "required numbers, booleans, results and times, such as data.partialRefund, "
                "data.selections[].limitsFactor or data.amount.precision. Correct or remove it."
            )
        self.zeros: Final = {path: zeros[path] for path in may_be_missing}
        """Path → the JSON that a field stands for when it is missing."""

    def decode(self, data: bytes) -> Message:
        """Convert one message.

        Raises ConversionError, whose reason lists the paths of the fields and what is wrong with them.
        """
        try:
            message = read_feed_message(data)
        except ValidationError as error:
            return _not_another(data, self._mend(data, error))
        return Message(message["pingId"], message["data"], ())

    def _mend(self, data: bytes, error: ValidationError) -> Message:
        errors = error.errors(include_url=False, include_context=False)
        if errors[0]["type"] == "json_invalid":
            raise ConversionError(_cut(errors[0]["msg"], _REASON_LENGTH)) from None
        document = from_json(data)
        extras: dict[str, None] = {}
        wrong = []
        for found in errors:
            path = _path(found["loc"])
            if found["type"] == "extra_forbidden":
                _parent(document, found["loc"]).pop(found["loc"][-1], None)
                extras[path] = None
            elif found["type"] == "missing" and path in self.zeros:
                _parent(document, found["loc"])[found["loc"][-1]] = self.zeros[path]
            else:
                wrong.append(found)
        if wrong:
            raise ConversionError(_reason(wrong), ping_id=_ping_id(document)) from None
        message = read_feed_message(to_json(document))
        return Message(message["pingId"], message["data"], tuple(extras))


def _not_another(data: bytes, message: Message) -> Message:
    """Raises ConversionError where all that a message holds are fields that the interface does not know."""
    if message.ping_id is None and message.bet is None:
        held = [name for name, value in from_json(data).items() if value is not None]
        if held:
            names = ", ".join(_cut(name, _NAME_LENGTH) for name in held[:_ERRORS_SHOWN])
            raise ConversionError(f"neither pingId nor data, but: {names}", extras=message.extras)
    return message


def _zeros(record: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Path and zero of every field, in a TypedDict and below, that has a zero and may not be null."""
    for name, hint in get_type_hints(record, include_extras=True).items():
        marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Zero)]
        if marks:
            yield prefix + name, marks[0].json
        for nested, suffix in _records(hint):
            yield from _zeros(nested, f"{prefix}{name}{suffix}.")


def _records(hint: Any, suffix: str = "") -> Iterator[tuple[Any, str]]:
    """The TypedDicts inside a type, each with `[]` for every list around it."""
    if is_typeddict(hint):
        yield hint, suffix
    for part in get_args(hint):
        yield from _records(part, suffix + "[]" if get_origin(hint) is list else suffix)


def _parent(document: Any, location: tuple[int | str, ...]) -> Any:
    """What holds the value at the location."""
    return reduce(getitem, location[:-1], document)


def _path(location: tuple[int | str, ...], *, index: str = "[]") -> str:
    """`data.selections[].price`, or `data.selections[0].price` with the index `[{}]`."""
    path = ""
    for part in location:
        path += index.format(part) if isinstance(part, int) else f".{_cut(part, _NAME_LENGTH)}"
    return path.removeprefix(".")


def _reason(errors: Sequence[ErrorDetails]) -> str:
    shown = "; ".join(_explain(error) for error in errors[:_ERRORS_SHOWN])
    rest = f"; and {len(errors) - _ERRORS_SHOWN} more" if len(errors) > _ERRORS_SHOWN else ""
    return _cut(shown, _REASON_LENGTH - len(rest)) + rest


def _explain(error: ErrorDetails) -> str:
    where = _path(error["loc"], index="[{}]") or "the message"
    got = error["input"]
    if error["type"] == "missing" or isinstance(got, dict | list):
        return f"{where}: {error['msg']}"
    return f"{where}: {error['msg']}, got {_cut(to_json(got).decode(), _INPUT_LENGTH)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _ping_id(document: Any) -> str | None:
    found = document.get("pingId") if isinstance(document, dict) else None
    return found if isinstance(found, str) else None
