"""The `Date` of the provider's answers: a clock that is certainly wrong ends a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from bridge.errors import ClockError
from bridge.rest.answers import Answered
from tests.unit.snapshots.provider import AT, SPORTS, Provider, Reply


def dated(*offsets: int, **headers: str) -> Reply:
    """An answer by a clock that is these seconds ahead of ours."""
    moments = (format_datetime(datetime.fromtimestamp(AT + offset, UTC), usegmt=True) for offset in offsets)
    return Reply(headers=[*(("Date", moment) for moment in moments), *headers.items()])


@pytest.mark.parametrize(
    ("reply", "limit", "skew"),
    [
        (dated(3600), 300, "1h ahead of ours"),
        (dated(-3600), 300, "59m 59s behind ours"),
        (replace(dated(3600), status=401), 300, "ahead of ours"),
        (replace(dated(3600), status=503), 300, "ahead of ours"),
        (replace(dated(3600), body="<html>"), 300, "ahead of ours"),
        (dated(-3600, Age="60"), 300, "58m 59s behind ours"),
        # What may be right changes nothing.
        (dated(), 300, ""),
        (dated(300), 300, ""),
        (dated(-301), 300, ""),
        (dated(3600, 0), 300, ""),
        (replace(dated(3600), after=3400.0), 300, ""),
        (dated(-3600, Age="3600"), 300, ""),
        (dated(-3600, Age="9" * 5000), 300, ""),
        (Reply(headers={"Date": "tomorrow"}), 300, ""),
        (Reply(headers={"Date": "Mon, 99 Sep 99999 99:99:99 GMT"}), 300, ""),
        (dated(3600), 3601, ""),
        (dated(-3600), 3601, ""),
    ],
)
def test_a_clock_that_is_certainly_wrong_is_an_error(reply: Reply, limit: int, skew: str) -> None:
    provider = Provider(reply)
    [answer] = provider.ask(SPORTS, timeout_seconds=3600, max_clock_skew_seconds=limit)
    assert len(provider.requests) == 1
    if not skew:
        assert answer == Answered([])
        return
    assert isinstance(answer, ClockError)
    assert answer.exit_code == 9
    assert f"BRIDGE_API__MAX_CLOCK_SKEW_SECONDS) = {limit}" in str(answer)
    assert "the provider's clock is " in str(answer)
    assert skew in str(answer)
