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


class _Nullable:
    """A field that may be null or missing."""

    def __init__(self, convert: Convert) -> None:
        self.convert = convert


class _Object:
    """An object with these fields; others are ignored."""

    def __init__(self, fields: Mapping[str, Convert | _Nullable]) -> None:
        self._fields = [
            (name, of.convert, True) if isinstance(of, _Nullable) else (name, of, False)
            for name, of in fields.items()
        ]

    def __call__(self, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise WrongError
        found = {}
        for name, convert, nullable in self._fields:
            given = value.get(name)
            if given is not None:
                found[name] = convert(given)
            elif nullable:
                found[name] = None
            else:
                raise WrongError
        return found


def _list(convert: Convert) -> Convert:
    def converted(value: Any) -> list[Any]:
        if type(value) is not list:
            raise WrongError
        return [convert(item) for item in value]

    return converted


def _text(value: Any) -> Any:
    if type(value) is not str:
        raise WrongError
    return value


def _texts(value: Any) -> Any:
    if type(value) is not dict or not all(type(text) is str for text in value.values()):
        raise WrongError
    return value


def _bet_id(value: Any) -> Any:
    if not 1 <= len(_text(value)) <= 1000:
        raise WrongError
    return value


def _boolean(value: Any) -> Any:
    if type(value) is not bool:
        raise WrongError
    return value


def _int64(value: Any) -> Any:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise WrongError
    return value


def _int32(value: Any) -> Any:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise WrongError
    return value


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
    "map": _texts,
    "boolean": _boolean,
    "int32": _int32,
    "int64": _int64,
    "double": _double,
    "date-time": _date_time,
    **{name: _enum(symbols) for name, symbols in ENUMS.items()},
}


def _of(type_: str) -> Convert | _Nullable:
    if type_.endswith("?"):
        return _Nullable(_plain(type_[:-1]))
    return _plain(type_)


def _plain(type_: str) -> Convert:
    if type_.endswith("[]"):
        return _list(_plain(type_[:-2]))
    return _SCALARS.get(type_) or _Object({name: _of(of) for name, of in fields_of(type_).items()})


_bet = _Object(
    {name: _of(of) for name, of in fields_of("SettledBetViewModelV3").items()} | {"betId": _bet_id}
)
