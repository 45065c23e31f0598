"""The clock of the virtual loop moves only while there is nothing to do."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.virtual.loop import run


def test_a_month_takes_no_time() -> None:
    async def story() -> list[float]:
        loop = asyncio.get_running_loop()
        ended: list[float] = []

        async def wait(seconds: float) -> None:
            await asyncio.sleep(seconds)
            ended.append(loop.time())

        await asyncio.gather(wait(2_592_000.0), wait(0.25), wait(86_400.0))
        return ended

    began = time.monotonic()
    assert run(story()) == [0.25, 86_400.0, 2_592_000.0]
    assert time.monotonic() - began < 5


def test_a_call_from_outside_is_no_deadlock() -> None:
    async def story() -> float:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        loop.call_soon_threadsafe(done.set)
        await done.wait()
        return loop.time()

    assert run(story()) == 0.0


def test_what_would_never_end_fails() -> None:
    async def again() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="deadlock"):
        run(asyncio.Event().wait())
    with pytest.raises(RuntimeError, match="livelock"):
        run(again())
