"""Formats times, durations, counts and errors; parses times."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400
_YEAR_10000 = 253_402_300_800
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp() - _DAY
_LATEST = datetime(9999, 12, 31, tzinfo=UTC).timestamp() + 2 * _DAY


def is_time(seconds: float) -> bool:
    """Return whether Unix seconds are in the years 1 to 9999, in any time zone."""
    return _EARLIEST <= seconds <= _LATEST


def format_utc(seconds: float) -> str:
    """Format Unix seconds as an ISO 8601 time in UTC, without a fraction if it is zero."""
    try:
        return (EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    except OverflowError:  # before year 1 or after year 9999
        # A double cannot tell the last microseconds of 9999 from what follows them.
        return "9999-12-31T23:59:59.999999Z" if seconds == _YEAR_10000 else f"{seconds:+.6f}s"


@lru_cache(maxsize=16)
def _day(number: int) -> str:
    """Return the date of a day since 1970-01-01. Raises OverflowError before year 1 and after 9999."""
    return (EPOCH + timedelta(days=number)).date().isoformat()


def format_micros(micros: int) -> str:
    """Format microseconds since 1970 as `format_utc` does seconds, exactly."""
    seconds, fraction = divmod(micros, 1_000_000)
    day, second = divmod(seconds, 86_400)
    try:
        date = _day(day)
    except OverflowError:
        return format_utc(micros / 1_000_000)
    text = f"{date}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{text}.{fraction:06}Z" if fraction else f"{text}Z"


def parse_instant(text: str) -> float | None:
    """Parse an ISO 8601 time with its zone into Unix seconds; None for anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if found.tzinfo is None else found.timestamp()


def parse_http_date(header: str) -> float | None:
    """Parse an HTTP date into Unix seconds; None for anything else."""
    try:
        date = parsedate_to_datetime(header)
        # By HTTP, a date without a zone is in UTC.
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def retry_after(header: str | None, date: str | None, wall: float) -> float | None:
    """Return the delay that a `Retry-After` asks for, in seconds after the answer; None if it cannot be read.

    An HTTP date is compared with the answer's `Date`, because both come from the provider's clock; without a
    `Date`, with ours (`wall`, Unix seconds).
    """
    if header is None:
        return None
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", header.strip(), re.ASCII):
        return float(header)
    until = parse_http_date(header)
    if until is None:
        return None
    written = parse_http_date(date) if date else None
    return max(0.0, until - (wall if written is None else written))


def parse_whole(text: str) -> int:
    """Parse a whole number of 64 bits in ASCII digits. Raises ValueError for anything else."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -(2**63) <= (number := int(text)) < 2**63:
        raise ValueError(f"{shortened(text)!r} is not a whole number of 64 bits")
    return number


def parse_unix(text: str) -> float:
    """Parse Unix seconds, with or without a fraction. Raises ValueError for anything that is no time."""
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) or not is_time(seconds := float(text)):
        raise ValueError(f"{shortened(text)!r} is not a time in Unix seconds")
    return seconds


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: `1 broker`, `2 brokers`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, most: int = 200) -> str:
    """Cut a foreign text to a length that fits a line for an operator."""
    return text if len(text) <= most else f"{text[:most]}…"


def plain_error(error: Exception) -> str:
    """Return an error of a connection or a file in words, without the codes that Python adds.

    `[Errno 111] Connect call failed ('127.0.0.1', 80)` is `Connect call failed 127.0.0.1:80`.
    """
    if re.search(r"\[SSL: (WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG)\]", str(error)):
        return "this port does not speak TLS: is its address http://… or ws://…?"
    text = re.sub(r"\[(Errno|SSL|X509)\b[^\]]*\] ?| \(_ssl\.c:\d+\)", "", str(error))
    return re.sub(r"\('([^']+)', (\d+)[\d, ]*\)", r"\1:\2", text) or type(error).__name__


def camel_case(name: str) -> str:
    """Return the name of a field as the Avro schemas spell it: `dead_lettered` is `deadLettered`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def format_skew(seconds: float) -> str:
    """Say how far the provider's clock is ahead of ours, at least: `is at least 1.5s behind ours`."""
    if not seconds:
        return "agrees with ours"
    return f"is at least {format_duration(abs(seconds))} {'ahead of' if seconds > 0 else 'behind'} ours"


def format_duration(seconds: float) -> str:
    """Format a duration in its two largest units: `3d 4h`, `2h 5m`, `4m 10s` or `7.5s`."""
    if seconds < 0:
        return f"-{format_duration(-seconds)}"
    left = round(seconds)
    if left < 60:
        return f"{seconds:.3g}s"
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return " ".join(part for part in parts[:2] if part)
