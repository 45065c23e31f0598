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
from bridge.errors import FeedLost
from bridge.feed.position import Position
from bridge.feed.protocol import Request
from bridge.feed.rate_limits import Limiter
from bridge.kafka.topics import declare
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import Connector
from bridge.service.interfaces import Connection, Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.status import Status
from bridge.service.timekeeper import Timekeeper
from bridge.state.counters import Counters
from bridge.state.deduplicator import Deduplicator
from tests.virtual.kafka import CODECS, Kafka, MemoryWriter
from tests.virtual.loop import given
from tests.virtual.world import EPOCH, FEED, Leadership


class Provider:
    """Records the revisions that it is asked for. Unless replaced, `answer` fails every attempt."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answer: Callable[[], Awaitable[Connection]] = self._refuse

    async def connect(
        self, _settings: FeedSettings, request: Request, _wake: Callable[[], None], _clock: Clock
    ) -> Connection:
        """Make one connection attempt."""
        self.asked.append(int(parse_qs(urlsplit(request.url).query)["revision"][0]))
        return await self.answer()

    async def _refuse(self) -> Connection:
        raise FeedLost("no connection")


class Desk:
    """The parts, and a provider. `asked_time` is the provider's clock as it reports it."""

    def __init__(self, *, revision: float = EPOCH - 100, show_bets: bool = False, **feed: Any) -> None:
        self.settings = Settings(
            feed=FEED.model_copy(update={"start": "1h", **feed}), web=WebSettings(show_bets=show_bets)
        )
        self.set_by = 0.0
        self.asked_time: Skew | FeedLost | None = None
        """The provider's clock less the machine's, or why it does not say."""
        self.answer_seconds = 0.0
        """How long the provider takes to report it."""
        self.still_owner = True
        self.looks = 0
        """How often it was asked for other feeds."""
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
            judge_topics=lambda *_: None,
            agree_on_topics=self.kafka.topics_agreed,
            restore=self.kafka.deduplicator,
            refuse_other_feeds=lambda *_, **__: self.kafka.checkpoint(),
            leadership=Leadership(),
            leadership_changed=asyncio.Event(),
            writer=lambda _: MemoryWriter(self.kafka),
            connect=self.provider.connect,
            ask_time=self._ask_time,
            clock=self.clock,
        )
        position = Position(self.settings.feed, int(revision))
        self.limiter = Limiter(self.settings.limits, 10, 15, ())
        reaches = self.kafka.topics_agreed(None)
        self.pipeline = Pipeline(
            self.settings, topics, CODECS, Deduplicator(), position, Counters(), None, reaches
        )
        wake = asyncio.Event()
        self.committer = Committer(dependencies.writer, self.clock, wake, lambda _: None)
        self.timekeeper = Timekeeper(self.settings.feed, self.clock, self._ask_time)
        self.checkpointer = Checkpointer(
            dependencies, self.limiter, self.pipeline, self.committer, self.timekeeper, None, reaches
        )
        self.connector = Connector(
            dependencies,
            self.limiter,
            self.pipeline,
            self.timekeeper,
            self.checkpointer,
            wake,
            self._still_owner,
            self._alone,
            lambda: self.connector.certain_revision,
            None,
        )

    async def _alone(self) -> None:
        self.looks += 1

    def machine(self) -> Instant:
        """Return the machine's clocks."""
        monotonic = asyncio.get_running_loop().time()
        return Instant(EPOCH + monotonic + self.set_by, monotonic)

    async def _ask_time(self, _settings: FeedSettings) -> Skew | None:
        if self.answer_seconds:
            await asyncio.sleep(self.answer_seconds)
        if isinstance(self.asked_time, FeedLost):
            raise self.asked_time
        return self.asked_time and self.asked_time.by(-EPOCH - self.set_by)

    async def _still_owner(self) -> bool:
        return self.still_owner


def with_desk(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turn a story into a test, which runs it in virtual time at a desk of its own."""
    return given(partial(Desk, **settings))
