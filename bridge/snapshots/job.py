"""One run of a snapshot job: lock, look at what is there, ask the provider, publish, report.

Nothing is written before all answers are there, and then all of it in one transaction: a run that is killed
or fails at any line leaves the last whole snapshot as it was.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Collection, Container
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from bridge import clock
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.registry import Registry
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import TopologyError
from bridge.kafka import admin, clients, topics
from bridge.kafka.batch import Record
from bridge.log import get
from bridge.rest.client import Client
from bridge.rest.endpoints import Questions
from bridge.snapshots import currencies
from bridge.snapshots.asking import ProgressCallback
from bridge.snapshots.currencies import Currencies
from bridge.snapshots.lock import Lock
from bridge.snapshots.model import MOST_LEFT_OUT, Job, Offsets, Snapshot, is_key
from bridge.snapshots.outcome import JobInput, Outcome
from bridge.snapshots.plan import Estimate, Scope, estimate
from bridge.snapshots.publisher import MAX_RECORD_BYTES, Publisher
from bridge.snapshots.report import Report
from bridge.snapshots.state import HOUR_SECONDS, State
from bridge.snapshots.storage import (
    DAY_SECONDS,
    Learnt,
    last_snapshot,
    learn,
    read_compacted,
    read_state,
    topic_of,
)
from bridge.snapshots.translations import Translations

SCHEMAS: Final[dict[Job, str]] = {"translations": "translation", "currencies": "currency"}
BUSY_SECONDS: Final = 20.0
"""How long a run waits for its turn: one that was killed keeps its place for a session of 10 s."""
OPEN_SECONDS: Final = 60.0
"""How long Kafka may be away when a run has just got its turn."""
PUBLISH_SECONDS: Final = 600.0
"""How long a run that is the only one tries to publish: twice what a transaction may last."""


@dataclass(frozen=True)
class Task:
    """What the command line asks for."""

    job: Job
    scope: Scope
    full: bool = False


def plan(settings: Settings, task: Task, progress: ProgressCallback) -> list[Estimate]:
    """What a run would ask of the provider now. Asks nothing of it, takes no lock and writes nothing.

    Raises KafkaUnavailable and TopologyError.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    last = last_snapshot(settings, task.job, visible=True)
    state = read_state(settings, task.job, visible=True)
    now = clock.now().wall
    known, _ = _look(settings, task, last, state, now, progress, lambda: None, visible=True)
    with Registry(settings.registry) as registry:
        codec = Codec(load(SCHEMAS[task.job]), READ_ONLY, registry.schema_by_id)
        if task.job == "currencies":
            return currencies.estimate(Currencies(settings.api, codec, known))
        wants = Translations(settings.api, task.scope, codec, known).wants
        return estimate(wants, Questions(settings.api).by_sport)


def run(
    settings: Settings,
    task: Task,
    progress: ProgressCallback,
    stop: threading.Event,
    *,
    patience: float | None = BUSY_SECONDS,
) -> Report | None:
    """Make and publish one snapshot; None when `stop` was set before its turn came.

    `patience` is how long it waits for another run to end; None waits for ever, and tries to publish for
    as long. Raises AuthError, ApiError, KafkaUnavailable, TopologyError, SinkError and SettingsError; nothing
    of the snapshot can be read then, unless the text says that nobody knows.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    client = Client(settings.api)  # wrong settings are told before anything else is done
    topics.ensure(
        clients.admin(settings.kafka),
        settings,
        lambda all_: (all_.snapshots, all_.snapshot_state, getattr(all_, task.job)),
    )

    def give_up() -> bool:
        progress("its turn", 0, 1)
        return stop.is_set()

    def trouble(reason: str) -> None:
        # No progress: a job that publishes in vain would pass for healthy.
        get().warning("Kafka is in the way, it is tried again", job=task.job, reason=reason)

    with Registry(settings.registry) as registry, Lock(settings, task.job) as lock:
        codecs = _Codecs(registry, registry.register(settings.topics.prefix, ("snapshot", SCHEMAS[task.job])))
        if not lock.acquire(patience, give_up):
            return None
        progress("its turn", 1, 1)
        last_moment = None if patience is None else PUBLISH_SECONDS
        with Publisher(settings, task.job, lock.leadership, stop, trouble, last_moment) as publisher:
            last = publisher.open(None if patience is None else OPEN_SECONDS)

            def watched(what: str, done: int, total: int) -> None:
                # Not at once when the lock is lost: a Kafka that is away for longer than a session takes it,
                # and the answers of an hour are not thrown away for that.
                lock.check()
                progress(what, done, total)

            return _run(settings, task, watched, last, client, codecs, publisher)


def _run(
    settings: Settings,
    task: Task,
    progress: ProgressCallback,
    last: Snapshot | None,
    client: Client,
    codecs: _Codecs,
    publisher: Publisher,
) -> Report:
    started = clock.now()
    state = read_state(settings, task.job)
    declared = topics.declare(settings)

    def state_records() -> list[Record]:
        moment = round(clock.now().wall * 1000)
        name = declared.snapshot_state.name
        return [Record(name, key, value, moment) for key, value in state.changes().items()]

    state_topic = declared.snapshot_state.name
    state_id = admin.topic_id(clients.admin(settings.kafka), state_topic)

    def must_be_the_same() -> None:
        # In a new one what this run does not change would be missing, and nobody would know.
        if admin.topic_id(clients.admin(settings.kafka), state_topic) != state_id:
            raise TopologyError(f"the topic {state_topic} was made anew meanwhile; nothing was published")

    def save() -> None:
        if records := state_records():
            must_be_the_same()
            publisher.save(records)

    known, learnt = _look(settings, task, last, state, started.wall, progress, save)
    codec = codecs.of(SCHEMAS[task.job])
    job = (
        Currencies(settings.api, codec, known)
        if task.job == "currencies"
        else Translations(settings.api, task.scope, codec, known)
    )
    outcome = asyncio.run(_ask(client, job, progress))
    finished = clock.now().wall
    id_ = _id(started.wall)
    records = _records(outcome, topic_of(settings, task.job), codec, id_, finished, known.present)
    snapshot = _snapshot(id_, task, known, outcome, state.position, started.wall, finished)
    _remember(state, task, outcome)
    records += state_records()

    def seal(ends: Offsets) -> Record:
        value = codecs.of("snapshot").encode(replace(snapshot, ends=ends).to_avro())
        return Record(declared.snapshots.name, task.job.encode(), value, round(finished * 1000))

    progress("publishing", 0, 1)
    must_be_the_same()
    ends = publisher.publish(records, seal)
    progress("publishing", 1, 1)
    return Report(
        replace(snapshot, ends=ends),
        full=known.full,
        bets=learnt.bets,
        requests=client.requests,
        seconds=clock.now().monotonic - started.monotonic,
        coverage=outcome.coverage,
        notes=[*filter(None, [learnt.foreign]), *outcome.notes],
    )


def _remember(state: State, task: Task, outcome: Outcome) -> None:
    """What the next run has to know of this one. A narrowed one leaves to it all that was left out here."""
    state.owe(outcome.owed)
    state.miss(outcome.missing)
    if not task.scope.narrowed:
        state.see()


class _Codecs:
    """Of the schemas as they are registered."""

    def __init__(self, registry: Registry, ids: dict[str, int]) -> None:
        self._registry, self._ids = registry, ids

    def of(self, schema: str) -> Codec:
        return Codec(load(schema), self._ids[schema], self._registry.schema_by_id)


async def _ask(client: Client, job: Currencies | Translations, progress: ProgressCallback) -> Outcome:
    async with client:
        return await job.run(client, progress)


def _look(
    settings: Settings,
    task: Task,
    last: Snapshot | None,
    state: State,
    now: float,
    progress: ProgressCallback,
    save: Callable[[], None],
    *,
    visible: bool = False,
) -> tuple[JobInput, Learnt]:
    """What Kafka has: the present records, and what bets mention; and what was read for that.

    Of what an open transaction hides it takes what is `visible`, or waits for it.
    """
    ours = is_key if task.job == "translations" else bool
    present = read_compacted(settings, topic_of(settings, task.job), visible=visible, is_key=ours)
    learnt = learn(settings, task.job, state, now, save, lambda done, of: progress("settled bets", done, of))
    lost = _is_lost(last, present)
    # Whose debts are not known any more, those of old bets included: with the state that knew them.
    forgot = last is not None and last.owed != len(state.owed)
    full = task.full or lost or forgot or _is_due(settings, task, last, now)
    # Back from the newest bet: what a feed mentioned last is not forgotten because it is silent, nor because
    # our clock is wrong.
    newest = min(now, state.newest + HOUR_SECONDS)
    recent = newest - settings.api.recent_days * DAY_SECONDS
    if full:
        state.forget(newest - settings.api.keep_days * DAY_SECONDS)
    known = JobInput(
        last,
        present,
        state.references(0 if forgot else recent, full=full),
        full,
        kept=state.in_use() if full else None,
        selections_in_use=state.selections_in_use if full else None,
        owed=frozenset(state.owed),
        missing=frozenset(state.missing),
        lost=lost,
        turn=int(now),
    )
    if not state.newest:
        get().warning(
            "there are no settled bets to learn ids from: is topics.prefix right?",
            topic=topics.declare(settings).bets.name,
            exists=state.topic_id is not None,
        )
    return known, learnt


def _is_lost(last: Snapshot | None, present: Collection[bytes]) -> bool:
    """Whether the topic has not what the last snapshot left there: then it was made anew meanwhile."""
    return last is not None and len(present) != sum(counts.records for counts in last.counts.values())


def _is_due(settings: Settings, task: Task, last: Snapshot | None, now: float) -> bool:
    """Whether it is time to ask about everything anew; a narrowed run never is that."""
    if last is None:
        return True
    if task.scope.narrowed:
        return False
    languages = set(task.scope.languages) if task.job == "translations" else set[str]()
    # One from the future was made by a wrong clock.
    overdue = (
        last.refreshed_at is None
        or not 0 <= now - last.refreshed_at < settings.api.refresh_hours * HOUR_SECONDS
    )
    return overdue or not languages <= set(last.languages)


def _id(started: float) -> str:
    moment = datetime.fromtimestamp(started, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond:06}Z-{uuid.uuid4().hex[:8]}"


def _snapshot(
    id_: str,
    task: Task,
    known: JobInput,
    outcome: Outcome,
    position: Offsets,
    started: float,
    finished: float,
) -> Snapshot:
    """Without its ends."""
    last, narrowed = known.last, task.scope.narrowed
    refreshed = started if known.full and not narrowed else last.refreshed_at if last else None
    if known.lost and narrowed:
        refreshed = None  # what was lost is still to be asked about
    languages = task.scope.languages if task.job == "translations" else ()
    return Snapshot(
        job=task.job,
        id=id_,
        started_at=started,
        finished_at=finished,
        refreshed_at=refreshed,
        complete=not (narrowed or outcome.left_out or outcome.owed),
        languages=last.languages if last and narrowed else languages,
        forbidden=outcome.forbidden,
        left_out=outcome.left_out[:MOST_LEFT_OUT],
        owed=len(outcome.owed),
        counts=outcome.counts,
        position=position,
    )


def _records(
    outcome: Outcome,
    topic: str,
    codec: Codec,
    snapshot_id: str,
    now: float,
    present: Container[bytes] = (),
) -> list[Record]:
    """What is to be written, each record let go as soon as it is encoded; what is too large is left out."""
    moment = round(now * 1000)
    records = [Record(topic, key, None, moment) for key in sorted(outcome.removed)]
    while outcome.written:
        key, record = outcome.written.popitem()
        value = codec.encode(record.to_avro(snapshot_id))
        if len(value) > MAX_RECORD_BYTES:
            why = f"{len(value):,} bytes of names: Kafka takes {MAX_RECORD_BYTES:,}"
            outcome.leave_out(key, record.asked_as, why, is_new=key not in present)
        else:
            records.append(Record(topic, key, value, moment))
    return records
