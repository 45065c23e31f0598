"""Asks about many things, some at a time, and takes the answers in the order of the things."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")
A = TypeVar("A")

AHEAD: Final = 8
"""So many times the concurrency are asked about ahead of one that is late: several may be late at once."""


async def in_order(
    things: Sequence[T], ask: Callable[[T], Coroutine[Any, Any, A]], concurrency: int
) -> AsyncGenerator[tuple[T, A], None]:
    """Yield each thing with its answer, whoever answers first. An exception cancels all that is under way.

    To be closed, as by `contextlib.aclosing`.
    """
    turns = asyncio.Semaphore(concurrency)

    async def ask_in_turn(thing: T) -> A:
        await turns.acquire()
        answer = await ask(thing)
        turns.release()  # not after a failure, which ends the run
        return answer

    todo = iter(things)
    asked: deque[tuple[T, asyncio.Task[A]]] = deque()
    try:
        for _ in things:
            for thing in islice(todo, AHEAD * concurrency - len(asked)):
                asked.append((thing, asyncio.create_task(ask_in_turn(thing))))
            thing, task = asked[0]
            answer = await task
            asked.popleft()
            yield thing, answer
    finally:
        tasks = [task for _, task in asked]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
