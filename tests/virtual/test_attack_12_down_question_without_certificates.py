"""PROCESS DOWN (exit 2) while the connection is fine. Rule broken: nothing takes it down.

`Timekeeper.watch` asks beside everything else, but only FeedError of it is borne: `clock.ask` raises SettingsError
where the authority's file or the proxy cannot be used just now, such as while it is rotated.
"""

from __future__ import annotations

import asyncio

from bridge.config import FeedSettings
from bridge.errors import SettingsError
from bridge.sink.checkpoint import State
from tests.virtual.world import World, play


def test_a_question_that_cannot_be_asked_ends_nothing() -> None:
    """A step of the clock by 3 s while feed.ca_file is being replaced."""

    async def story(world: World) -> None:
        away = False
        ask = world.feed.ask_time

        async def ask_time(settings: FeedSettings) -> object:
            if away:
                raise SettingsError("feed.ca_file: cannot use ca.pem as certificates: No such file")
            return await ask(settings)

        world.feed.ask_time = ask_time  # type: ignore[method-assign,assignment]
        world.start()
        await world.until(State.LIVE)
        away = True
        world.set_by = 3
        await asyncio.sleep(10)
        away = False
        await asyncio.sleep(100)
        await world.check()

    play(story, rate=0.5)
