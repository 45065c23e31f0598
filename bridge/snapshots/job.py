"""One run of a snapshot job: take the lock, read Kafka, ask the provider, publish, report.

What is published is whole: each transaction has its Snapshot record. A run of less than half a minute writes
nothing before the last answer has arrived. A longer one publishes what it has now and then, as Partial, so
that names need not wait for hours; one that fails or is killed leaves what it has published.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from bridge import clock as instant
from bridge.avro.codec import Codec
from bridge.avro.schemas import SCHEMAS, load
from bridge.clock import Clock
from bridge.config import Settings
from bridge.config.api import KINDS
from bridge.kafka import clients
from bridge.kafka.batch import Record
from bridge.log import get
from bridge.ownership import signals
from bridge.records import topics
from bridge.registry import Registry
from bridge.rest.client import Client
from bridge.snapshots.asking import ProgressCallback
from bridge.snapshots.currencies import Currencies
from bridge.snapshots.lock import Lock
from bridge.snapshots.model import MAX_LEFT_OUT, Offsets, Snapshot
from bridge.snapshots.published import Portion
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.report import Report
from bridge.snapshots.state import JobState
from bridge.snapshots.status import ITS_TURN
from bridge.snapshots.storage import DAY_SECONDS, JobStorage, last_snapshot, topic_of
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import HOUR_SECONDS
from bridge.snapshots.wanted import Estimate, Found, Task

BUSY_SECONDS: Final = 20.0
"""How long a run waits for the lock: a killed run holds it until its session of 10 s expires."""
OPEN_SECONDS: Final = 60.0
"""How long Kafka may be unavailable when a run has just got the lock."""
PUBLISH_SECONDS: Final = 600.0
"""How long a single run tries to publish: twice the transaction timeout."""
PORTION_SECONDS: Final = 30.0
"""A run that takes longer publishes what it has so often, each time in one transaction."""


def plan(settings: Settings, task: Task, progress: ProgressCallback) -> list[Estimate]:
    """Estimate the requests of a run now. Sends none, takes no lock and writes nothing.

    Raises KafkaUnavailable and TopologyError.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    storage = JobStorage(settings, task.job, visible=True)
    last = last_snapshot(settings, task.job, visible=True)
    found = _read(settings, task, last, storage, instant.now().wall, progress)
    with Registry(settings.registry) as registry:
        return _job(settings, registry.codec(SCHEMAS[task.job]), found).estimate()


def _job(
    settings: Settings, codec: Codec, found: Found, clock: Clock = instant.now
) -> Currencies | Translations:
    if found.task.job == "currencies":
        return Currencies(settings.api, codec, found)
    return Translations(settings.api, codec, found, clock)


def run(
    settings: Settings,
    task: Task,
    progress: ProgressCallback,
    stop: threading.Event,
    on_trouble: Callable[[str], None] = lambda _: None,
    *,
    patience: float | None = BUSY_SECONDS,
) -> Report:
    """Make and publish one snapshot.

    Waits `patience` seconds for another run to end; with None it waits, and tries to publish, without limit.
    `on_trouble` is called, maybe by another thread, with the reason why Kafka has failed and is tried again.
    Raises AuthError, ApiError, KafkaUnavailable, TopologyError, SettingsError, SinkError and, once `stop` is
    set, NotCommitted: nothing more is published then, unless the message says that this is unknown.
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
        lock.acquire(patience, lambda: progress(ITS_TURN, 0, 1))
        progress(ITS_TURN, 1, 1)
        last_moment = None if patience is None else PUBLISH_SECONDS
        with closing(Publisher(settings, task.job, lock, last_moment)) as publisher:
            publisher.open(None if patience is None else OPEN_SECONDS)

            def watched(what: str, done: int, total: int) -> None:
                # A lost lock does not end the run at once: Kafka may have been unavailable for longer than a
                # session, and the answers may have taken an hour.
                lock.check()
                progress(what, done, total)

            codecs = {name: Codec(load(name), id_, registry.schema_by_id) for name, id_ in ids.items()}
            storage = JobStorage(settings, task.job)
            return make_snapshot(settings, task, storage, client, codecs, publisher, watched)


def make_snapshot(
    settings: Settings,
    task: Task,
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
    making = _Making(settings, task, codecs["snapshot"], publisher, clock, storage, progress)
    found = making.found
    job = _job(settings, codecs[SCHEMAS[task.job]], found, clock)

    async def ask() -> Portion:
        async with client:
            return await job.run(client, making.id, progress, making.publish_if_due)

    portion = signals.run(ask())
    if not task.narrowed:  # else what bets use stays new for the next run
        found.state.mark_seen()
    progress("publishing", 0, 1)
    snapshot = making.publish(portion, whole=True)
    progress("publishing", 1, 1)
    return Report(
        snapshot,
        full=found.full,
        bets=found.bets,
        requests=client.requests,
        seconds=clock().monotonic - making.started.monotonic,
        coverage=portion.coverage,
        notes=[*filter(None, [found.note]), *portion.notes],
    )


class _Making:
    """What one run reads from Kafka and writes to it. `codec` is that of the Snapshot record."""

    def __init__(
        self,
        settings: Settings,
        task: Task,
        codec: Codec,
        publisher: Publisher,
        clock: Clock,
        storage: JobStorage,
        progress: ProgressCallback,
    ) -> None:
        self.started = clock()
        moment = f"{datetime.fromtimestamp(self.started.wall, UTC):%Y%m%dT%H%M%S.%fZ}"
        self.id = f"{moment}-{uuid.uuid4().hex[:8]}"
        self._settings, self._task, self._clock = settings, task, clock
        self._codec, self._publisher = codec, publisher
        self._topics = topics.declare(settings)
        self._portions = 0
        self._away_until = 0.0
        """Until when Kafka is not asked again whether it is back."""
        self.found = _read(settings, task, publisher.last, storage, self.started.wall, progress, self._save)
        self._due = clock().monotonic + PORTION_SECONDS

    async def publish_if_due(self, make: Callable[[str], Portion | None], is_large: bool) -> None:
        """Publish a portion if it is time, and Kafka is not away: it may be, until the end of the run.

        The first one only when the run has taken that long; of a narrowed one, none.
        """
        now = self._clock().monotonic
        if (
            self._task.narrowed
            or now < self._away_until
            or (now < self._due and not (is_large and self._portions))
        ):
            return
        # In a thread, so that answers go on to arrive.
        if not await asyncio.to_thread(self._publisher.is_reachable):
            self._away_until = now + PORTION_SECONDS
        elif portion := make(f"{self.id}.{self._portions + 1}"):
            self._portions += 1
            await asyncio.to_thread(self.publish, portion, whole=False)
        self._due = self._clock().monotonic + PORTION_SECONDS

    def publish(self, portion: Portion, *, whole: bool) -> Snapshot:
        """Publish in one transaction with the state and a Snapshot record. Blocks."""
        task, found, last = self._task, self.found, self._publisher.last
        found.state.refused["owed"] = portion.owed
        snapshot = Snapshot(
            job=task.job,
            id=portion.id,
            started_at=self.started.wall,
            finished_at=self._clock().wall,
            refreshed_at=self.started.wall if found.refreshes and whole else found.refreshed_at,
            complete=whole and not (task.narrowed or portion.left_out or portion.owed),
            languages=last.languages if last and task.narrowed else task.languages,
            kinds=last.kinds if last and task.narrowed else task.kinds,
            forbidden=portion.forbidden,
            left_out=portion.left_out[:MAX_LEFT_OUT],
            owed=len(portion.owed),
            counts=portion.counts,
            position=found.state.position,
        )
        removed: dict[bytes, bytes | None] = dict.fromkeys(sorted(portion.removed))
        records = self._records(topic_of(self._settings, task.job), removed | portion.written)
        records += self._records(self._topics.snapshot_state.name, found.state.changes())

        def seal(ends: Offsets) -> Record:
            value = self._codec.encode(replace(snapshot, ends=ends).to_avro())
            return self._records(self._topics.snapshots.name, {task.job.encode(): value})[0]

        ends = self._publisher.publish(records, seal)
        if not whole:
            written = len(portion.written)
            get().info("names published, the run goes on", job=task.job, snapshot=portion.id, written=written)
        return replace(snapshot, ends=ends)

    def _save(self, state: JobState) -> None:
        if changes := state.changes():
            self._publisher.save(self._records(self._topics.snapshot_state.name, changes))

    def _records(self, topic: str, changes: Mapping[bytes, bytes | None]) -> list[Record]:
        moment = round(self._clock().wall * 1000)
        return [Record(topic, key, value, moment) for key, value in changes.items()]


def _read(
    settings: Settings,
    task: Task,
    last: Snapshot | None,
    storage: JobStorage,
    now: float,
    progress: ProgressCallback,
    save: Callable[[JobState], None] = lambda _: None,
) -> Found:
    """Read the published records and what bets use."""
    state, present = storage.state(), storage.published()
    bets, note = storage.learn(
        state, now, lambda: save(state), lambda done, of: progress("settled bets", done, of)
    )
    # The state was lost, and with it the names of what is owed.
    forgot = last is not None and last.owed != len(state.refused["owed"])
    # The topic lacks records of the last snapshot, because it was recreated.
    is_lost = last is not None and len(present) != sum(counts.records for counts in last.counts.values())
    full = task.full or forgot or is_lost or _is_due(settings, task, last, now)
    # Counted back from the newest bet: nothing is forgotten because the feed is silent or our clock is wrong.
    newest = min(now, state.usage.newest + HOUR_SECONDS)
    recent = newest - settings.api.recent_days * DAY_SECONDS
    if full or task.narrowed:  # which may be all that there ever are
        state.usage.forget(newest - settings.api.keep_days * DAY_SECONDS)
    if not state.usage.newest:
        get().warning(
            "no settled bets found, check topics.prefix",
            topic=topics.declare(settings).bets.name,
            exists=state.topic_id is not None,
        )
    return Found(
        task,
        present,
        usage=state.used(0 if forgot else recent, full=full),
        state=state,
        full=full,
        # Lost records are still to be asked about.
        refreshed_at=None if last is None or is_lost else last.refreshed_at,
        resumed=last is not None and last.goes_on and not (task.full or forgot or is_lost),
        bets=bets,
        note=note,
    )


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
