"""Reads a message of the feed by the provider's interface, and nothing else.

A settled bet becomes what its record must hold: the same names, enums as symbols, date-times as
microseconds, numbers in the type of their field. `content` is a digest of that form, for both.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from enum import Enum, auto
from hashlib import blake2b
from typing import Any, NamedTuple, NoReturn

from tests.interface import ENUMS, fields_of


class Kind(Enum):
    """What must become of a message."""

    BET = auto()
    LETTER = auto()
    NOTHING = auto()
    """A ping, or an empty message."""


class Reading(NamedTuple):
    """A message as the judge reads it."""

    kind: Kind
    bet: dict[str, Any]
    """Empty unless it is a bet."""


class WrongError(ValueError):
    """The value does not have its type in the interface."""


Convert = Callable[[Any], Any]


def read(body: bytes, most: int = 8 << 20) -> Reading:
    """Return what a message is; with more than `most` bytes it is a dead letter, whatever it holds."""
    try:
        if len(body) > most:
            raise WrongError
        message = json.loads(body.decode(), parse_constant=_constant)
        if b"\\u" in body:
            json.dumps(message, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        if type(message) is not dict:
            raise WrongError
        ping, data = (message.get(name) for name in ("pingId", "data"))
        if ping is not None:
            _text(ping)
        if data is not None:
            return Reading(Kind.BET, _bet(data))
        if ping is None and any(value is not None for value in message.values()):
            raise WrongError
    except (ValueError, OverflowError, RecursionError):
        return Reading(Kind.LETTER, {})
    return Reading(Kind.NOTHING, {})


def content(bet: dict[str, Any]) -> bytes:
    """Return 16 bytes that two bets share only if all their values are the same."""
    return blake2b(json.dumps(bet, sort_keys=True).encode(), digest_size=16).digest()


def differences(sent: Any, got: Any, path: str = "data") -> list[str]:
    """Return the paths at which a record differs from its message, with both values."""
    if isinstance(sent, dict) and isinstance(got, dict):
        names = sorted(sent.keys() | got.keys())
        return [d for name in names for d in differences(sent.get(name), got.get(name), f"{path}.{name}")]
    if isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        pairs = enumerate(zip(sent, got, strict=True))
        return [d for index, (one, other) in pairs for d in differences(one, other, f"{path}[{index}]")]
    same = json.dumps(sent, sort_keys=True) == json.dumps(got, sort_keys=True)
    return [] if same else [f"{path} {sent!r} became {got!r}"]


def _constant(_: str) -> NoReturn:
    raise WrongError


def _such(is_right: Callable[[Any], bool]) -> Convert:
    """What is right stays as it is."""

    def converted(value: Any) -> Any:
        if not is_right(value):
            raise WrongError
        return value

    return converted


_text = _such(lambda value: type(value) is str)


def _integer(bits: int) -> Convert:
    least, end = -(2 ** (bits - 1)), 2 ** (bits - 1)
    return _such(lambda value: type(value) is int and least <= value < end)


def _double(value: Any) -> float:
    if type(value) not in (float, int) or not math.isfinite(value):
        raise WrongError
    return float(value)


def _enum(table: str) -> Convert:
    numbers, names = table.split()[::2], table.split()[1::2]
    symbols = dict(zip(map(int, numbers), names, strict=True))

    def converted(value: Any) -> str:
        if type(value) is not int or value not in symbols:
            raise WrongError
        return symbols[value]

    return converted


_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])"
    r"(?:\.([0-9]{1,9}))?(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))?"
).fullmatch
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def _date_time(value: Any) -> int:
    """Microseconds since 1970 in UTC: without a zone it is UTC, and finer digits are dropped."""
    found = _DATE_TIME(_text(value))
    if found is None:
        raise WrongError
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    seconds = days * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign is not None:
        ahead = int(hours) * 3600 + int(minutes) * 60
        seconds += ahead if sign == "-" else -ahead
    return seconds * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))


_SCALARS: dict[str, Convert] = {
    "string": _text,
    "bet id": _such(lambda value: type(value) is str and 1 <= len(value) <= 1000),
    "map": _such(lambda value: type(value) is dict and all(type(text) is str for text in value.values())),
    "boolean": _such(lambda value: type(value) is bool),
    "int32": _integer(32),
    "int64": _integer(64),
    "double": _double,
    "date-time": _date_time,
    **{name: _enum(symbols) for name, symbols in ENUMS.items()},
}


def _of(type_: str) -> Convert:
    if type_.endswith("[]"):
        return _list(_of(type_[:-2]))
    return _SCALARS.get(type_) or _object(fields_of(type_))


def _list(convert: Convert) -> Convert:
    def converted(value: Any) -> list[Any]:
        if type(value) is not list:
            raise WrongError
        return [convert(item) for item in value]

    return converted


def _object(types: Mapping[str, str]) -> Convert:
    """An object with these fields, of which some may be null or missing; others are ignored."""
    fields = [(name, _of(type_.removesuffix("?")), type_.endswith("?")) for name, type_ in types.items()]

    def converted(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise WrongError
        found = {}
        for name, convert, nullable in fields:
            given = value.get(name)
            if given is None and not nullable:
                raise WrongError
            found[name] = None if given is None else convert(given)
        return found

    return converted


_bet = _object(fields_of("SettledBetViewModelV3") | {"betId": "bet id"})
