"""The start of `bridge run`: creates its topics and registers its schemas, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from bridge.avro.codec import Codecs
from bridge.clock import Clock
from bridge.config import Settings
from bridge.errors import BridgeError, IdsChanged
from bridge.kafka import clients
from bridge.kafka.blocking import Clients, Worker, destroy_in_background, in_background
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import outage_of
from bridge.kafka.reader import with_fresh_clients
from bridge.log import get
from bridge.ownership.batch_writer import transactional
from bridge.records import topics
from bridge.records.checkpoint import State
from bridge.registry import Registry, RegistryUnavailable, confirm_ids
from bridge.service.interfaces import StoredState
from bridge.service.status import Status
from bridge.stored.checkpoint_reader import CheckpointReader
from bridge.stored.reach_reader import ReachReader
from bridge.stored.restore import PublishedReader

T = TypeVar("T")

RETRY_SECONDS = 2.0
SILENT_SECONDS = 8.0
"""How much later a service that does not answer at all is told, at the start."""
CONFIRMED_SECONDS, CONFIRM_SECONDS = 10.0, 2.0
"""A new owner asks the registry again for its ids after so long, for so long."""
KAFKA = "Kafka"


class SchemaIds:
    """The ids that the registry gave our schemas: another one, or an older state of it, has others."""

    def __init__(self, settings: Settings, codecs: Codecs, clock: Clock) -> None:
        self._settings = settings
        self._codecs = codecs
        self._clock = clock
        self._confirmed_at = clock().monotonic

    def confirm(self) -> None:
        """Ask the registry again. Blocks. Raises IdsChanged, and as `Registry.register`."""
        confirm_ids(self._settings.registry, self._settings.topics.prefix, self._codecs)
        self._confirmed_at = self._clock().monotonic

    def confirm_unless(self, last: int) -> None:
        """Do so unless the id with which bets were written `last` is ours."""
        if last != self._codecs.bets.schema_id:
            self.confirm()

    async def confirm_if_due(self) -> None:
        """Ask again if that was long ago, and go on without an answer in time. Raises IdsChanged."""
        if self._clock().monotonic <= self._confirmed_at + CONFIRMED_SECONDS:
            return
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                await asyncio.wrap_future(in_background("registry", self.confirm))
        except IdsChanged:
            raise
        except (TimeoutError, BridgeError) as error:
            get().debug("registry not asked again", reason=str(error))


def stored_state(
    settings: Settings, declared: topics.Topics, registry: Registry, codecs: Codecs, ids: SchemaIds
) -> StoredState:
    """Return how what is in Kafka is read."""
    schema = registry.schema_by_id
    return StoredState(
        judge_topics=partial(
            with_fresh_clients,
            settings,
            lambda client, _: topics.ensure(client, settings, topics.Topics.of_feed),
        ),
        agree_on_topics=ReachReader(settings, declared, schema, confirm=ids.confirm_unless).agree,
        restore=PublishedReader(settings, declared, codecs.bets).deduplicator,
        refuse_other_feeds=CheckpointReader(settings, declared, schema).refuse_other_feeds,
    )


class Prepared(NamedTuple):
    """What a process needs for all its terms."""

    topics: topics.Topics
    codecs: Codecs
    ids: SchemaIds
    stored: StoredState


async def prepare(settings: Settings, status: Status, clock: Clock) -> Prepared:
    """Create topics and register schemas; waits for Kafka and the registry."""
    worker = Worker("start")  # a daemon thread: the process can end while Kafka is unreachable

    outage = outage_of(settings.kafka)

    async def patiently(service: str, job: Callable[[], T]) -> T:
        is_known = False
        """Why it waits for this service."""
        while True:
            answer = asyncio.wrap_future(worker.submit(job))
            try:
                await asyncio.wait({answer}, timeout=RETRY_SECONDS)
                if service == KAFKA and not answer.done() and outage.cause and not is_known:
                    is_known = True
                    status.become(State.WAITING_FOR_KAFKA, outage.explain("no broker answers"))
                await asyncio.wait({answer}, timeout=SILENT_SECONDS)
                if not answer.done() and not is_known:  # a probe would end the process
                    status.become(State.WAITING_FOR_KAFKA, f"{service} has not answered yet")
                return await answer
            except (KafkaUnavailable, RegistryUnavailable) as error:
                is_known = True
                status.become(State.WAITING_FOR_KAFKA, str(error))
                await asyncio.sleep(RETRY_SECONDS)
            finally:
                answer.cancel()

    try:
        declared = await patiently(
            KAFKA, lambda: topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.of_feed)
        )
        registry = Registry(settings.registry)
        codecs = await patiently(
            f"the schema registry at {registry.address}",
            lambda: registry.codecs_of_owner(settings.topics.prefix),
        )
        # Created only to validate their settings now: a later failure then means that a file is missing.
        for validate in (
            lambda: destroy_in_background(transactional(settings)),
            lambda: Clients(settings).close(),
        ):
            await asyncio.wrap_future(worker.submit(validate))
    finally:
        worker.close(0)
    ids = SchemaIds(settings, codecs, clock)
    return Prepared(declared, codecs, ids, stored_state(settings, declared, registry, codecs, ids))
