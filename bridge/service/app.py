"""Composition root of `bridge run`: start-up order, standby, signals, an end that does not drag on."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable
from functools import partial
from typing import NoReturn, TypeVar

from bridge import __version__, tls
from bridge.avro.codec import Codec, Codecs
from bridge.avro.encoder import compiled
from bridge.avro.registry import Registry, RegistryUnavailable
from bridge.avro.schemas import load
from bridge.clock import AnchoredClock
from bridge.config import FeedSettings, Settings, env_name
from bridge.errors import NotOwner, SettingsError
from bridge.feed import client, protocol, provider_clock
from bridge.kafka import clients, topics
from bridge.kafka.batch_writer import BatchWriter, transactional
from bridge.kafka.blocking import Worker, discard
from bridge.kafka.election import LeaderElection, group_of
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.group import Watch
from bridge.kafka.outage import outage
from bridge.kafka.reader import reading_clients
from bridge.log import get
from bridge.observability.endpoints import make_app, served
from bridge.observability.health import judge
from bridge.observability.metrics import collect
from bridge.observability.status import StatusSnapshot
from bridge.service.interfaces import Dependencies
from bridge.service.owner import FeedOwner, unless
from bridge.service.status import Status
from bridge.state.checkpoint import State
from bridge.state.restore import Store

T = TypeVar("T")

SCHEMAS = ("settled-bet", "feed-checkpoint", "feed-gap")
"""Of the records that it writes."""
RETRY_SECONDS = 2.0
PAUSE_SECONDS = 0.5
"""Between two terms of leadership, so that what ends at once is not tried a hundred times a second."""
LOOK_SECONDS = 2.0
"""How often a standby looks whom it waits for, and whether Kafka is there at all."""
HEARTBEAT_SECONDS = 1.0
"""How often the status snapshot is renewed."""


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 16 * 1024 * 1024
"""Of memory that is free again: so much stays with the process at most, by and large."""
LARGE_BLOCK_BYTES = 1024 * 1024
"""A larger block goes back to the system at once when it is freed."""
SWITCH_SECONDS = 0.001
"""How long a thread that commits waits at most for a busy event loop, each time it comes back from Kafka."""


def run(settings: Settings) -> None:
    """Own the feed, or stand by, until SIGTERM or SIGINT.

    Raises the errors of `bridge.errors` whose exit code says what a person has to do.
    """
    settings.need("feed.base_url", "kafka.bootstrap_servers", "registry.url")
    _must_be_fit_to_dial(settings.feed)
    sys.setswitchinterval(SWITCH_SECONDS)
    _keep_little_memory()
    asyncio.run(_Service(settings).serve())


def _keep_little_memory() -> None:
    """glibc would keep up to 64 MiB of what large messages have once taken, and more between the pieces."""
    with contextlib.suppress(AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def _must_be_fit_to_dial(feed: FeedSettings) -> None:
    """Raises SettingsError where the credential or the certificate authority cannot be used.

    It would only show at the dial, and until then a standby passed for ready.
    """
    request = protocol.request(feed, None)
    if feed.auth != "none" and not request.secret:
        name = env_name("feed", "auth_value")
        raise SettingsError(f"feed.auth is {feed.auth}, and the credential ({name} or {name}_FILE) is empty")
    if request.url.startswith("wss:"):
        tls.context("feed", feed.ca_file)


class _Service:
    """One process: it stands by, owns the feed when it is its turn, and shows what it does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = AnchoredClock()
        self._status = Status(settings.feed.name, self._clock)
        self._owner_id = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._started_at = self._clock().wall
        self._changed = asyncio.Event()
        self._owner: FeedOwner | None = None
        self._snapshot = self._take_snapshot()

    async def serve(self) -> None:
        """Until SIGTERM or SIGINT cancels this, once: the end takes its time to commit what has come."""
        signals = signal.SIGTERM, signal.SIGINT
        ending = asyncio.Event()
        main = asyncio.current_task()
        assert main is not None

        def end() -> None:
            if not ending.is_set():
                ending.set()
                main.cancel()

        for number in signals:
            asyncio.get_running_loop().add_signal_handler(number, end)
        feed = self._settings.feed
        get().info(
            "starting",
            version=__version__,
            feed=feed.name,
            owner=self._owner_id,
            compiled=compiled(),
            converter=feed.converter,
        )
        app = make_app(
            {"feed": feed.name},
            lambda now: judge(self._snapshot, now),
            lambda now: collect(self._snapshot, now),
            self._clock,
        )
        heartbeat = asyncio.create_task(self._heartbeat())
        try:
            with served(app, self._settings.web):
                await self._stand_by_and_own()
        except asyncio.CancelledError:
            if not ending.is_set():
                raise
        finally:
            heartbeat.cancel()

    async def _stand_by_and_own(self) -> NoReturn:
        loop = asyncio.get_running_loop()
        declared, codecs, store = await self._prepare()
        gc.freeze()  # what is there by now stays: no collection is to walk through it while bets wait
        leadership = LeaderElection(
            self._settings,
            group_of(self._settings),
            declared.checkpoints.name,
            partial(loop.call_soon_threadsafe, self._notice),
            self._owner_id,
        )
        dependencies = Dependencies(
            topics=declared,
            codecs=codecs,
            store=store,
            leadership=leadership,
            writer=lambda on_error: BatchWriter(self._settings, leadership, store.checkpoint, on_error),
            dial=client.dial,
            ask_time=provider_clock.ask,
            clock=self._clock,
        )
        try:
            while True:
                self._status.become(State.STANDBY)
                self._changed.clear()
                leadership.check()
                if not leadership.owner:
                    await self._stand_by(leadership)
                    continue
                await self._one_term(dependencies, leadership)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            await asyncio.to_thread(leadership.close)
            if self._status.state not in (State.STOPPED_ON_GAP, State.STOPPED):
                self._status.become(State.STOPPED)

    async def _stand_by(self, leadership: LeaderElection) -> None:
        """Until something changes. No answer of Kafka is waited for then."""
        await unless(self._changed.wait(), self._look_around(leadership))

    async def _look_around(self, leadership: LeaderElection) -> NoReturn:
        """Tell whom this process stands by for. While Kafka is away nobody is: so that is the state."""
        client, worker = None, Worker("standby")
        watch = Watch(self._owner_id, clients.session_seconds(self._settings.kafka))
        try:
            while True:
                try:
                    client = client or clients.admin(self._settings.kafka)
                    group = await asyncio.wrap_future(worker.submit(partial(leadership.look, client)))
                except KafkaUnavailable as error:
                    self._status.become(State.WAITING_FOR_KAFKA, str(error))
                else:
                    if group is not None:
                        wait = watch.look(group, self._clock())
                        self._status.become(State.STANDBY, wait.reason, until=wait.until)
                    else:  # what was told before may be long over
                        self._status.become(State.STANDBY)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            worker.close(0)

    async def _one_term(self, dependencies: Dependencies, leadership: LeaderElection) -> None:
        self._owner = FeedOwner(self._settings, dependencies, self._status, self._owner_id)
        try:
            await self._owner.run()
        except NotOwner as error:
            get().warning("publishing has ended", reason=str(error))
        finally:
            self._owner = None
            leadership.released()

    async def _prepare(self) -> tuple[topics.Topics, Codecs, Store]:
        """Topics as they must be and the ids of the schemas; waits for Kafka and the registry."""
        settings = self._settings
        worker = Worker("start")  # a daemon: the end of the process does not wait for a broker that is away

        async def patiently(job: Callable[[], T]) -> T:
            while True:
                answer = asyncio.wrap_future(worker.submit(job))
                try:
                    await asyncio.wait({answer}, timeout=RETRY_SECONDS)
                    if not answer.done() and outage.cause and self._status.state is None:
                        self._status.become(State.WAITING_FOR_KAFKA, outage.explain("no broker answers"))
                    return await answer
                except (KafkaUnavailable, RegistryUnavailable) as error:
                    self._status.become(State.WAITING_FOR_KAFKA, str(error))
                    await asyncio.sleep(RETRY_SECONDS)
                finally:
                    answer.cancel()

        try:
            declared, changes = await patiently(
                lambda: topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.of_feed)
            )
            for change in changes:
                get().info("topic", topic=change.topic.name, action=change.action.value, detail=change.detail)
            registry = Registry(settings.registry)
            ids = await patiently(lambda: registry.register(settings.topics.prefix, SCHEMAS))
            # Not used: a setting that librdkafka refuses is told at the start, and what it refuses later
            # is a file that is away.
            discard(transactional(settings))
            await asyncio.wrap_future(worker.submit(lambda: reading_clients(settings).close()))
        finally:
            worker.close(0)
        codecs = Codecs(*(Codec(load(name), ids[name], registry.schema_by_id) for name in SCHEMAS))
        return declared, codecs, Store(settings, declared, registry.schema_by_id)

    # What can be seen from outside.

    def _take_snapshot(self) -> StatusSnapshot:
        status = self._status
        return StatusSnapshot(
            at=self._clock().wall,
            started_at=self._started_at,
            feed=self._settings.feed.name,
            idle_timeout_seconds=self._settings.feed.idle_timeout_seconds,
            owner_id=self._owner_id,
            compiled=compiled(),
            converter=self._settings.feed.converter,
            state=status.state,
            reason=status.reason,
            since=status.since,
            until=status.until,
            **(self._owner.snapshot() if self._owner else {}),
        )

    async def _heartbeat(self) -> None:
        while True:
            try:
                self._snapshot = self._take_snapshot()
            except Exception as error:  # noqa: BLE001  # must not look like an event loop that hangs
                get().error("no status snapshot", reason=repr(error))
            await asyncio.sleep(HEARTBEAT_SECONDS)

    # Little things.

    def _notice(self) -> None:
        self._changed.set()
        if self._owner is not None:
            self._owner.leadership_changed()
