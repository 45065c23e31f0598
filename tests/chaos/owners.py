"""Several bridges of one feed: which of them owns it, and the judgement at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bridge.errors import BridgeError
from bridge.ownership.election import look
from bridge.ownership.group import Group
from tests import judge
from tests.chaos.provider import Provider
from tests.harness import PATIENCE, Bridge, Place

FEED = "settlement-v4"
CAUGHT_UP_SECONDS = 60.0
"""Until a bridge that has just connected knows that it has caught up, by pings in the end."""


class Members:
    """The bridges of a place as the owner group has them."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._admin = place.admin()
        self._names: dict[Bridge, str] = {}

    async def group(self) -> Group:
        """Return the owner group; an empty one while it cannot be listed."""
        prefix = self._place.prefix
        try:
            found = await asyncio.to_thread(
                look, self._admin, f"{prefix}.{FEED}.owner", f"{prefix}.checkpoints"
            )
        except BridgeError:
            return Group()
        return found or Group()

    async def owner(self) -> Bridge | None:
        """Return the running bridge that is assigned the feed, or None."""
        holders = [member.name for member in (await self.group()).members if member.holds]
        running = [bridge for bridge in self._place.bridges if bridge.process.poll() is None]
        return next((bridge for bridge in running if self.name(bridge) in holders), None)

    def name(self, bridge: Bridge) -> str:
        """Return the name with which a bridge is a member, empty before it has logged it."""
        if bridge not in self._names:
            started = (line["owner"] for line in bridge.lines() if line.get("event") == "starting")
            if name := next(started, ""):
                self._names[bridge] = name
        return self._names.get(bridge, "")


async def judged(
    place: Place,
    provider: Provider,
    *,
    scale: float,
    seed: int,
    excused: tuple[judge.Excuse, ...] = (),
    margin: float = 90.0,
    settled: Callable[[], Awaitable[None]] | None = None,
) -> judge.Report:
    """End the stream, wait until all of it is visible, end the bridges, and judge.

    `margin` is that of the position, in seconds, by default that of the product.
    `settled` waits instead; by default the judge is asked what is missing, for which it remembers each bet.
    Fails if a bridge that runs ends by itself, or does not end when told to.
    """
    await provider.post("/stop")
    case = judge.Case(
        place.cluster.bootstrap_servers,
        place.cluster.registry_url,
        place.prefix,
        provider.control_url,
        seed=seed,
        feed=FEED,
        limits_scale=scale,
        excused=excused,
        position_margin=margin + CAUGHT_UP_SECONDS,
    )
    bridges = [it for it in place.bridges if it is not provider.process and it.process.poll() is None]
    with TemporaryDirectory(dir=place.directory, prefix="judge") as directory:
        work = Path(directory)
        await (settled() if settled else _nothing_missing(case, work, bridges))
        for bridge in bridges:
            code = await bridge.end()
            assert code == 0, f"exit {code}\n{bridge.text()[-2000:]}"
        return await asyncio.to_thread(judge.judge, case, work)


async def _nothing_missing(case: judge.Case, work: Path, bridges: Sequence[Bridge]) -> None:
    """Return once nothing is missing, or for long no more has come: the judge then says what it is."""
    left, still_since = -1, time.monotonic()
    while missing := await asyncio.to_thread(judge.missing, case, work):
        for bridge in bridges:
            assert bridge.process.poll() is None, bridge.text()[-2000:]
        if missing != left:
            left, still_since = missing, time.monotonic()
        if time.monotonic() > still_since + PATIENCE:
            return
        await asyncio.sleep(1)
