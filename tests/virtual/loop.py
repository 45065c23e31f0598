"""An event loop on which waiting takes no time: the clock jumps to the next timer.

The loop fails instead of hanging: with nothing to run and no timer, nothing can ever happen; with tasks that
are busy for ever, no time passes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar

T = TypeVar("T")


MOST_TURNS = 100_000
"""Of the loop at one moment."""


class _Jump(selectors.DefaultSelector):
    """Advances the clock instead of sleeping; no socket is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0
        """Since the clock last moved."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return nothing. Raises RuntimeError if nothing ever will be ready, or if there is no end of it."""
        self._turns += 1
        if self._turns > MOST_TURNS:
            self._turns = 0  # what is cancelled now may still end
            raise RuntimeError("livelock: the tasks are busy, and no time passes")
        if timeout is None:
            raise RuntimeError("deadlock: every task waits, and no timer is set")
        if timeout:
            self.now += timeout
            self._turns = 0
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0. Time passes only while every task waits for a timer. There is one thread.

    Good for three months: asyncio counts in nanoseconds, which a float of more seconds cannot hold.
    """

    call_soon_threadsafe = asyncio.SelectorEventLoop.call_soon

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._jump.now


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)


def as_test(
    story: Callable[..., Awaitable[None]], play: Callable[[Callable[..., Any]], None], supplied: int
) -> Callable[..., None]:
    """Return a test that plays a story. `play` supplies the first arguments, pytest the others."""

    @wraps(story)
    def test(**arguments: Any) -> None:
        play(partial(story, **arguments))

    whole = signature(story)
    parameters = list(whole.parameters.values())[supplied:]
    test.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]
    return test


def given(make: Callable[[], T]) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turn a story about a thing into a test, which makes the thing, and plays the story in virtual time."""

    async def play(story: Callable[[T], Awaitable[None]]) -> None:
        await story(make())

    return lambda story: as_test(story, lambda whole: run(play(whole)), supplied=1)


def in_virtual_time(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Turn a coroutine function into a test in virtual time."""
    return as_test(story, lambda play: run(play()), supplied=0)
