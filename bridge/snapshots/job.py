"""One run of a snapshot job: take the lock, read Kafka, ask the provider, publish, report.

Nothing is written before the last answer has arrived, and then everything in one transaction: a run that
fails or is killed leaves the last snapshot as it was.
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
from bridge.config.api import KINDS, Kind
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
from bridge.snapshots.plan import Estimate, JobInput, Scope
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.results import Outcome, Report
from bridge.snapshots.state import HOUR_SECONDS, JobState
from bridge.snapshots.status import ITS_TURN
from bridge.snapshots.storage import DAY_SECONDS, JobStorage, last_snapshot, topic_of
from bridge.snapshots.translations import Translations

SCHEMAS: Final[dict[Job, str]] = {"translations": "translation", "currencies": "currency"}
BUSY_SECONDS: Final = 20.0
"""How long a run waits for the lock: a killed run holds it until its session of 10 s expires."""
OPEN_SECONDS: Final = 60.0
"""How long Kafka may be unavailable when a run has just got the lock."""
PUBLISH_SECONDS: Final = 600.0
"""How long a single run tries to publish: twice the transaction timeout."""


@dataclass(frozen=True)
class Task:
    """A job with its command-line options."""

    job: Job
    scope: Scope
    full: bool = False

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it publishes: currencies have none."""
        return self.scope.languages if self.job == "translations" else ()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of names that it asks for: currencies have none."""
        return tuple(kind for kind in KINDS if kind in self.scope.kinds) if self.job == "translations" else ()


def plan(settings: Settings, task: Task, progress: ProgressCallback) -> list[Estimate]:
    """Estimate the requests of a run now. Sends none, takes no lock and writes nothing.

    Raises KafkaUnavailable and TopologyError.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    storage = JobStorage(settings, task.job, visible=True)
    last = last_snapshot(settings, task.job, visible=True)
    now = instant.now().wall
    job_input = _read_input(settings, task, last, storage, storage.state(), now, progress, lambda: None)
    with Registry(settings.registry) as registry:
        codec = Codec(load(SCHEMAS[task.job]), READ_ONLY, registry.schema_by_id)
        return _job(settings, task, codec, job_input).estimate()


def _job(settings: Settings, task: Task, codec: Codec, job_input: JobInput) -> Currencies | Translations:
    if task.job == "currencies":
        return Currencies(settings.api, codec, job_input)
    return Translations(settings.api, task.scope, codec, job_input)


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
    Raises AuthError, ApiError, KafkaUnavailable, TopologyError, SinkError and SettingsError: nothing is
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
    started = clock()
    state = storage.state()
    declared = topics.declare(settings)

    def state_records() -> list[Record]:
        moment = round(clock().wall * 1000)
        name = declared.snapshot_state.name
        return [Record(name, key, value, moment) for key, value in state.changes().items()]

    state_topic_id = storage.state_topic_id()

    def check_state_topic() -> None:
        # A new topic would lack everything that this run does not change.
        if storage.state_topic_id() != state_topic_id:
            name = declared.snapshot_state.name
            raise TopologyError(f"the topic {name} was recreated during the run; nothing was published")

    def save() -> None:
        if records := state_records():
            check_state_topic()
            publisher.save(records)

    job_input = _read_input(settings, task, last, storage, state, started.wall, progress, save)
    codec = codecs[SCHEMAS[task.job]]
    job = _job(settings, task, codec, job_input)
    id_ = f"{datetime.fromtimestamp(started.wall, UTC):%Y%m%dT%H%M%S.%fZ}-{uuid.uuid4().hex[:8]}"

    async def ask() -> Outcome:
        async with client:
            return await job.run(client, id_, progress)

    outcome = asyncio.run(ask())
    finished = clock().wall
    topic, moment = topic_of(settings, task.job), round(finished * 1000)
    records = [Record(topic, key, None, moment) for key in sorted(outcome.removed)]
    records += (Record(topic, key, value, moment) for key, value in outcome.written.items())
    narrowed = task.scope.narrowed
    # Lost records are still to be fetched.
    refreshed = None if last is None or _is_lost(last, job_input.present) else last.refreshed_at
    if job_input.full and not narrowed:
        refreshed = started.wall
    snapshot = Snapshot(
        job=task.job,
        id=id_,
        started_at=started.wall,
        finished_at=finished,
        refreshed_at=refreshed,
        complete=not (narrowed or outcome.left_out or outcome.owed),
        languages=last.languages if last and narrowed else task.languages,
        kinds=last.kinds if last and narrowed else task.kinds,
        forbidden=outcome.forbidden,
        left_out=outcome.left_out[:MAX_LEFT_OUT],
        owed=len(outcome.owed),
        counts=outcome.counts,
        position=state.position,
    )
    state.owed, state.partial, state.missing = outcome.owed, outcome.partial, outcome.missing
    if not narrowed:  # else its references stay new for the next run
        state.mark_seen()
    records += state_records()

    def seal(ends: Offsets) -> Record:
        value = codecs["snapshot"].encode(replace(snapshot, ends=ends).to_avro())
        return Record(declared.snapshots.name, task.job.encode(), value, moment)

    progress("publishing", 0, 1)
    check_state_topic()
    ends = publisher.publish(records, seal)
    progress("publishing", 1, 1)
    return Report(
        replace(snapshot, ends=ends),
        full=job_input.full,
        bets=job_input.bets,
        requests=client.requests,
        seconds=clock().monotonic - started.monotonic,
        coverage=outcome.coverage,
        notes=[*filter(None, [job_input.note]), *outcome.notes],
    )


def _read_input(
    settings: Settings,
    task: Task,
    last: Snapshot | None,
    storage: JobStorage,
    state: JobState,
    now: float,
    progress: ProgressCallback,
    save: Callable[[], None],
) -> JobInput:
    """Read the published records and the references of bets."""
    present = storage.published()
    bets, note = storage.learn(state, now, save, lambda done, of: progress("settled bets", done, of))
    # The state was lost, and with it the names of what is owed.
    forgot = last is not None and last.owed != len(state.owed)
    full = task.full or forgot or _is_lost(last, present) or _is_due(settings, task, last, now)
    # Counted back from the newest bet: nothing is forgotten because the feed is silent or our clock is wrong.
    newest = min(now, state.newest + HOUR_SECONDS)
    recent = newest - settings.api.recent_days * DAY_SECONDS
    if full or task.scope.narrowed:  # which may be all that there ever are
        state.forget(newest - settings.api.keep_days * DAY_SECONDS)
    references = state.references(0 if forgot else recent, full=full)
    if not state.newest:
        get().warning(
            "no settled bets found, check topics.prefix",
            topic=topics.declare(settings).bets.name,
            exists=state.topic_id is not None,
        )
    kept = state.in_use() if full else references
    return JobInput(present, references, full, kept, state, bets, note)


def _is_lost(last: Snapshot | None, present: Collection[bytes]) -> bool:
    """Return whether the topic lacks records of the last snapshot, because it was recreated."""
    return last is not None and len(present) != sum(counts.records for counts in last.counts.values())


def _is_due(settings: Settings, task: Task, last: Snapshot | None, now: float) -> bool:
    """Return whether a full run is due; a narrowed run is full only before the first snapshot."""
    if last is None:
        return True
    if task.scope.narrowed:
        return False
    # A time in the future comes from a wrong clock.
    overdue = (
        last.refreshed_at is None
        or not 0 <= now - last.refreshed_at < settings.api.refresh_hours * HOUR_SECONDS
    )
    has_all = {*task.languages} <= {*last.languages} and {*task.kinds} <= {*(last.kinds or KINDS)}
    return overdue or not has_all
