"""Reads date-times of the feed's JSON as Avro has them, and sorts maps.

A bet has six date-times, and transcoder and pydantic call a function of this module for each, so it is
compiled if there is a C compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

Wrong = Callable[[], Exception]
"""Returns the exception for any other value."""

COMPILED: Final = not __file__.endswith(".py")

_SHORTEST: Final = 19
"""Characters of a date-time without fraction and zone."""
_INVALID: Final[i64] = -(2**62)
"""Outside the range of times and offsets."""


class DateTimes:
    """Parses date-times such as `2026-01-31T12:00:00.1234567Z`."""

    def __init__(self, wrong: Wrong) -> None:
        self._wrong: Final = wrong

    def parse(self, value: object) -> int:
        """Return microseconds since 1970-01-01T00:00:00 UTC.

        A missing zone is UTC; digits beyond the sixth are cut. Raises `wrong` for anything but a string of
        this form.
        """
        if isinstance(value, str) and value.isascii() and len(value) >= _SHORTEST:
            text = value.encode("utf-8")
            end = _end_of_fraction(text)
            seconds, ahead = _seconds(text), _offset(text, end)
            if seconds != _INVALID and ahead != _INVALID:
                return (seconds - ahead) * 1_000_000 + _micros(text, end)
        raise self._wrong()


def in_order(entries: dict[str, str]) -> dict[str, str]:
    """Sort a map by key: equal maps must become equal bytes, which the deduplicator compares."""
    return dict(sorted(entries.items())) if len(entries) > 1 else entries


def _digits(text: bytes, start: i64, count: i64) -> i64:
    """Return the number in `count` digits, -1 if one of them is no digit."""
    number: i64 = 0
    at: i64 = start
    while at < start + count:
        digit: i64 = text[at] - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
        at += 1
    return number


def _seconds(text: bytes) -> i64:
    """Return the Unix seconds of the first 19 characters, `2026-01-31T12:00:00`, read as UTC."""
    year, month, day = _digits(text, 0, 4), _digits(text, 5, 2), _digits(text, 8, 2)
    hour, minute, second = _digits(text, 11, 2), _digits(text, 14, 2), _digits(text, 17, 2)
    if text[4] != 45 or text[7] != 45 or text[10] != 84 or text[13] != 58 or text[16] != 58:
        return _INVALID
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _days_in(month, year):
        return _INVALID
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return _INVALID
    return _days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second


def _days_in(month: i64, year: i64) -> i64:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


def _days_since_1970(year: i64, month: i64, day: i64) -> i64:
    """Count the days in the proleptic Gregorian calendar. Years begin in March, so a leap day is the last."""
    if month > 2:
        month -= 3
    else:
        month += 9
        year -= 1
    return year * 365 + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469


def _end_of_fraction(text: bytes) -> i64:
    """Return the place where the zone begins, or would begin."""
    size: i64 = len(text)
    if size == 19 or text[19] != 46:
        return 19
    end: i64 = 20
    while end < size and 48 <= text[end] <= 57:
        end += 1
    return end if 20 < end <= 29 else _INVALID


def _micros(text: bytes, end: i64) -> i64:
    micros: i64 = 0
    unit: i64 = 100_000
    at: i64 = 20
    while at < end and unit > 0:
        digit: i64 = text[at] - 48
        micros += digit * unit
        unit //= 10
        at += 1
    return micros


def _offset(text: bytes, at: i64) -> i64:
    """Return the seconds by which the zone at this place is ahead of UTC."""
    if at == _INVALID:
        return _INVALID
    rest: i64 = len(text) - at
    if rest == 0 or (rest == 1 and text[at] == 90):
        return 0
    if rest != 6 or text[at + 3] != 58:
        return _INVALID
    hours, minutes = _digits(text, at + 1, 2), _digits(text, at + 4, 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return _INVALID
    offset = hours * 3_600 + minutes * 60
    if text[at] == 43:
        return offset
    return -offset if text[at] == 45 else _INVALID
