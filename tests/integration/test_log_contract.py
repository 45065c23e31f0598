"""What the tests in virtual time rely on, of a real Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bridge.clock import AnchoredClock
from bridge.kafka import clients
from bridge.ownership.batch_writer import BatchWriter
from bridge.ownership.election import LeaderElection, group_of
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge.records import topics
from bridge.registry import Registry
from bridge.service.startup import SchemaIds, stored_state
from tests.contracts.log import FEED, LogContract, Owner
from tests.harness import Place, until
from tests.integration.publishing import settings_of


class Real:
    """Topics of a real Kafka."""

    def __init__(self, place: Place) -> None:
        settings = settings_of(place)
        self.settings = settings.model_copy(update={"feed": settings.feed.model_copy(update={"name": FEED})})
        client = clients.admin(self.settings.kafka)
        self.topics = topics.ensure(client, self.settings, topics.Topics.of_feed)
        self.registry = Registry(self.settings.registry)
        self.codecs = self.registry.codecs_of_owner(self.settings.topics.prefix)
        self._owners: list[tuple[LeaderElection, BatchWriter]] = []

    async def owner(self) -> Owner:
        """A process with a membership of its own; the one before has left."""
        for election, _ in self._owners:
            election.close()
        group, topic = group_of(self.settings), self.topics.checkpoints.name
        election = LeaderElection(self.settings.kafka, group, topic, lambda: None)
        await until(lambda: election.is_owner, "leadership")
        ids = SchemaIds(self.settings, self.codecs, AnchoredClock())
        stored = stored_state(self.settings, self.topics, self.registry, self.codecs, ids)
        acknowledged = LostRecordGuard(self.settings, [topic.name for topic in self.topics.of_messages()])
        writer = BatchWriter(self.settings, election, stored.refuse_other_feeds, print, acknowledged)
        self._owners.append((election, writer))
        return Owner(self, writer, stored)

    def close(self) -> None:
        """End all of them."""
        for election, writer in self._owners:
            writer.close(abandon=True)
            election.close()
        self.registry.close()


class TestReal(LogContract):
    """The suite."""

    @pytest.fixture
    async def log(self, place: Place) -> AsyncIterator[Real]:
        real = await asyncio.to_thread(Real, place)
        yield real
        await asyncio.to_thread(real.close)
