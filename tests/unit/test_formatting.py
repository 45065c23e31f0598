"""Times, durations and errors as people read them."""

from __future__ import annotations

import socket
import ssl
import threading
from math import inf

import pytest

from bridge.formatting import (
    format_duration,
    format_utc,
    is_time,
    parse_instant,
    parse_unix,
    parse_whole,
    plain_error,
    retry_after,
)

AT, DATE = 1_790_000_000.0, "Mon, 21 Sep 2026 14:13:20 GMT"
"""The same moment."""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_790_000_000, "2026-09-21T14:13:20Z"),
        (1_790_000_000.25, "2026-09-21T14:13:20.250000Z"),
        (-62_135_596_800, "0001-01-01T00:00:00Z"),
        (-62_135_596_801, "-62135596801.000000s"),
        (253_402_300_799.999999, "9999-12-31T23:59:59.999999Z"),
        (253_402_300_801, "+253402300801.000000s"),
    ],
)
def test_a_moment_is_written_in_utc(seconds: float, text: str) -> None:
    assert format_utc(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (7.5, "7.5s"),
        (59.4, "59.4s"),
        (59.6, "1m"),
        (60, "1m"),
        (250, "4m 10s"),
        (3600, "1h"),
        (3605, "1h"),
        (7500, "2h 5m"),
        (7559.7, "2h 6m"),
        (90_000, "1d 1h"),
        (86_400 + 300, "1d"),
        (345_600, "4d"),
        (-3600, "-1h"),
        (-0.25, "-0.25s"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_a_time_is_one_that_a_calendar_has_in_some_zone() -> None:
    first, last = -62_135_596_800, 253_402_300_799
    day = 86_400
    assert [is_time(t) for t in (first, 0, last, first - 14 * 3600, last + 14 * 3600)] == [True] * 5
    beyond = (first - day - 1, last + day + 2, 1e308, float("inf"), -float("inf"), float("nan"))
    assert [is_time(t) for t in beyond] == [False] * 6


def test_numbers_in_headers_are_parsed_strictly() -> None:
    assert [parse_unix(text) for text in ("0", "-1.5", "1790000000.123456")] == [
        0,
        -1.5,
        1_790_000_000.123456,
    ]
    assert [parse_whole(text) for text in ("0", "-7", str(2**63 - 1))] == [0, -7, 2**63 - 1]
    for text in ("", "nan", "1e3", "1_0", " 1", "+1", "1.", str(2**63), "9" * 5000):
        with pytest.raises(ValueError, match=r"^'.{0,201}' is not a "):
            parse_whole(text)
    for text in ("", "nan", "1e3", "1_0", " 1", "+1", "1.", "9" * 20):
        with pytest.raises(ValueError, match="is not a time"):
            parse_unix(text)


def test_a_moment_has_its_zone() -> None:
    """Whatever is no ISO 8601 time, or leaves its zone open, is none."""
    assert (
        parse_instant("2026-01-31T12:00:00Z") == parse_instant("2026-01-31T13:00:00+01:00") == 1_769_860_800
    )
    assert [parse_instant(text) for text in ("2026-01-31T12:00:00", "2h", "", "31.1.2026")] == [None] * 4


def test_a_port_without_tls_is_named_as_such() -> None:
    def answer() -> None:
        with server.accept()[0] as connection:
            connection.recv(1)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        with socket.create_connection(server.getsockname()) as plain, pytest.raises(OSError) as caught:  # noqa: PT011
            ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
        thread.join()
    assert plain_error(caught.value).startswith("this port does not speak TLS: is its address http://")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(111, "Connect call failed ('127.0.0.1', 80)"), "Connect call failed 127.0.0.1:80"),
        (OSError(111, "Connect call failed ('::1', 80, 0, 0)"), "Connect call failed ::1:80"),
        (OSError("[SSL: BAD] certificate verify failed (_ssl.c:1006)"), "certificate verify failed"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_in_words_has_no_code_of_python(error: Exception, words: str) -> None:
    assert plain_error(error) == words


@pytest.mark.parametrize(
    ("header", "date", "seconds"),
    [
        ("120", None, 120),
        (" 0 ", DATE, 0),
        ("1.5", None, 1.5),
        ("9" * 400, None, inf),
        ("Mon, 21 Sep 2026 14:14:20 GMT", DATE, 60),
        ("Mon, 21 Sep 2026 14:13:00 GMT", DATE, 0),
        # The provider's clock is an hour behind ours, which does not matter.
        ("Mon, 21 Sep 2026 13:13:50 GMT", "Mon, 21 Sep 2026 13:13:20 GMT", 30),
        ("Mon, 21 Sep 2026 14:14:20 GMT", None, 60),
        ("Mon, 21 Sep 2026 14:14:20 GMT", "yesterday", 60),
        ("Mon, 21 Sep 2026 14:14:20", DATE, 60),
        (None, DATE, None),
        ("", DATE, None),
        ("soon", DATE, None),
        ("-5", DATE, None),
        ("٣", DATE, None),
        ("Mon, 99 Sep 2026 14:14:20 GMT", DATE, None),
    ],
)
def test_a_retry_after_is_read(header: str | None, date: str | None, seconds: float | None) -> None:
    assert retry_after(header, date, AT) == seconds
