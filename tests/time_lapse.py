"""Scrapes running processes, in a time lapse: rules that wait for minutes are judged within seconds."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import suppress
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from tests.alerts import INTERVAL, Scrapes
from tests.harness import Bridge


class TimeLapse:
    """Scrapes each process every so many seconds, as if `INTERVAL` had passed between two scrapes."""

    def __init__(self, every: float) -> None:
        self.pods: dict[str, Bridge] = {}
        """The processes by the names of their pods."""
        self.scrapes = Scrapes(time.time(), speed=INTERVAL / every)
        self._every = every

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._scrape())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def pass_by(self, seconds: float) -> None:
        """Wait until so many seconds have passed for Prometheus."""
        await asyncio.sleep(seconds / INTERVAL * self._every)
        self._task.done() and self._task.result()

    async def _scrape(self) -> None:
        for number in itertools.count():
            for pod, bridge in self.pods.items():
                if bridge.address():
                    families = text_string_to_metric_families((await bridge.get("/metrics")).text)
                    labels = {"namespace": "n", "pod": pod}
                    self.scrapes.take(number * INTERVAL, labels, families)
            await asyncio.sleep(self._every)
