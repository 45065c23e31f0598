"""The gaps of former owners, which the page shows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, Settings
from bridge.errors import TopologyError
from bridge.records.gap import Cause, FeedGap
from bridge.service import gap_history
from bridge.service.gap_history import GapHistory
from bridge.service.pipeline import GAPS
from tests.unit.stored.log import Log

CODEC = Codec(load("feed-gap"), 9)


def gap(number: int, feed: str = "f") -> FeedGap:
    return FeedGap(feed, number + 0.1, number + 0.7, Cause.TOO_OLD, number + 1.0)


def history_of(log: Log, monkeypatch: pytest.MonkeyPatch, values: list[bytes]) -> GapHistory:
    log.written, log.stable = [len(values)], [len(values)]
    log.content = lambda offset: values[offset]
    log.installed(monkeypatch)
    return GapHistory(Settings(feed=FeedSettings(name="f")))


async def test_gaps_of_former_owners_are_shown_before_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [CODEC.encode(gap(n, "f" if n != 3 else "another").to_avro()) for n in range(5)]
    history = history_of(Log(), monkeypatch, [*values, b"no gap"])
    assert history.and_own((gap(9),)) == (gap(9),)
    await history.read(CODEC, 2.0)
    assert history.and_own((gap(4), gap(5))) == (gap(2), gap(4), gap(5))
    many = tuple(gap(n) for n in range(10, 10 + GAPS))
    assert history.and_own(many) == many


@pytest.mark.parametrize("error", [TopologyError("no right"), RuntimeError("no right")])
async def test_what_cannot_be_read_costs_the_page_those_gaps_only(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> list[FeedGap]:
        raise error

    history = GapHistory(Settings(feed=FeedSettings(name="f")))
    monkeypatch.setattr(gap_history, "gaps_since", fail)
    with capture_logs() as logged:
        await history.read(CODEC, 0.0)
    assert history.and_own((gap(1),)) == (gap(1),)
    assert [line["reason"] for line in logged] == ["no right"]


async def test_a_term_that_ends_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, over = threading.Event(), threading.Event()

    def wait(_settings: Settings, _codec: Codec, _since: float, give_up: Callable[[], bool]) -> list[FeedGap]:
        asked.set()
        while not give_up():
            over.wait(0.01)
        over.set()
        return []

    monkeypatch.setattr(gap_history, "gaps_since", wait)
    reading = asyncio.create_task(GapHistory(Settings(feed=FeedSettings(name="f"))).read(CODEC, 0.0))
    assert await asyncio.to_thread(asked.wait, 30)
    reading.cancel()
    assert await asyncio.to_thread(over.wait, 30)
