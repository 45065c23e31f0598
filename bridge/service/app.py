"""Composition root of `bridge run`: start-up, standby, signals, and an end that does not wait for Kafka."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import NoReturn

from bridge import __version__
from bridge.avro.encoder import compiled
from bridge.clock import AnchoredClock
from bridge.config import Settings
from bridge.errors import BridgeError, IdsChanged, NotOwner
from bridge.feed import client, provider_clock
from bridge.log import dropped, get
from bridge.observability.endpoints import make_app, served
from bridge.observability.health import healthy, judge
from bridge.observability.metrics import collect
from bridge.observability.status import KnownStatus, ProcessStatus, StatusSnapshot, TermStatus
from bridge.observability.status_page import status_page
from bridge.observability.view import ShownBet, View, shown
from bridge.ownership.batch_writer import BatchWriter
from bridge.ownership.election import LeaderElection, group_of, new_owner_id
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge.records.checkpoint import Checkpoint, State
from bridge.service import memory
from bridge.service.checkpointer import SHOWN_BETS
from bridge.service.gap_history import GapHistory
from bridge.service.interfaces import Dependencies
from bridge.service.members import Members
from bridge.service.owner import FeedOwner, run_until_raises
from bridge.service.pulse import Pulse
from bridge.service.startup import Prepared, prepare
from bridge.service.status import Status
from bridge.service.systemd_watchdog import watched
from bridge.service.transaction_monitor import TransactionMonitor

PAUSE_SECONDS = 0.5
"""Pause between two terms of leadership, in case a term ends at once."""
HEARTBEAT_SECONDS = 1.0
"""Interval between status snapshots."""
SWITCH_SECONDS = 0.001
"""How long the committing thread waits for the interpreter lock while the event loop is busy."""


def run(settings: Settings, tell: Callable[[BridgeError], object]) -> None:
    """Own the feed, or stand by, until SIGTERM or SIGINT. Raises errors of `bridge.errors`.

    `tell` gets the error where a thread that hangs would keep the process from its end.
    """
    settings.require("feed.base_url", "kafka.bootstrap_servers", "registry.url")
    sys.setswitchinterval(SWITCH_SECONDS)
    memory.limit_heaps()
    service = _Service(settings)
    service.pulse.tell = tell
    with service.pulse.watched():
        asyncio.run(service.serve())


class _Service:
    """One process: stands by, owns the feed while it is the leader, and serves its status."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = AnchoredClock()
        self._status = Status(settings.feed.name, self._clock)
        self.pulse = Pulse()
        self._started_at = self._clock().wall
        self._changed = asyncio.Event()
        """Set when leadership may have changed."""
        self._owner: FeedOwner | None = None
        self._prepared: Prepared | None = None
        """None until Kafka and the registry have answered."""
        self._members = Members(settings.kafka, new_owner_id(), self._status, self._clock)
        self._transactions = TransactionMonitor(settings, self._clock)
        self._gaps = GapHistory(settings)
        self._committed: Checkpoint | None = None
        """The last checkpoint of this process."""
        self._known = KnownStatus()
        """What this process knows of the feed from its last term."""
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
            owner=self._members.owner_id,
            settings_file=self._settings.file and str(self._settings.file),
            compiled=compiled(),
        )
        show = lru_cache(2 * SHOWN_BETS)(self._decode_and_show)
        app = make_app(
            {"feed": feed.name},
            lambda now: judge(self._snapshot, now),
            lambda now: collect(self._snapshot, now),
            self._settings.web,
            self._clock,
            status_page("bridge", lambda: View(self._snapshot, self._clock().wall, show)),
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
        self._prepared = found = await prepare(self._settings, self._status, self._clock)
        gc.freeze()  # long-lived objects: collections need not walk through them
        leadership = LeaderElection(
            self._settings.kafka,
            group_of(self._settings),
            found.topics.checkpoints.name,
            partial(loop.call_soon_threadsafe, self._changed.set),
            self._members.owner_id,
        )
        self.pulse.leave = leadership.close
        guard = LostRecordGuard(self._settings, [topic.name for topic in found.topics.of_messages()])
        dependencies = Dependencies(
            settings=self._settings,
            status=self._status,
            owner_id=self._members.owner_id,
            topics=found.topics,
            codecs=found.codecs,
            stored=found.stored,
            leadership=leadership,
            leadership_changed=self._changed,
            writer=lambda on_error: BatchWriter(
                self._settings, leadership, found.stored.refuse_other_feeds, on_error, guard
            ),
            connect=client.connect,
            ask_time=provider_clock.ask,
            clock=self._clock,
        )
        watch = asyncio.create_task(
            self._transactions.run(
                found.topics,
                guard,
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
                await found.ids.confirm_if_due()
                await self._one_term(dependencies, leadership)
                await asyncio.sleep(PAUSE_SECONDS)
        except IdsChanged:  # the process goes on
            raise
        except BridgeError as error:
            self._status.become(State.STOPPED, str(error))
            raise
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
        await run_until_raises(self._changed.wait(), self._members.watch_as_standby(leadership))

    async def _one_term(self, dependencies: Dependencies, leadership: LeaderElection) -> None:
        if self._members.succeeded:  # what another owner knows better
            self._known = KnownStatus()
        leadership.taken()
        self._owner = FeedOwner(dependencies, self._committed)
        oldest = self._clock().wall - self._settings.limits.memory_seconds
        background = (
            asyncio.create_task(self._members.watch_as_owner(leadership)),
            asyncio.create_task(self._gaps.read(dependencies.codecs.gaps, oldest)),
        )
        try:
            await self._owner.run()
        except NotOwner as error:
            get().warning("ownership lost", reason=str(error))
        finally:
            for task in background:
                task.cancel()
            leadership.released(self._owner.term)
            self._committed = self._owner.committed
            if self._snapshot.owner and self._snapshot.known.revision is not None:
                self._known = self._snapshot.known
            self._owner = None

    # Status.

    def _take_snapshot(self) -> StatusSnapshot:
        status, feed, members = self._status, self._settings.feed, self._members
        process = ProcessStatus(
            started_at=self._started_at,
            feed=feed.name,
            owner_id=self._members.owner_id,
            compiled=compiled(),
            log_lines_dropped=dropped(),
            idle_timeout_seconds=feed.idle_timeout_seconds,
            behind_seconds=feed.max_out_of_orderness_seconds + feed.safety_margin_seconds,
            memory_seconds=self._settings.limits.memory_seconds,
        )
        if self._owner is not None:
            seen = self._owner.seen()
            known = replace(seen.known, declared=self._gaps.and_own(seen.known.declared))
        else:
            seen, known = TermStatus(), KnownStatus() if members.succeeded else self._known
        return StatusSnapshot(
            at=self._clock().wall,
            process=process,
            state=status.state,
            reason=status.reason,
            since=status.since,
            until=status.until,
            owner=self._owner is not None,
            group=members.group,
            refused=bool(members.refusal),
            open_transactions=self._transactions.open,
            transactions_looked_at=self._transactions.looked_at,
            known=known,
            intake=seen.intake,
            delivery=seen.delivery,
        )

    def _decode_and_show(self, value: bytes) -> ShownBet:
        assert self._prepared is not None  # a bet was written
        return shown(self._prepared.codecs.bets.decode(value))

    async def _heartbeat(self) -> None:
        while True:
            self.pulse.beat()
            try:
                self._snapshot = self._take_snapshot()
            except Exception as error:  # noqa: BLE001  # must not look like a blocked event loop
                get().error("status snapshot failed", reason=repr(error))
            await asyncio.sleep(HEARTBEAT_SECONDS)
