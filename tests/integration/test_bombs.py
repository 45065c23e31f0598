"""Messages meant to exhaust a bridge, compiled and as plain Python, on a real socket, before a real Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.blast import broken_bounds, target
from tests.bombs import BOMBS, ENDLESS, Bomb
from tests.harness import Place
from tests.processes import start_cold

PLAIN = Path(__file__).parents[1] / "plain"


@pytest.fixture(params=["compiled", "plain"])
def attacked(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place whose bridges run in this form: as plain Python, pydantic converts all messages."""
    if request.param == "plain":
        place.start = start_cold  # a forked one has the modules of its server
        monkeypatch.setenv("PYTHONPATH", str(PLAIN))
    return place


pytestmark = pytest.mark.long


async def test_no_bomb_takes_the_bridge_down(attacked: Place) -> None:
    """Each bomb becomes a dead letter or has no effect, stays within the bounds, and the next bet arrives."""
    async with target(attacked) as bridge:
        damages = [(bomb, await bridge.throw(bomb)) for bomb in BOMBS]
    print(*(damage for _, damage in damages), sep="\n")
    assert [(bomb.name, found) for bomb, damage in damages if (found := broken_bounds(bomb, damage))] == []
    attacked.balanced_counters()


@pytest.mark.parametrize("bomb", ENDLESS, ids=lambda bomb: bomb.name)
async def test_an_endless_message_ends_the_connection(attacked: Place, bomb: Bomb) -> None:
    async with target(attacked, FEED__IDLE_TIMEOUT_SECONDS="3") as bridge:
        assert broken_bounds(bomb, await bridge.throw(bomb, endless=True), connections=1) == []
