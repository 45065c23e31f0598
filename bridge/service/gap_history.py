"""Knows the gaps that former owners have declared, which the status page shows: no checkpoint has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from bridge.avro.codec import Codec
from bridge.clock import MICROS
from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.kafka.blocking import Worker
from bridge.kafka.errors import KafkaUnavailable
from bridge.log import get
from bridge.state.gap import Gap
from bridge.state.restore import gaps_since

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
                    gaps = await asyncio.wrap_future(
                        worker.submit(lambda: gaps_since(self._settings, codec, since))
                    )
                    self._former = tuple(gaps)
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
