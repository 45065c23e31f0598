"""Messages meant to exhaust a bridge, on a real socket, before a real Kafka."""

from __future__ import annotations

import pytest

from tests.blast import broken_bounds, target
from tests.bombs import BOMBS, ENDLESS, Bomb
from tests.harness import Place

pytestmark = pytest.mark.long


async def test_no_bomb_takes_the_bridge_down(place: Place) -> None:
    """Each bomb becomes a dead letter or has no effect, stays within the bounds, and the next bet arrives.

    As plain Python they are in `tests/chaos/test_bombs.py`.
    """
    async with target(place) as bridge:
        damages = [(bomb, await bridge.throw(bomb)) for bomb in BOMBS]
    assert [(bomb.name, found) for bomb, damage in damages if (found := broken_bounds(bomb, damage))] == []
    place.balanced_counters()


@pytest.mark.parametrize("bomb", ENDLESS, ids=lambda bomb: bomb.name)
async def test_an_endless_message_ends_the_connection(place: Place, bomb: Bomb) -> None:
    async with target(place, FEED__IDLE_TIMEOUT_SECONDS="3") as bridge:
        assert broken_bounds(bomb, await bridge.throw(bomb, endless=True), connections=1) == []
