"""The bombs: prints the worst effect of each, compiled and as plain Python."""

from __future__ import annotations

import pytest

from tests.blast import Damage, broken_bounds, run_plain, target
from tests.bombs import BOMBS, ENDLESS
from tests.harness import Place


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
async def test_bombs(place: Place, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints a row of the table for each bomb; all stay within the bounds.

    As plain Python, pydantic converts all messages.
    """
    print(f"\n{'pydantic alone, as plain Python' if plain else 'compiled'}\n")
    if plain:
        run_plain(place, monkeypatch)
    print("| bomb | on the wire | peak | longest hold |\n|---|---|---|---|")
    async with target(place) as bridge:
        for bomb in BOMBS:
            print(row(damage := await bridge.throw(bomb)), flush=True)
            assert broken_bounds(bomb, damage) == []
    async with target(place, FEED__IDLE_TIMEOUT_SECONDS="5") as bridge:
        for bomb in ENDLESS:
            print(row(damage := await bridge.throw(bomb, endless=True)), flush=True)
            assert broken_bounds(bomb, damage, connections=1) == []


def row(damage: Damage) -> str:
    """A row of the table."""
    wire = f"{damage.wire / 1024:,.0f} KiB"
    return f"| {damage.bomb} | {wire} | {damage.peak_mib:.0f} MiB | {damage.held_ms:.0f} ms |"
