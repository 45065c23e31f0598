"""Knows the gaps that former owners have declared, which the status page shows: no checkpoint has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.clock import MICROS
from bridge.config import Settings
from bridge.errors import BridgeError, SchemaError
from bridge.kafka.blocking import Worker
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.reader import TopicScan, decode
from bridge.kafka.topics import declare
from bridge.log import get
from bridge.state.gap import Gap

RETRY_SECONDS = 10.0
MOST = 20
"""So many gaps are kept, the last ones."""


class GapHistory:
    """The gaps of a feed that have been declared before this process owns it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._former: tuple[Gap, ...] = ()

    async def read(self, codec: Codec, since: float) -> None:
        """Read the gaps detected since then, Unix seconds. The page does without them until Kafka answers."""
        worker = Worker("gaps")  # a daemon: reading may block
        try:
            while True:
                try:
                    self._former = await asyncio.wrap_future(worker.submit(lambda: self._read(codec, since)))
                    return
                except KafkaUnavailable:
                    await asyncio.sleep(RETRY_SECONDS)
                except BridgeError as error:
                    get().warning("gaps of former owners are not shown", reason=str(error))
                    return
        finally:
            worker.close(0)

    def and_own(self, declared: Iterable[Gap]) -> tuple[Gap, ...]:
        """Return these gaps and those before them, in order, each once."""
        known = {
            (round(gap.start * MICROS), round(gap.end * MICROS)): gap for gap in (*self._former, *declared)
        }
        return tuple(known.values())[-MOST:]

    def _read(self, codec: Codec, since: float) -> tuple[Gap, ...]:
        found: list[Gap] = []

        def take(message: Message) -> None:
            try:
                gap = Gap.from_avro(decode(codec, message, message.value() or b""))
            except SchemaError:  # `bridge gaps` tells it
                return
            if gap.feed == self._settings.feed.name:
                found.append(gap)

        TopicScan(declare(self._settings).gaps.name, take, start=since, visible=True).read(self._settings)
        return tuple(found[-MOST:])
