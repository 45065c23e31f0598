"""The worker as the event loop sees it: one job after the other, trouble told, an end that is brief."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from bridge.clock import Instant
from bridge.errors import NotOwner
from bridge.kafka.batch import Batch, Record
from bridge.service.committer import TROUBLE_SECONDS, Committer
from tests.virtual.loop import as_test, run

T = TypeVar("T")
CHECKPOINT = Record("checkpoints", b"f", b"", 0)


class Slow:
    """A writer whose jobs take `takes` seconds, and end in `ends_in` where that is set."""

    def __init__(self, trouble: Callable[[str], None]) -> None:
        self.trouble = trouble
        self.takes = 1.0
        self.ends_in: Exception | None = None
        self.written: list[Batch] = []
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

    def write(self, batch: Batch) -> None:
        self.written.append(batch)

    def commit(self, batch: Batch, checkpoint: Record) -> None:
        self.committed.append(batch)

    def close(self, *, abandon: bool = False) -> None:
        self.abandoned = abandon


class Bench:
    """A committer, its writer, and what it told."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wake = asyncio.Event()
        self.told: list[str] = []
        self.committer = Committer(self._make, self._now, self.wake, self.told.append)

    def _make(self, trouble: Callable[[str], None]) -> Slow:
        self.writer = Slow(trouble)
        return self.writer

    def _now(self) -> Instant:
        return Instant(0.0, self.loop.time())


def with_bench(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Turn a story into a test, which runs it in virtual time."""

    async def whole(told: Callable[[Bench], Awaitable[None]]) -> None:
        await told(Bench())

    return as_test(story, lambda told: run(whole(told)), supplied=1)


@with_bench
async def test_a_commit_is_under_way_until_it_is_collected(bench: Bench) -> None:
    """It wakes the loop, and is counted with the time that it took."""
    committer, batch = bench.committer, Batch()
    assert committer.collect()
    committer.start(batch, CHECKPOINT)
    assert committer.busy
    assert not committer.collect()
    await bench.wake.wait()
    assert bench.loop.time() == 1.0
    assert committer.collect()
    assert not committer.busy
    assert bench.writer.committed == [batch]
    assert (committer.durations.count, committer.durations.seconds) == (1, 1.0)


@with_bench
async def test_finish_waits_for_it(bench: Bench) -> None:
    """And for nothing when there is nothing to wait for."""
    await bench.committer.finish()
    assert bench.loop.time() == 0.0
    bench.committer.start(Batch(), CHECKPOINT)
    await bench.committer.finish()
    assert (bench.loop.time(), bench.committer.durations.count) == (1.0, 1)


@pytest.mark.parametrize("way", ["collect", "finish"])
@with_bench
async def test_what_ended_a_commit_is_raised_once(bench: Bench, way: str) -> None:
    """To whoever asks for it; it is not counted as committed."""
    committer = bench.committer
    bench.writer.ends_in = NotOwner("lost")
    committer.start(Batch(), CHECKPOINT)
    await bench.wake.wait()
    with pytest.raises(NotOwner):
        await committer.finish() if way == "finish" else committer.collect()
    assert committer.collect()
    assert committer.durations.count == 0


@with_bench
async def test_a_job_gives_back_its_result(bench: Bench) -> None:
    """Or raises what it ended in."""
    assert await bench.committer.run(bench.writer.open, "opening") == b"opened"
    bench.writer.ends_in = NotOwner("lost")
    with pytest.raises(NotOwner):
        await bench.committer.run(bench.writer.open, "opening")


@with_bench
async def test_what_a_batch_has_gained_is_handed_over_at_once(bench: Bench) -> None:
    """And without being taken for a commit."""
    batch = Batch()
    bench.committer.produce(batch)
    assert not bench.committer.busy
    assert bench.writer.written == [batch]


@with_bench
async def test_a_job_that_takes_long_is_told_with_its_trouble(bench: Bench) -> None:
    """Again and again while it lasts, not before, and not after."""
    committer = bench.committer
    bench.writer.takes = TROUBLE_SECONDS + 10
    committer.start(Batch(), CHECKPOINT)
    await asyncio.sleep(TROUBLE_SECONDS)
    assert not committer.report_if_blocked()
    bench.writer.trouble("no broker")
    await asyncio.sleep(0.01)
    assert bench.wake.is_set()
    assert committer.report_if_blocked()
    assert bench.told == ["no broker"]
    await committer.finish()
    assert len(bench.told) > 5
    assert not committer.report_if_blocked()
    committer.start(Batch(), CHECKPOINT)
    await asyncio.sleep(TROUBLE_SECONDS + 1)
    assert committer.report_if_blocked()
    assert bench.told[-1] != "no broker"  # that is over


@with_bench
async def test_a_commit_goes_on_when_nobody_waits_any_more(bench: Bench) -> None:
    """Whoever is cancelled can wait for it again; a writer that is busy then is abandoned."""
    committer = bench.committer
    bench.writer.takes = 100.0
    committer.start(Batch(), CHECKPOINT)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await committer.finish()
    assert committer.busy
    await committer.finish()
    assert (bench.loop.time(), committer.durations.count) == (100.0, 1)
    committer.start(Batch(), CHECKPOINT)
    committer.close(abandon=False)
    assert bench.writer.abandoned is True


@pytest.mark.parametrize("abandon", [False, True])
@with_bench
async def test_an_idle_writer_is_closed_as_it_is_told(bench: Bench, abandon: bool) -> None:
    """Only one that is busy is always abandoned."""
    bench.committer.close(abandon=abandon)
    assert bench.writer.abandoned is abandon
