"""The gaps of former owners, which the page shows."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, Settings
from bridge.errors import TopologyError
from bridge.kafka.errors import KafkaUnavailable
from bridge.service import gap_history
from bridge.service.gap_history import MOST, GapHistory
from bridge.state.gap import Cause, Gap
from tests.unit.state.log import Log

CODEC = Codec(load("feed-gap"), 9)


def gap(number: int, feed: str = "f") -> Gap:
    return Gap(feed, number + 0.1, number + 0.7, Cause.TOO_OLD, number + 1.0)


def history_of(log: Log, monkeypatch: pytest.MonkeyPatch, values: list[bytes]) -> GapHistory:
    log.written, log.stable = [len(values)], [len(values)]
    log.content = lambda offset: values[offset]
    log.installed(monkeypatch)
    return GapHistory(Settings(feed=FeedSettings(name="f")))


async def test_gaps_of_former_owners_are_shown_before_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this feed, of the last days, and each once: what we have declared may have been read too."""
    values = [CODEC.encode(gap(n, "f" if n != 3 else "another").to_avro()) for n in range(5)]
    history = history_of(Log(), monkeypatch, [*values, b"no gap"])
    assert history.and_own((gap(9),)) == (gap(9),)
    await history.read(CODEC, 2.0)
    assert history.and_own((gap(4), gap(5))) == (gap(2), gap(4), gap(5))
    many = tuple(gap(n) for n in range(10, 10 + MOST))
    assert history.and_own(many) == many


@pytest.mark.parametrize(
    ("error", "tries"), [(KafkaUnavailable("no broker"), 3), (TopologyError("no right"), 1)]
)
async def test_what_cannot_be_read_costs_the_page_those_gaps_only(
    monkeypatch: pytest.MonkeyPatch, error: Exception, tries: int
) -> None:
    """It is tried again where that may help."""
    history, left = GapHistory(Settings(feed=FeedSettings(name="f"))), [error] * tries

    def read(*_: object) -> list[Gap]:
        if left:
            raise left.pop()
        return [gap(1)]

    monkeypatch.setattr(gap_history, "gaps_since", read)
    monkeypatch.setattr(gap_history, "RETRY_SECONDS", 0.001)
    with capture_logs() as logged:
        async with asyncio.timeout(30):
            await history.read(CODEC, 0.0)
    assert history.and_own(()) == ((gap(1),) if tries > 1 else ())
    assert [line.get("reason") for line in logged] == ([] if tries > 1 else ["no right"])
