"""The clock of the virtual loop moves only while there is nothing to do."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.virtual.loop import run


def test_a_month_takes_no_time() -> None:
    async def story() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        ended: list[tuple[str, float]] = []

        async def wait(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            ended.append((name, loop.time()))

        await asyncio.gather(wait("month", 2_592_000.0), wait("moment", 0.25), wait("day", 86_400.0))
        return ended

    began = time.monotonic()
    assert run(story()) == [("moment", 0.25), ("day", 86_400.0), ("month", 2_592_000.0)]
    assert time.monotonic() - began < 5


def test_a_call_from_outside_is_no_deadlock() -> None:
    async def story() -> float:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        loop.call_soon_threadsafe(done.set)
        await done.wait()
        return loop.time()

    assert run(story()) == 0.0


def test_a_deadlock_fails_instead_of_hanging() -> None:
    async def story() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="deadlock"):
        run(story())


def test_a_livelock_fails() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        await asyncio.sleep(1.0)

    with pytest.raises(RuntimeError, match="livelock"):
        run(story())
