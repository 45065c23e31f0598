"""Which time is meant by two words on the command line, and for how long a replay waits."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import pytest

from bridge.errors import SettingsError
from bridge.inspection import replay
from bridge.inspection.replay import Replay, Window, parse_window
from bridge.inspection.selection import Selection
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import Outage
from bridge.reader import source
from tests.unit.inspection.test_readers import NOWHERE
from tests.unit.stored.log import Log

NOW = 1_790_000_000.0
NOW_MS = 1_790_000_000_000


@pytest.mark.parametrize(
    ("begin", "end", "window"),
    [
        (None, None, Window(0, None)),
        ("2h", None, Window(NOW_MS - 7_200_000, None)),
        ("1d", "90s", Window(NOW_MS - 86_400_000, NOW_MS - 90_000)),
        (
            "2026-09-21T14:00:00Z",
            "2026-09-21T16:00:00.123+02:00",
            Window(1_789_999_200_000, 1_789_999_200_123),
        ),
        (None, "2026-09-21T14:00:00Z", Window(0, 1_789_999_200_000)),
        ("1066-10-14T09:00:00Z", None, Window(0, None)),
        ("30m", "2030-01-01T00:00:00Z", Window(NOW_MS - 1_800_000, 1_893_456_000_000)),
    ],
)
def test_a_window_is_between_times_or_ages(begin: str | None, end: str | None, window: Window) -> None:
    assert parse_window(begin, end, NOW) == window


@pytest.mark.parametrize("text", ["", "yesterday", "2026-09-21T14:00:00", "+30m", "2w", "1790000000"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    for begin, end in ((text, None), (None, text)):
        with pytest.raises(
            SettingsError, match=r"is not a time: .* 2026-01-31T12:00:00Z, or an age such as 2h"
        ):
            parse_window(begin, end, NOW)


@pytest.mark.parametrize(
    ("begin", "end"),
    [("1h", "2h"), ("1h", "1h"), ("2026-09-21T14:13:20Z", None), (None, "1066-10-14T09:00:00Z")],
)
def test_a_window_without_length_is_refused(begin: str | None, end: str | None) -> None:
    with pytest.raises(SettingsError, match=r"--from .* is not before --to "):
        parse_window(begin, end, NOW)


def test_what_was_read_is_saved_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    Log(written=[40, 40], stable=[40, 40], content=b"foreign").installed(monkeypatch)
    monkeypatch.setattr(admin, "require_topic", lambda *_: clients.admin(NOWHERE.kafka))
    monkeypatch.setattr(replay, "time", SimpleNamespace(monotonic=count(1).__next__))
    saved: list[int] = []
    with Replay(NOWHERE, Window(0, None), Selection()) as reading:
        reading.save_seconds = 10
        reading.save = lambda: saved.append(sum(reading.offsets.values()))
        assert list(reading) == []
        assert reading._foreign.count == 80
    assert 3 <= len(saved) < 40
    assert saved == sorted(saved)


def test_nobody_gives_up_what_a_broker_has_said_to_hold_back(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log().installed(monkeypatch)
    log.waits = [(2,) * 10] * 2
    monkeypatch.setattr(admin, "require_topic", lambda *_: clients.admin(NOWHERE.kafka))
    monkeypatch.setattr(source, "IN_VAIN_SECONDS", 0)
    monkeypatch.setattr(Outage, "throttled", True)
    with Replay(NOWHERE, Window(0, None), Selection()) as reading:
        assert list(reading) == []
        assert sum(reading.offsets.values()) == sum(log.written)
    monkeypatch.setattr(Outage, "throttled", False)
    with (
        Replay(NOWHERE, Window(0, None), Selection()) as reading,
        pytest.raises(KafkaUnavailable, match="could not be read to its end"),
    ):
        list(reading)
