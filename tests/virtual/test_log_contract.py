"""The memory Kafka keeps what a real one keeps."""

from __future__ import annotations

import pytest

from bridge.config import FeedSettings, Settings
from bridge.records.topics import declare
from tests.contracts.log import FEED, LogContract, Owner
from tests.virtual.kafka import CODECS, Kafka, MemoryWriter


class Memory:
    """Topics in memory."""

    codecs = CODECS

    def __init__(self) -> None:
        self.topics = declare(Settings(feed=FeedSettings(name=FEED)))
        self._kafka = Kafka(self.topics)

    async def owner(self) -> Owner:
        """A process with a writer of its own."""
        return Owner(self, MemoryWriter(self._kafka), self._kafka.stored)


class TestMemory(LogContract):
    """The suite."""

    @pytest.fixture
    async def log(self) -> Memory:
        return Memory()
