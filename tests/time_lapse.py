"""Scrapes running processes, in a time lapse: rules that wait for minutes are judged within seconds."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Self

import httpx2
from prometheus_client.parser import text_string_to_metric_families

from tests.alerts import INTERVAL, Scrapes
from tests.harness import Bridge, until


class TimeLapse:
    """Scrapes each process every so many seconds, as if `INTERVAL` had passed between two scrapes."""

    def __init__(self, every: float) -> None:
        self.pods: dict[str, Bridge] = {}
        """The processes by the names of their pods."""
        self.scrapes = Scrapes(time.time(), speed=INTERVAL / every)
        self._every = every
        self._scraped = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._scrape())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def pass_by(self, seconds: float) -> None:
        """Wait until so many seconds have passed for Prometheus: by scrapes, on a busy machine too."""
        enough = self._scraped + seconds / INTERVAL
        await until(lambda: self._scraped >= enough or self._task.done(), f"{seconds} s of scrapes")
        if self._task.done():
            self._task.result()

    async def _scrape(self) -> None:
        while True:
            for pod, bridge in [*self.pods.items()]:  # more may come meanwhile
                if not bridge.address():
                    continue
                with suppress(httpx2.HTTPError):  # it ends: its series are stale, as for Prometheus
                    families = text_string_to_metric_families((await bridge.get("/metrics")).text)
                    labels = {"namespace": "n", "pod": pod}
                    self.scrapes.take(self._scraped * INTERVAL, labels, families)
            self._scraped += 1
            await asyncio.sleep(self._every)
