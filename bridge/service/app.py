"""Composition root of `bridge run`: start-up, standby, signals, and an end that does not wait for Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from math import inf
from typing import Any, Final, NoReturn, TypeVar

from bridge import __version__
from bridge.avro.codec import Codecs
from bridge.avro.encoder import compiled
from bridge.clock import AnchoredClock
from bridge.config import Settings
from bridge.errors import BridgeError, IdsChanged, NotOwner
from bridge.feed import client, provider_clock
from bridge.kafka import clients, topics
from bridge.kafka.acknowledged import Acknowledged
from bridge.kafka.batch_writer import BatchWriter, transactional
from bridge.kafka.blocking import Worker, discard
from bridge.kafka.election import GroupLooks, LeaderElection, group_of, new_owner_id
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.group import Group, Watch
from bridge.kafka.outage import outage
from bridge.kafka.reader import reading_clients, with_fresh_clients
from bridge.kafka.registry import Registry, RegistryUnavailable, confirm_ids
from bridge.log import dropped, get
from bridge.observability.bets import ShownBet, shown
from bridge.observability.endpoints import make_app, served
from bridge.observability.health import healthy, judge
from bridge.observability.metrics import collect
from bridge.observability.status import StatusSnapshot
from bridge.observability.status_page import status_page
from bridge.observability.view import view
from bridge.service import last_bets, memory
from bridge.service.gap_history import GapHistory
from bridge.service.interfaces import Dependencies
from bridge.service.owner import FeedOwner, unless
from bridge.service.pulse import Pulse
from bridge.service.status import Status
from bridge.service.transaction_monitor import TransactionMonitor
from bridge.service.watchdog import watched
from bridge.state.checkpoint import Checkpoint, State
from bridge.state.checkpoint_reader import CheckpointReader
from bridge.state.reach_reader import ReachReader
from bridge.state.restore import PublishedReader

T = TypeVar("T")

RETRY_SECONDS = 2.0
SILENT_SECONDS = 8.0
"""How much later a service that does not answer at all is told, at the start."""
PAUSE_SECONDS = 0.5
"""Pause between two terms of leadership, in case a term ends at once."""
LOOK_SECONDS = 2.0
"""How often a standby checks who owns the feed, and whether Kafka answers."""
GROUP_SECONDS = 10.0
"""How often an owner looks who stands by."""
CONFIRMED_SECONDS, CONFIRM_SECONDS = 10.0, 2.0
"""A new owner asks the registry again for its ids after so long, for so long."""
HEARTBEAT_SECONDS = 1.0
"""Interval between status snapshots."""

KAFKA = "Kafka"

SWITCH_SECONDS = 0.001
"""How long the committing thread waits for the interpreter lock while the event loop is busy."""


def run(settings: Settings, tell: Callable[[BridgeError], object]) -> None:
    """Own the feed, or stand by, until SIGTERM or SIGINT. Raises errors of `bridge.errors`.

    `tell` gets the error where a thread that hangs would keep the process from its end.
    """
    settings.need("feed.base_url", "kafka.bootstrap_servers", "registry.url")
    sys.setswitchinterval(SWITCH_SECONDS)
    memory.limit_kept()
    service = _Service(settings)
    service.pulse.tell = tell
    with service.pulse.watched():
        asyncio.run(service.serve())


_KNOWN: Final = ("revision", "committed_at", "skew", "gaps", "declared", "dead_letters")
"""Fields of a StatusSnapshot that still say something when nobody owns the feed, as without Kafka."""


class _Service:
    """One process: stands by, owns the feed while it is the leader, and serves its status."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = AnchoredClock()
        self._status = Status(settings.feed.name, self._clock)
        self.pulse = Pulse()
        self._owner_id = new_owner_id()
        self._started_at = self._clock().wall
        self._changed = asyncio.Event()
        """Set when leadership may have changed."""
        self._owner: FeedOwner | None = None
        self._codecs: Codecs | None = None
        self._group: Group | None = None
        """The members of the owner group, None while they are unknown."""
        self._refusal = ""
        """Why Kafka does not let this process into the group."""
        self._transactions = TransactionMonitor(settings, self._clock)
        self._gaps = GapHistory(settings)
        self._confirmed_at = -inf
        """When the registry last gave the ids of the codecs, monotonic seconds."""
        self._committed: Checkpoint | None = None
        """The last checkpoint of this process."""
        self._known: dict[str, Any] = {}
        """What this process knows of the feed from its last term, until another one owns it."""
        self._show_bet = lru_cache(2 * last_bets.MOST)(self._decode_and_show)
        self._snapshot = self._take_snapshot()

    async def serve(self) -> None:
        """Run until SIGTERM or SIGINT cancels this, once: the end commits what was received."""
        main = asyncio.current_task()
        assert main is not None

        def end() -> None:
            if not main.cancelling():
                main.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, end)
            signal.signal(number, self.pulse.asked_to_end)  # in addition: the loop hears it by a descriptor
        feed = self._settings.feed
        get().info(
            "starting",
            version=__version__,
            feed=feed.name,
            owner=self._owner_id,
            settings_file=self._settings.file and str(self._settings.file),
            compiled=compiled(),
        )
        app = make_app(
            {"feed": feed.name},
            lambda now: judge(self._snapshot, now),
            lambda now: collect(self._snapshot, now),
            self._settings.web,
            self._clock,
            status_page("bridge", lambda: view(self._snapshot, self._clock().wall, self._show_bet)),
        )
        heartbeat = asyncio.create_task(self._heartbeat())
        try:
            with (
                served(app, self._settings.web),
                watched(lambda: healthy(self._snapshot, self._clock().wall).ok),
            ):
                while True:
                    try:
                        await self._stand_by_and_own()
                    except IdsChanged as error:
                        if main.cancelling():  # while it left the group
                            raise asyncio.CancelledError from None
                        gc.unfreeze()
                        get().warning("schemas are registered again", reason=str(error))
                        self._status.become(State.STANDBY, str(error))
        except asyncio.CancelledError:
            if not main.cancelling():
                raise
            self.pulse.done = True
        except BridgeError as error:
            self.pulse.error, self.pulse.done = error, True
            raise
        finally:
            heartbeat.cancel()

    async def _stand_by_and_own(self) -> NoReturn:
        loop = asyncio.get_running_loop()
        declared, codecs, checkpoints, published, reach = await self._prepare()
        self._codecs = codecs
        gc.freeze()  # long-lived objects: collections need not walk through them
        leadership = LeaderElection(
            self._settings,
            group_of(self._settings),
            declared.checkpoints.name,
            partial(loop.call_soon_threadsafe, self._changed.set),
            self._owner_id,
        )
        self.pulse.leave = leadership.close
        acknowledged = Acknowledged(self._settings, [topic.name for topic in declared.of_messages()])
        dependencies = Dependencies(
            settings=self._settings,
            status=self._status,
            owner_id=self._owner_id,
            topics=declared,
            codecs=codecs,
            judge_topics=partial(
                with_fresh_clients,
                self._settings,
                lambda client, _: topics.ensure(client, self._settings, topics.Topics.of_feed),
            ),
            agree_on_topics=reach.agree,
            restore=published.deduplicator,
            refuse_other_feeds=checkpoints.refuse_other_feeds,
            leadership=leadership,
            leadership_changed=self._changed,
            writer=lambda on_error: BatchWriter(
                self._settings, leadership, checkpoints.refuse_other_feeds, on_error, acknowledged
            ),
            connect=client.connect,
            ask_time=provider_clock.ask,
            clock=self._clock,
        )
        watch = asyncio.create_task(
            self._transactions.run(
                declared,
                acknowledged,
                lambda: self._owner.topics if self._owner else (),
                self._topics_differ,
            )
        )
        try:
            while True:
                if self._status.state is not State.WAITING_FOR_KAFKA:  # a look will tell when it is back
                    self._status.become(State.STANDBY)
                self._changed.clear()
                leadership.check()
                if not leadership.is_owner:
                    await self._stand_by(leadership)
                    continue
                await self._one_term(dependencies, leadership)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):  # SIGTERM must not hide why it ends
                await asyncio.to_thread(leadership.close)
            self._status.become(State.STOPPED)

    def _topics_differ(self, reason: str) -> None:
        if self._owner is not None:
            self._owner.topics_differ(reason)

    async def _stand_by(self, leadership: LeaderElection) -> None:
        """Wait until leadership may have changed, even while Kafka does not answer."""
        await unless(self._changed.wait(), self._look_around(leadership))

    async def _look_around(self, leadership: LeaderElection) -> NoReturn:
        """Keep the state current: whom this process stands by for, or that Kafka is unreachable."""
        looks = GroupLooks(self._settings.kafka, leadership, "standby")
        watch = Watch(self._owner_id, clients.session_seconds(self._settings.kafka))
        try:
            while True:
                try:
                    self._group = group = await looks.look()
                except KafkaUnavailable as error:
                    self._group = None
                    self._status.become(State.WAITING_FOR_KAFKA, str(error))
                else:
                    self._refusal = leadership.refusal
                    if group is not None and group.owner_hosts:
                        self._known = {}  # the owner knows better
                    if self._refusal:
                        self._status.become(State.STANDBY, self._refusal)
                    elif group is not None:
                        wait = watch.look(group, self._clock())
                        self._status.become(State.STANDBY, wait.reason, until=wait.until)
                    else:  # an earlier reason may be outdated
                        self._status.become(State.STANDBY)
                memory.give_back()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._refusal = ""
            looks.close()

    async def _watch_group(self, leadership: LeaderElection) -> NoReturn:
        """Keep the members of the group current while this process owns the feed."""
        looks = GroupLooks(self._settings.kafka, leadership, "group")
        told = set[type[Exception]]()
        try:
            while True:
                try:
                    self._group = await looks.look()
                    told.clear()
                except Exception as error:  # noqa: BLE001  # whatever it is, the feed goes on
                    self._group = None
                    if type(error) not in told:
                        told.add(type(error))
                        get().warning("members of the owner group unknown", reason=str(error) or repr(error))
                await asyncio.sleep(GROUP_SECONDS)
        finally:
            looks.close()

    def _confirm_ids(self, codecs: Codecs) -> None:
        confirm_ids(self._settings.registry, self._settings.topics.prefix, codecs)
        self._confirmed_at = self._clock().monotonic

    def _confirm_unless(self, codecs: Codecs, last: int) -> None:
        if last != codecs.bets.schema_id:
            self._confirm_ids(codecs)

    async def _one_term(self, dependencies: Dependencies, leadership: LeaderElection) -> None:
        if self._clock().monotonic > self._confirmed_at + CONFIRMED_SECONDS:
            worker = Worker("registry")  # a daemon thread, as at the start
            try:
                asked = worker.submit(partial(self._confirm_ids, dependencies.codecs))
                async with asyncio.timeout(CONFIRM_SECONDS):
                    await asyncio.wrap_future(asked)
            except IdsChanged:
                raise
            except (TimeoutError, BridgeError) as error:
                get().debug("registry not asked again", reason=str(error))
            finally:
                worker.close(0)
        leadership.taken()
        self._owner = FeedOwner(dependencies, self._committed)
        oldest = self._clock().wall - self._settings.limits.memory_seconds
        beside = (
            asyncio.create_task(self._watch_group(leadership)),
            asyncio.create_task(self._gaps.read(dependencies.codecs.gaps, oldest)),
        )
        try:
            await self._owner.run()
        except NotOwner as error:
            get().warning("ownership lost", reason=str(error))
        finally:
            for task in beside:
                task.cancel()
            leadership.released(self._owner.term)
            self._committed = self._owner.committed
            if self._snapshot.owner and self._snapshot.revision is not None:
                self._known = {name: getattr(self._snapshot, name) for name in _KNOWN}
            self._owner = None

    async def _prepare(self) -> tuple[topics.Topics, Codecs, CheckpointReader, PublishedReader, ReachReader]:
        """Create topics and register schemas; waits for Kafka and the registry."""
        settings = self._settings
        worker = Worker("start")  # a daemon thread: the process can end while Kafka is unreachable

        async def patiently(service: str, job: Callable[[], T]) -> T:
            is_known = False
            """Why it waits for this service."""
            while True:
                answer = asyncio.wrap_future(worker.submit(job))
                try:
                    await asyncio.wait({answer}, timeout=RETRY_SECONDS)
                    if service == KAFKA and not answer.done() and outage.cause and not is_known:
                        is_known = True
                        self._status.become(State.WAITING_FOR_KAFKA, outage.explain("no broker answers"))
                    await asyncio.wait({answer}, timeout=SILENT_SECONDS)
                    if not answer.done() and not is_known:  # a probe would end the process
                        self._status.become(State.WAITING_FOR_KAFKA, f"{service} has not answered yet")
                    return await answer
                except (KafkaUnavailable, RegistryUnavailable) as error:
                    is_known = True
                    self._status.become(State.WAITING_FOR_KAFKA, str(error))
                    await asyncio.sleep(RETRY_SECONDS)
                finally:
                    answer.cancel()

        try:
            declared = await patiently(
                KAFKA,
                lambda: topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.of_feed),
            )
            registry = Registry(settings.registry)
            codecs = await patiently(
                f"the schema registry at {registry.address}",
                lambda: registry.codecs_of_owner(settings.topics.prefix),
            )
            # Created only to validate their settings now: a later failure then means that a file is missing.
            discard(transactional(settings))
            await asyncio.wrap_future(worker.submit(lambda: reading_clients(settings).close()))
        finally:
            worker.close(0)
        self._confirmed_at = self._clock().monotonic
        checkpoints = CheckpointReader(settings, declared, registry.schema_by_id)
        published = PublishedReader(settings, declared, codecs.bets)
        return (
            declared,
            codecs,
            checkpoints,
            published,
            ReachReader(
                settings,
                declared,
                registry.schema_by_id,
                confirm=partial(self._confirm_unless, codecs),
            ),
        )

    # Status.

    def _take_snapshot(self) -> StatusSnapshot:
        status, feed = self._status, self._settings.feed
        return StatusSnapshot(
            at=self._clock().wall,
            started_at=self._started_at,
            feed=feed.name,
            idle_timeout_seconds=feed.idle_timeout_seconds,
            behind_seconds=feed.max_out_of_orderness_seconds + feed.safety_margin_seconds,
            owner_id=self._owner_id,
            compiled=compiled(),
            log_lines_dropped=dropped(),
            state=status.state,
            reason=status.reason,
            since=status.since,
            until=status.until,
            memory_seconds=self._settings.limits.memory_seconds,
            group=self._group,
            refused=bool(self._refusal),
            open_transactions=self._transactions.open,
            transactions_looked_at=self._transactions.looked_at,
            **(self._owned() if self._owner else self._known),
        )

    def _owned(self) -> dict[str, Any]:
        """Return what is known of the feed while this process owns it."""
        assert self._owner is not None
        found = self._owner.snapshot()
        return found | {"declared": self._gaps.and_own(found.get("declared", ()))}

    def _decode_and_show(self, value: bytes) -> ShownBet:
        assert self._codecs is not None  # a bet was written
        return shown(self._codecs.bets.decode(value))

    async def _heartbeat(self) -> None:
        while True:
            self.pulse.beat()
            try:
                self._snapshot = self._take_snapshot()
            except Exception as error:  # noqa: BLE001  # must not look like a blocked event loop
                get().error("status snapshot failed", reason=repr(error))
            await asyncio.sleep(HEARTBEAT_SECONDS)
