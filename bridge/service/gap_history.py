"""Knows the gaps that former owners have declared, which the status page shows: no checkpoint has them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

from bridge.avro.codec import Codec
from bridge.clock import MICROS
from bridge.config import Settings
from bridge.kafka.blocking import in_background
from bridge.log import get
from bridge.records.gap import FeedGap
from bridge.service.pipeline import GAPS
from bridge.stored.gap_reader import gaps_since


class GapHistory:
    """The gaps of a feed that have been declared before this process owns it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._former: tuple[FeedGap, ...] = ()

    async def read(self, codec: Codec, since: float) -> None:
        """Read the gaps detected since then, Unix seconds. The page does without them until Kafka answers."""
        ended = threading.Event()
        try:
            reading = in_background("gaps", lambda: gaps_since(self._settings, codec, since, ended.is_set))
            gaps = await asyncio.wrap_future(reading)
            self._former = tuple(gaps)
        except Exception as error:  # noqa: BLE001  # whatever it is, the feed goes on
            get().warning("gaps of former owners are not shown", reason=str(error) or repr(error))
        finally:
            ended.set()

    def and_own(self, declared: Iterable[FeedGap]) -> tuple[FeedGap, ...]:
        """Return these gaps and those before them, in order, each once."""
        gaps = (*self._former, *declared)
        known = {(round(gap.start * MICROS), round(gap.end * MICROS)): gap for gap in gaps}
        return tuple(known.values())[-GAPS:]
