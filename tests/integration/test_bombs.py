"""Messages meant to exhaust a bridge, on a real socket, before a real Kafka."""

from __future__ import annotations

import pytest

from tests.blast import HOLD_MS, MEMORY_MIB, Damage, run_plain, target
from tests.bombs import BOMBS, ENDLESS, MESSAGES, Bomb
from tests.harness import Place


@pytest.mark.parametrize(("plain", "bombs"), [(False, BOMBS), (True, MESSAGES)], ids=["compiled", "plain"])
async def test_no_bomb_takes_the_bridge_down(
    place: Place, plain: bool, bombs: list[Bomb], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each bomb becomes a dead letter or has no effect, stays within the bounds, and the next bet arrives.

    As plain Python, pydantic converts all messages.
    """
    if plain:
        run_plain(place, monkeypatch)
    async with target(place) as bridge:
        damages = [(bomb, await bridge.throw(bomb)) for bomb in bombs]
    assert [(bomb.name, found) for bomb, damage in damages if (found := wrong(bomb, damage))] == []
    place.balanced_counters()


@pytest.mark.parametrize("bomb", ENDLESS, ids=lambda bomb: bomb.name)
async def test_an_endless_message_ends_the_connection(place: Place, bomb: Bomb) -> None:
    """The bridge disconnects, and the next connection continues."""
    async with target(place, FEED__IDLE_TIMEOUT_SECONDS="3") as bridge:
        assert wrong(bomb, await bridge.throw(bomb, endless=True), connections=1) == []


def wrong(bomb: Bomb, damage: Damage, connections: int = 0) -> list[str]:
    """The bounds that a bomb has broken."""
    checks = {
        f"{damage.peak_mib:.0f} MiB": damage.peak_mib < MEMORY_MIB,
        f"held for {damage.held_ms:.0f} ms": damage.held_ms < HOLD_MS,
        f"dead letters: {damage.letters}": damage.letters == bomb.letters,
        f"bets: {damage.published}": damage.published == bomb.published,
        f"connections: {damage.connections}": damage.connections == connections,
    }
    return [what for what, is_right in checks.items() if not is_right]
