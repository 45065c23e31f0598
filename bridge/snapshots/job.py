"""One run of a snapshot job: take the lock, read Kafka, ask the provider, publish, report.

What is published is whole: each transaction has its Snapshot record. A run of less than half a minute writes
nothing before the last answer has arrived. A longer one publishes what it has now and then, as Partial, so
that names need not wait for hours; one that fails or is killed leaves what it has published.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from bridge import clock as instant
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.clock import Clock
from bridge.config import Settings
from bridge.config.api import KINDS
from bridge.errors import TopologyError
from bridge.kafka import clients
from bridge.kafka.batch import Record
from bridge.log import get
from bridge.records import topics
from bridge.registry import Registry
from bridge.rest.client import Client
from bridge.snapshots.asking import ProgressCallback
from bridge.snapshots.currencies import Currencies
from bridge.snapshots.lock import Lock
from bridge.snapshots.model import MAX_LEFT_OUT, Job, Offsets, Snapshot
from bridge.snapshots.published import Portion
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.report import Outcome, Report
from bridge.snapshots.state import JobState
from bridge.snapshots.status import ITS_TURN
from bridge.snapshots.storage import DAY_SECONDS, JobStorage, last_snapshot, topic_of
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import HOUR_SECONDS
from bridge.snapshots.wanted import Estimate, Found, Task

SCHEMAS: Final[dict[Job, str]] = {"translations": "translation", "currencies": "currency"}
BUSY_SECONDS: Final = 20.0
"""How long a run waits for the lock: a killed run holds it until its session of 10 s expires."""
OPEN_SECONDS: Final = 60.0
"""How long Kafka may be unavailable when a run has just got the lock."""
PUBLISH_SECONDS: Final = 600.0
"""How long a single run tries to publish: twice the transaction timeout."""


def plan(settings: Settings, task: Task, progress: ProgressCallback) -> list[Estimate]:
    """Estimate the requests of a run now. Sends none, takes no lock and writes nothing.

    Raises KafkaUnavailable and TopologyError.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    storage = JobStorage(settings, task.job, visible=True)
    last = last_snapshot(settings, task.job, visible=True)
    found = _read(settings, task, last, storage, storage.state(), instant.now().wall, progress, lambda: None)
    with Registry(settings.registry) as registry:
        codec = Codec(load(SCHEMAS[task.job]), READ_ONLY, registry.schema_by_id)
        return _job(settings, task, codec, found).estimate()


def _job(
    settings: Settings, task: Task, codec: Codec, found: Found, clock: Clock = instant.now
) -> Currencies | Translations:
    if task.job == "currencies":
        return Currencies(settings.api, codec, found)
    return Translations(settings.api, task, codec, found, clock)


def run(
    settings: Settings,
    task: Task,
    progress: ProgressCallback,
    stop: threading.Event,
    on_trouble: Callable[[str], None] = lambda _: None,
    *,
    patience: float | None = BUSY_SECONDS,
) -> Report | None:
    """Make and publish one snapshot; returns None if `stop` was set before it got the lock.

    Waits `patience` seconds for another run to end; with None it waits, and tries to publish, without limit.
    `on_trouble` is called, maybe by another thread, with the reason why Kafka has failed and is tried again.
    Raises AuthError, ApiError, KafkaUnavailable, TopologyError, SinkError and SettingsError: nothing more is
    published then, unless the message says that this is unknown.
    """
    settings.require("api.base_url", "api.token", "kafka.bootstrap_servers", "registry.url")
    client = Client(settings.api)  # checks the token and the proxy before anything else
    topics.ensure(
        clients.admin(settings.kafka),
        settings,
        lambda all_: (all_.snapshots, all_.snapshot_state, getattr(all_, task.job)),
    )

    def trouble(reason: str) -> None:
        # Not progress: a job that fails to publish must not look healthy.
        get().warning("Kafka failed, retrying", job=task.job, reason=reason)
        on_trouble(reason)

    with Registry(settings.registry) as registry, closing(Lock(settings, task.job, stop, trouble)) as lock:
        ids = registry.register(settings.topics.prefix, ("snapshot", SCHEMAS[task.job]))
        if not lock.acquire(patience, lambda: progress(ITS_TURN, 0, 1)):
            return None
        progress(ITS_TURN, 1, 1)
        last_moment = None if patience is None else PUBLISH_SECONDS
        with closing(Publisher(settings, task.job, lock, last_moment)) as publisher:
            last = publisher.open(None if patience is None else OPEN_SECONDS)

            def watched(what: str, done: int, total: int) -> None:
                # A lost lock does not end the run at once: Kafka may have been unavailable for longer than a
                # session, and the answers may have taken an hour.
                lock.check()
                progress(what, done, total)

            codecs = {name: Codec(load(name), id_, registry.schema_by_id) for name, id_ in ids.items()}
            storage = JobStorage(settings, task.job)
            return make_snapshot(settings, task, last, storage, client, codecs, publisher, watched)


def make_snapshot(
    settings: Settings,
    task: Task,
    last: Snapshot | None,
    storage: JobStorage,
    client: Client,
    codecs: Mapping[str, Codec],
    publisher: Publisher,
    progress: ProgressCallback,
    clock: Clock = instant.now,
) -> Report:
    """Make and publish one snapshot while the lock is held. `codecs` has the registered schemas by name.

    Raises as `run`.
    """
    making = _Making(settings, task, last, storage, codecs["snapshot"], publisher, clock)
    found = making.read(progress)
    job = _job(settings, task, codecs[SCHEMAS[task.job]], found, clock)

    async def publish(make: Callable[[], Portion | None]) -> None:
        # In a thread, so that answers go on to arrive. Kafka may be away until the end of the run.
        if await asyncio.to_thread(publisher.is_reachable) and (portion := make()):
            await asyncio.to_thread(making.publish, portion, whole=False)

    async def ask() -> Outcome:
        async with client:
            return await job.run(client, making.id, progress, None if task.narrowed else publish)

    outcome = asyncio.run(ask())
    making.state.refused |= {"partial": outcome.partial, "missing": outcome.missing}
    if not task.narrowed:  # else what bets use stays new for the next run
        making.state.mark_seen()
    progress("publishing", 0, 1)
    snapshot = making.publish(outcome.portion, whole=True)
    progress("publishing", 1, 1)
    return Report(
        snapshot,
        full=found.full,
        bets=found.bets,
        requests=client.requests,
        seconds=clock().monotonic - making.started.monotonic,
        coverage=outcome.coverage,
        notes=[*filter(None, [found.note]), *outcome.notes],
    )


@dataclass
class _Making:
    """What one run reads from Kafka and writes to it."""

    settings: Settings
    task: Task
    last: Snapshot | None
    storage: JobStorage
    codec: Codec
    """Of the Snapshot record."""
    publisher: Publisher
    clock: Clock

    def __post_init__(self) -> None:
        self.started = self.clock()
        moment = f"{datetime.fromtimestamp(self.started.wall, UTC):%Y%m%dT%H%M%S.%fZ}"
        self.id = f"{moment}-{uuid.uuid4().hex[:8]}"
        self.state = self.storage.state()
        self._topics = topics.declare(self.settings)
        self._state_topic_id = self.storage.state_topic_id()

    def read(self, progress: ProgressCallback) -> Found:
        """Return what the run finds."""
        last, moment = self.last, self.started.wall
        found = _read(self.settings, self.task, last, self.storage, self.state, moment, progress, self._save)
        self._refreshes = found.full and not self.task.narrowed
        # Lost records are still to be asked about.
        self._refreshed = None if last is None or _is_lost(last, found.present) else last.refreshed_at
        return found

    def publish(self, portion: Portion, *, whole: bool) -> Snapshot:
        """Publish in one transaction with the state and a Snapshot record. Blocks."""
        task, last, state = self.task, self.last, self.state
        state.refused["owed"] = portion.owed
        state.asking = portion.id if self._refreshes and self._refreshed is None and not whole else None
        snapshot = Snapshot(
            job=task.job,
            id=portion.id,
            started_at=self.started.wall,
            finished_at=self.clock().wall,
            refreshed_at=self.started.wall if self._refreshes and whole else self._refreshed,
            complete=whole and not (task.narrowed or portion.left_out or portion.owed),
            languages=last.languages if last and task.narrowed else task.languages,
            kinds=last.kinds if last and task.narrowed else task.kinds,
            forbidden=portion.forbidden,
            left_out=portion.left_out[:MAX_LEFT_OUT],
            owed=len(portion.owed),
            counts=portion.counts,
            position=state.position,
        )
        removed: dict[bytes, bytes | None] = dict.fromkeys(sorted(portion.removed))
        records = self._records(topic_of(self.settings, task.job), removed | portion.written)
        records += self._records(self._topics.snapshot_state.name, state.changes())

        def seal(ends: Offsets) -> Record:
            value = self.codec.encode(replace(snapshot, ends=ends).to_avro())
            return self._records(self._topics.snapshots.name, {task.job.encode(): value})[0]

        self._check_state_topic()
        ends = self.publisher.publish(records, seal)
        if not whole:
            written = len(portion.written)
            get().info("names published, the run goes on", job=task.job, snapshot=portion.id, written=written)
        return replace(snapshot, ends=ends)

    def _save(self) -> None:
        if changes := self.state.changes():
            self._check_state_topic()
            self.publisher.save(self._records(self._topics.snapshot_state.name, changes))

    def _records(self, topic: str, changes: Mapping[bytes, bytes | None]) -> list[Record]:
        moment = round(self.clock().wall * 1000)
        return [Record(topic, key, value, moment) for key, value in changes.items()]

    def _check_state_topic(self) -> None:
        # A new topic would lack everything that this run does not change.
        if self.storage.state_topic_id() != self._state_topic_id:
            name = self._topics.snapshot_state.name
            raise TopologyError(f"the topic {name} was recreated during the run; nothing more was published")


def _read(
    settings: Settings,
    task: Task,
    last: Snapshot | None,
    storage: JobStorage,
    state: JobState,
    now: float,
    progress: ProgressCallback,
    save: Callable[[], None],
) -> Found:
    """Read the published records and what bets use."""
    present = storage.published()
    bets, note = storage.learn(state, now, save, lambda done, of: progress("settled bets", done, of))
    # The state was lost, and with it the names of what is owed.
    forgot = last is not None and last.owed != len(state.refused["owed"])
    is_lost = _is_lost(last, present)
    full = task.full or forgot or is_lost or _is_due(settings, task, last, now)
    resumed = last is not None and state.asking == last.id and not (task.full or forgot or is_lost)
    # Counted back from the newest bet: nothing is forgotten because the feed is silent or our clock is wrong.
    newest = min(now, state.usage.newest + HOUR_SECONDS)
    recent = newest - settings.api.recent_days * DAY_SECONDS
    if full or task.narrowed:  # which may be all that there ever are
        state.usage.forget(newest - settings.api.keep_days * DAY_SECONDS)
    used = state.used(0 if forgot else recent, full=full)
    if not state.usage.newest:
        get().warning(
            "no settled bets found, check topics.prefix",
            topic=topics.declare(settings).bets.name,
            exists=state.topic_id is not None,
        )
    return Found(present, used, state, full, resumed, bets, note)


def _is_lost(last: Snapshot | None, present: Collection[bytes]) -> bool:
    """Return whether the topic lacks records of the last snapshot, because it was recreated."""
    return last is not None and len(present) != sum(counts.records for counts in last.counts.values())


def _is_due(settings: Settings, task: Task, last: Snapshot | None, now: float) -> bool:
    """Return whether a full run is due; a narrowed run is full only before the first snapshot."""
    if last is None:
        return True
    if task.narrowed:
        return False
    # A time in the future comes from a wrong clock.
    overdue = (
        last.refreshed_at is None
        or not 0 <= now - last.refreshed_at < settings.api.refresh_hours * HOUR_SECONDS
    )
    has_all = {*task.languages} <= {*last.languages} and {*task.kinds} <= {*(last.kinds or KINDS)}
    return overdue or not has_all
