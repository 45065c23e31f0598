"""The parts of a term of leadership, assembled by hand: a checkpointer and a connector over memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bridge.clock import AnchoredClock, Clock, Instant
from bridge.clock_skew import Skew
from bridge.config import FeedSettings, Settings, WebSettings
from bridge.dedup.deduplicator import Deduplicator
from bridge.errors import FeedLost
from bridge.feed.protocol import HandshakeRequest
from bridge.kafka.outage import Outage
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.records.topics import declare
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import Connector
from bridge.service.interfaces import Dependencies, FeedConnection
from bridge.service.pipeline import Pipeline
from bridge.service.status import Status
from bridge.service.term import Term
from bridge.service.timekeeper import Timekeeper
from tests.virtual.kafka import CODECS, Kafka, MemoryWriter
from tests.virtual.loop import given
from tests.virtual.world import EPOCH, FEED, Leadership


class Provider:
    """Records the revisions that it is asked for. Unless replaced, `answer` fails every attempt."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answer: Callable[[], Awaitable[FeedConnection]] = self._refuse
        self.asked_time: Skew | FeedLost | None = None
        """Its clock less the machine's, or why it does not say."""
        self.answer_seconds = 0.0
        """How long it takes to report it."""
        self.machine_set_by = 0.0

    async def connect(
        self, _settings: FeedSettings, request: HandshakeRequest, _wake: Callable[[], None], _clock: Clock
    ) -> FeedConnection:
        """Make one connection attempt."""
        self.asked.append(int(parse_qs(urlsplit(request.url).query)["revision"][0]))
        return await self.answer()

    async def ask_time(self, _settings: FeedSettings) -> Skew | None:
        """Report the time."""
        if self.answer_seconds:
            await asyncio.sleep(self.answer_seconds)
        if isinstance(self.asked_time, FeedLost):
            raise self.asked_time
        return self.asked_time and self.asked_time.by(-EPOCH - self.machine_set_by)

    async def _refuse(self) -> FeedConnection:
        raise FeedLost("no connection")


class Desk:
    """The parts, and a provider. `asked_time` is the provider's clock as it reports it."""

    def __init__(self, *, revision: float = EPOCH - 100, show_bets: bool = False, **feed: Any) -> None:
        self.settings = Settings(
            feed=FEED.model_copy(update={"start": "1h", **feed}), web=WebSettings(show_bets=show_bets)
        )
        self.is_owner = True
        self.provider = Provider()
        self.clock = AnchoredClock(self.machine)
        topics = declare(self.settings)
        self.kafka = Kafka(topics)
        self.status = Status("f", self.clock)
        dependencies = Dependencies(
            settings=self.settings,
            status=self.status,
            owner_id="me",
            topics=topics,
            codecs=CODECS,
            stored=self.kafka.stored,
            leadership=Leadership(),
            leadership_changed=asyncio.Event(),
            writer=lambda _: MemoryWriter(self.kafka),
            connect=self.provider.connect,
            ask_time=self.provider.ask_time,
            clock=self.clock,
        )
        wake = asyncio.Event()
        keeper = Timekeeper(self.settings.feed, self.clock, self.provider.ask_time)
        start = Checkpoint("f", int(revision), State.CONNECTING, (), Counters(), self.clock().wall, "me")
        reaches = self.kafka.agree_on_topics(None)
        self.term = Term(self.settings, self.status, keeper, wake, start, None, reaches)
        self.pipeline = Pipeline(self.term, topics, CODECS, Deduplicator())
        self.committer = Committer(dependencies.writer, self.clock, wake, lambda _: None, Outage())
        self.checkpointer = Checkpointer(dependencies, self.term, self.pipeline, self.committer)
        self.connector = Connector(self.provider.connect, self.term, self.pipeline, self.checkpointer, self)

    async def refuse_other_feeds(self) -> None:
        """There are none."""

    def machine(self) -> Instant:
        """Return the machine's clocks."""
        monotonic = asyncio.get_running_loop().time()
        return Instant(EPOCH + monotonic + self.provider.machine_set_by, monotonic)

    async def still_owner(self) -> bool:
        """Return what the test says."""
        return self.is_owner


def with_desk(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turn a story into a test, which runs it in virtual time at a desk of its own."""
    return given(partial(Desk, **settings))
