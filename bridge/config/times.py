"""Ages and times, as settings and options give them."""

from __future__ import annotations

import re
from typing import Final

from bridge.config.fields import LONGEST_AGE_DAYS
from bridge.errors import SettingsError
from bridge.formatting import parse_instant, shortened

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def age_seconds(text: str) -> int:
    """Return an age (`90s`, `2h`, `1d 4h` as `format_duration` does) in seconds. Raises SettingsError."""
    if not is_age(text):
        raise SettingsError(f"{shortened(text)!r} is not an age such as 90s, 30m, 2h, 3d or 1h30m")
    longest = LONGEST_AGE_DAYS * 86_400
    seconds = 0
    for digits, unit in re.findall(r"(\d+)([smhd])", text):
        # Python refuses to parse thousands of digits.
        seconds += longest + 1 if len(digits) > 12 else int(digits) * _UNITS[unit]
    if seconds > longest:
        raise SettingsError(f"{shortened(text)!r} is too long: an age is at most {LONGEST_AGE_DAYS}d")
    return seconds


def is_age(text: str) -> bool:
    """Return whether this is an age, though perhaps one that is too long."""
    return re.fullmatch(r"\d+[smhd]( ?\d+[smhd])*", text, re.ASCII) is not None


def parse_time(text: str, now: float) -> float:
    """Return the Unix time of an age before `now`, or of a time with its zone. Raises SettingsError."""
    if is_age(text):
        return now - age_seconds(text)
    if (found := parse_instant(text)) is None:
        raise SettingsError(
            f"{shortened(text)!r} is not a time: give one with its zone such as 2026-01-31T12:00:00Z, "
            "or an age such as 2h"
        )
    return found


def parse_start(text: str, now: float) -> int | None:
    """Return where a first start begins, in Unix seconds; None for `0`, an initial connection.

    `text` is `0`, or a time as for `parse_time`. Raises ValueError.
    """
    try:
        return None if text == "0" else int(parse_time(text, now))
    except SettingsError as error:
        raise ValueError(f"must be 0, an age or a time: {error}") from None
