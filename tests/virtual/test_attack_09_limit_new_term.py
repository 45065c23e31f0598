"""LIMIT BROKEN. Rule broken: within a process, what has passed is what the steady clock says (0010).

`Reign._compare_clocks` anchors to the wall clock before it asks. Where that was set wrong (the provider had said so, and
it was not believed) and the provider cannot be asked just now, the ledger of the last term looks an hour older.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from bridge.errors import ClockError, NotOwner
from bridge.instant import AnchoredClock
from bridge.simulator.faults import Drop
from bridge.sink.checkpoint import State
from tests.virtual import world as world_module
from tests.virtual.world import HOUR, World, play


def test_a_second_term_in_one_process_keeps_the_age_of_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leadership is lost and won again while the wall clock is wrong and the provider away for 5 s."""

    async def story(world: World) -> None:
        clock = AnchoredClock(world.clock)  # one for the process, as `bridge.app` has it
        monkeypatch.setattr(world_module, "AnchoredClock", lambda _: clock)
        world.start()
        await world.until(State.LIVE)
        for _ in range(5):
            world.inflict(Drop())
            await asyncio.sleep(15)
        world.set_by = HOUR
        await asyncio.sleep(5)
        assert clock.stepped > HOUR / 2  # not believed
        world.leadership.term = 2
        assert world.reign is not None
        world.reign.wake()
        assert isinstance(await world.ended(), NotOwner)
        world.unreachable(5)
        world.start()
        with suppress(ClockError):
            await asyncio.sleep(100)
            await world.kill()
        assert [breach.reason for breach in world.provider.breaches] == []

    play(story, rate=0.5)
