"""The committer on the event loop: one job at a time, reports of blocked ones, and its close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest
from confluent_kafka import KafkaError

from bridge.clock import Instant
from bridge.errors import NotOwner
from bridge.kafka.batch import Batch, Reached, Record
from bridge.kafka.errors import TooMuch
from bridge.kafka.outage import Outage
from bridge.kafka.pace import SIGN_SECONDS, KafkaPace
from bridge.ownership.batch_writer import Complete
from bridge.service.committer import TROUBLE_SECONDS, Committer
from tests.virtual.loop import given

T = TypeVar("T")


def checkpoint(_: Reached) -> Record:
    return Record("checkpoints", b"f", b"", 0)


class Slow:
    """A writer whose jobs take `takes` seconds, and end in `ends_in` where that is set."""

    def __init__(self, trouble: Callable[[str], None]) -> None:
        self.trouble = trouble
        self.pace = KafkaPace()
        self.takes = 1.0
        self.ends_in: Exception | None = None
        self.committed: list[Batch] = []
        self.abandoned: bool | None = None

    def run(self, job: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def end() -> None:
            if self.ends_in is not None:
                future.set_exception(self.ends_in)
            else:
                future.set_result(job())

        asyncio.get_running_loop().call_later(self.takes, end)
        return future

    def open(self) -> bytes | None:
        return b"opened"

    def commit(
        self, batch: Batch, complete: Complete, *, check_generation: bool = False, divisible: bool = False
    ) -> None:
        self.committed.append(batch)

    def close(self, *, abandon: bool = False) -> None:
        self.abandoned = abandon


class Bench:
    """A committer, its writer, and the reports of blocked jobs."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wake = asyncio.Event()
        self.reports: list[str] = []
        self.outage = Outage()
        self.committer = Committer(self._make, self._now, self.wake, self.reports.append, self.outage)

    def _make(self, trouble: Callable[[str], None]) -> Any:
        self.writer = Slow(trouble)
        return self.writer

    def _now(self) -> Instant:
        return Instant(0.0, self.loop.time())


with_bench = given(Bench)


@pytest.mark.parametrize("way", ["collect", "finish"])
@with_bench
async def test_no_commit_follows_one_that_failed(bench: Bench, way: str) -> None:
    committer = bench.committer
    bench.writer.ends_in = NotOwner("lost")
    committer.start(Batch(), checkpoint)
    await bench.wake.wait()
    for _ in range(2):
        with pytest.raises(NotOwner):
            await committer.finish() if way == "finish" else committer.collect()
    with pytest.raises(AssertionError):
        committer.start(Batch(), checkpoint)
    assert not committer.busy
    assert committer.durations.count == 0


@with_bench
async def test_a_job_that_takes_long_is_reported_with_its_error(bench: Bench) -> None:
    committer = bench.committer
    bench.writer.takes = TROUBLE_SECONDS + 10
    committer.start(Batch(), checkpoint)
    bench.outage.on_error(KafkaError(KafkaError._RESOLVE, "no such host"))
    await asyncio.sleep(TROUBLE_SECONDS)
    assert not committer.report_if_blocked()
    await asyncio.sleep(0.01)
    assert committer.report_if_blocked()
    bench.writer.trouble("no broker")
    await asyncio.sleep(0.01)
    assert bench.wake.is_set()
    assert committer.report_if_blocked()
    silent, answered = bench.reports
    assert "the host name is unknown" in silent
    assert answered == "no broker"  # a reason of its own has been explained, or is none of Kafka's
    await committer.finish()
    assert len(bench.reports) > 5
    assert not committer.report_if_blocked()
    committer.start(Batch(), checkpoint)
    await asyncio.sleep(TROUBLE_SECONDS + 1)
    assert committer.report_if_blocked()
    assert bench.reports[-1] != "no broker"  # that is over


@with_bench
async def test_a_commit_outlives_a_cancelled_wait(bench: Bench) -> None:
    committer = bench.committer
    bench.writer.takes = 100.0
    committer.start(Batch(), checkpoint)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await committer.finish()
    assert committer.busy
    await committer.finish()
    assert (bench.loop.time(), committer.durations.count) == (100.0, 1)
    committer.start(Batch(), checkpoint)
    committer.close(abandon=False)
    assert bench.writer.abandoned is True


@pytest.mark.parametrize("abandon", [False, True])
@with_bench
async def test_an_idle_writer_is_abandoned_only_on_request(bench: Bench, abandon: bool) -> None:
    bench.committer.close(abandon=abandon)
    assert bench.writer.abandoned is abandon


@with_bench
async def test_a_slow_commit_is_no_trouble(bench: Bench) -> None:
    committer, pace = bench.committer, bench.writer.pace
    bench.writer.takes = 100.0
    pace.took(140_000, 2.0, bench.loop.time())
    committer.start(Batch(), checkpoint)
    await asyncio.sleep(TROUBLE_SECONDS + SIGN_SECONDS)
    assert not committer.report_if_blocked()
    pace.on_throttle(1, 20.0, bench.loop.time())
    await asyncio.sleep(20.0)
    assert not committer.report_if_blocked()
    await asyncio.sleep(SIGN_SECONDS)
    assert committer.report_if_blocked()
    [reason] = bench.reports  # a test before this may have left a cause
    assert reason.startswith("it has not answered yet")


@with_bench
async def test_what_was_too_much_is_told_once_and_goes_on_as_one_job(bench: Bench) -> None:
    committer = bench.committer
    bench.writer.takes, bench.writer.ends_in = TROUBLE_SECONDS + 1, TooMuch("on purpose", 0, 10)
    committer.start(Batch(), checkpoint)
    await asyncio.sleep(TROUBLE_SECONDS + 1)
    with pytest.raises(TooMuch):
        committer.collect()
    committer.start(Batch(), checkpoint)
    assert committer.report_if_blocked()
    bench.writer.ends_in = None
    await committer.finish()
    assert committer.took == 2 * (TROUBLE_SECONDS + 1)
