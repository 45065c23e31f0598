"""PROCESS DOWN by an AssertionError. Rule broken: no clock takes it down.

`Dialler._look_back` may ask for the time a second time after `_take_back` (what is certain is older than the edge by
then). `Checkpoint.follows` allows the way back only while the old position is later than `updated_at`.
"""

from __future__ import annotations

import asyncio

from tests.virtual.desk import Desk, at_desk
from tests.virtual.world import DAY, EPOCH


def test_a_reset_is_committed_however_long_the_second_question_takes() -> None:
    """The position is 17 s ahead after the first answer, and 3 s past after the second."""

    async def story(desk: Desk) -> None:
        async def ask(_settings: object) -> None:
            await asyncio.sleep(20)

        await desk.journal.commit()
        desk.timekeeper._ask = ask
        await desk.dialler.connect()

    at_desk(story, revision=EPOCH + 37, certain=int(EPOCH - 4 * DAY), connect_timeout_seconds=30.0)
