"""What the limits leave as of a moment, by a committed ledger."""

from __future__ import annotations

import pytest

from bridge.config import FeedSettings, Settings
from bridge.errors import SettingsError
from bridge.feed.rate_limits import Attempt
from bridge.inspection.limits import (
    LimitForecast,
    forecast_as_json,
    forecast_as_lines,
    parse_moment,
)
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters

NOW = 1_790_000_000.0
SETTINGS = Settings(feed=FeedSettings.model_construct(connect_timeout_seconds=10, max_clock_skew_seconds=0))
LEDGER = (
    Attempt(NOW - 400, 0, True, NOW - 399),
    Attempt(NOW - 200, 1_200, False, NOW - 199, True),
    Attempt(NOW - 100, 1_800, False),
)


def looked(at: float, recovery: int, ledger: tuple[Attempt, ...] = LEDGER) -> LimitForecast:
    checkpoint = Checkpoint("f", int(NOW) - 30, State.LIVE, ledger, Counters(), NOW, "me")
    return LimitForecast(SETTINGS, checkpoint, at, int(at) - recovery)


def test_what_fits_is_let_in() -> None:
    result = looked(NOW, 30)
    assert (result.reconnect.until, result.reconnect.reason) == (NOW, "")
    usage = {limit.name: limit for limit in result.usage}
    assert list(usage) == ["initial", "proper", "large", "bucket"]
    assert [(usage[name].used, usage[name].allowed) for name in ("initial", "proper", "large")] == [
        (1, 5),
        (2, 5),
        (1, 5),
    ]
    # 1203 s seen 197 s ago and 1822 s seen 78 s ago: asked, on their way, with 4 s a second drained.
    assert usage["bucket"].used == 1_203 - 4 * 119 + 1_822 - 4 * 78
    assert result.ledger == LEDGER


def test_a_longer_recovery_has_to_wait_for_the_bucket() -> None:
    result = looked(NOW, 3_000)
    assert NOW < result.reconnect.until < NOW + 900
    assert "bucket" in result.reconnect.reason
    assert looked(NOW + 1_000, 3_000).reconnect.until == NOW + 1_000


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("+30m", NOW + 1_800),
        ("+0s", NOW),
        ("2026-09-21T14:13:20Z", NOW),
        ("2026-09-21T16:13:20+02:00", NOW),
    ],
)
def test_a_moment_is_a_time_or_an_offset(text: str, moment: float) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["30m", "-30m", "tomorrow", "2026-09-21T14:13:20", "", "+", "+1w"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="such as"):
        parse_moment(text, NOW)


def test_a_revision_older_than_the_provider_keeps_is_a_gap() -> None:
    lines = forecast_as_lines(looked(NOW, 4 * 86_400)).splitlines()
    assert lines[2].startswith("gap         the provider can replay only from 2026-09-18T14:")
    assert "gap" not in forecast_as_lines(looked(NOW, 2 * 86_400))


def test_a_pause_of_the_bridge_is_none_of_the_limits() -> None:
    waiting = Checkpoint("f", int(NOW) - 30, State.BACKING_OFF, LEDGER, Counters(), NOW, "me", until=NOW + 12)
    result = LimitForecast(SETTINGS, waiting, NOW, int(NOW) - 30)
    assert forecast_as_lines(result).splitlines()[2:5] == [
        "reconnect   allowed at once",
        "pause       backing off after a failure until 2026-09-21T14:13:32Z, in 12s",
        "limits",
    ]
    shown = forecast_as_json(result)
    assert (shown["allowedNow"], shown["pausedUntil"]) == (True, "2026-09-21T14:13:32Z")
    for over in (LimitForecast(SETTINGS, waiting, NOW + 12, int(NOW)), looked(NOW, 30)):
        assert forecast_as_json(over)["pausedUntil"] is None
        assert "pause" not in forecast_as_lines(over)


def test_a_limit_that_is_spent_says_until_when() -> None:
    ledger = tuple(Attempt(NOW - 60 + n, 0, True, NOW - 60 + n) for n in range(5))
    result = looked(NOW, 30, ledger)
    # Two seconds are for the provider's counting it later than it answered.
    assert "with one too old, full until 2026-09-21T14:42:22Z\n" in forecast_as_lines(result)
    assert forecast_as_json(result)["limits"][0]["freeAt"] == "2026-09-21T14:42:22Z"
