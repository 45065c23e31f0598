"""The `Date` of the provider's answers: a clock that is certainly wrong ends a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from bridge.errors import ClockError
from tests.unit.snapshots.provider import AT, SPORTS, Provider, Reply, api
from tests.virtual.loop import run

HOUR = timedelta(hours=1)


def dated(*offsets: timedelta, **headers: str) -> Reply:
    """An answer by a clock that is so far from ours."""
    moments = (format_datetime(datetime.fromtimestamp(AT, UTC) + offset, usegmt=True) for offset in offsets)
    return Reply(headers=[*(("Date", moment) for moment in moments), *headers.items()])


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (dated(HOUR), "the provider's clock is 3600 s ahead of ours"),
        (dated(-HOUR), "the provider's clock is 3599 s behind ours"),
        (replace(dated(HOUR), status=401), "ahead of ours"),
        (replace(dated(HOUR), status=503), "ahead of ours"),
        (replace(dated(HOUR), body="<html>"), "ahead of ours"),
        (dated(-HOUR, Age="60"), "the provider's clock is 3539 s behind ours"),
    ],
)
def test_a_clock_that_is_wrong_ends_it(reply: Reply, said: str) -> None:
    """At the first answer of any kind, before anything is asked further."""
    provider = Provider(otherwise=reply)

    async def story() -> str:
        async with provider.client() as client:
            with pytest.raises(ClockError, match=r"BRIDGE_API__MAX_CLOCK_SKEW_SECONDS\) = 300") as caught:
                await client.ask(SPORTS)
        assert caught.value.exit_code == 9
        return str(caught.value)

    assert said in run(story())
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        dated(),
        dated(timedelta(seconds=300)),
        dated(timedelta(seconds=-301)),
        dated(HOUR, timedelta()),
        replace(dated(HOUR), after=3400.0),
        dated(-HOUR, Age="3600"),
        dated(-HOUR, Age="9" * 5000),
        Reply(headers={"Date": "tomorrow"}),
        Reply(headers={"Date": "Mon, 99 Sep 99999 99:99:99 GMT"}),
    ],
)
def test_a_clock_that_may_be_right_changes_nothing(reply: Reply) -> None:
    """None, nonsense, two that differ, a long way, and what was kept somewhere on it."""
    provider = Provider(reply)

    async def story() -> None:
        async with provider.client(api(timeout_seconds=3600)) as client:
            assert (await client.ask(SPORTS)).content == []

    run(story())


def test_how_far_a_clock_may_be_off_is_a_setting() -> None:
    """In both directions."""

    async def story() -> None:
        async with Provider(dated(HOUR), dated(-HOUR)).client(api(max_clock_skew_seconds=3601)) as client:
            for _ in range(2):
                assert (await client.ask(SPORTS)).content == []

    run(story())
