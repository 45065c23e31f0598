"""Composition root of `bridge run`: start-up order, standby, signals, an end that does not drag on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from bridge import __version__, kafka, topics
from bridge.avro.codec import Codec
from bridge.avro.registry import Registry, RegistryUnavailable
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import NotCommitted, NotOwner
from bridge.log import get
from bridge.reign import Reign
from bridge.sink.checkpoint import State
from bridge.sink.leadership import Leadership
from bridge.sink.store import Store
from bridge.sink.worker import Worker
from bridge.status import Status

T = TypeVar("T")

RETRY_SECONDS = 2.0
PAUSE_SECONDS = 0.5
"""Between two terms of leadership, so that what ends at once is not tried a hundred times a second."""


def run(settings: Settings) -> None:
    """Own the feed, or stand by, until SIGTERM or SIGINT.

    Raises the errors of `bridge.errors` whose exit code says what a person has to do.
    """
    settings.need("feed.base_url", "kafka.bootstrap_servers", "registry.url")
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    status = Status(settings.feed.name)
    owner_id = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    reign: Reign | None = None
    changed = asyncio.Event()

    def look() -> None:
        changed.set()
        if reign is not None:
            reign.wake()

    def end() -> None:
        stop.set()
        look()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    get().info("starting", version=__version__, feed=settings.feed.name, owner=owner_id)
    prepared = await _until_stopped(_prepare(settings, status), stop)
    if prepared is None:
        return
    declared, codecs, store = prepared
    leadership = Leadership(settings, declared.checkpoints.name, partial(loop.call_soon_threadsafe, look))
    try:
        while not stop.is_set():
            status.become(State.STANDBY)
            changed.clear()
            leadership.check()
            if not leadership.owner:
                await changed.wait()
                continue
            reign = Reign(settings, declared, codecs, store, leadership, status, owner_id, stop)
            try:
                await reign.run()
            except (NotOwner, NotCommitted) as error:
                get().warning("publishing has ended", reason=str(error))
            finally:
                reign = None
                leadership.released()
            await _until_stopped(asyncio.sleep(PAUSE_SECONDS), stop)
    finally:
        await asyncio.to_thread(leadership.close)
        if status.state is not State.STOPPED_ON_GAP:
            status.become(State.STOPPED)


async def _prepare(settings: Settings, status: Status) -> tuple[topics.Topics, tuple[Codec, Codec], Store]:
    """Topics as they must be and the ids of the schemas; waits for Kafka and the registry."""

    worker = Worker("start")  # a daemon: the end of the process does not wait for a broker that is away

    async def patiently(job: Callable[[], T]) -> T:
        while True:
            try:
                return await asyncio.wrap_future(worker.submit(job))
            except (kafka.KafkaUnavailable, RegistryUnavailable) as error:
                status.become(State.WAITING_FOR_KAFKA, str(error))
                await asyncio.sleep(RETRY_SECONDS)

    declared, changes = await patiently(lambda: topics.ensure(kafka.admin(settings.kafka), settings))
    for change in changes:
        get().info("topic", topic=change.topic.name, action=change.action.value, detail=change.detail)
    registry = Registry(settings.registry)
    ids = await patiently(lambda: registry.register(settings.topics.prefix))
    bets, checkpoints = (
        Codec(load(name), ids[name], registry.schema_by_id) for name in ("settled-bet", "feed-checkpoint")
    )
    return declared, (bets, checkpoints), Store(settings, declared, registry.schema_by_id)


async def _until_stopped(job: asyncio.Future[T] | Coroutine[Any, Any, T], stop: asyncio.Event) -> T | None:
    task, stopping = asyncio.ensure_future(job), asyncio.ensure_future(stop.wait())
    await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if task.done():
        return task.result()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return None
