"""What the REST side knows, changed from outside."""

from __future__ import annotations

import pytest

from bridge_sandbox.provider.world.catalogue import Unknown, WorldCatalogue
from bridge_sandbox.provider.world.entities import Kind, Sizes, World
from tests.unit.sandbox.provider.conftest import ORIGIN

WORLD = World(7, ORIGIN, Sizes(sports=2, regions=1, leagues=2, competitors=4, events=3))
MARKET = WORLD.events[0].markets[0]
KNOWN: dict[Kind, int] = {
    "sport": WORLD.sports[0].id,
    "region": WORLD.regions[0].id,
    "league": WORLD.leagues[0].id,
    "competitor": WORLD.competitors[0].id,
    "event": WORLD.events[0].id,
    "market": MARKET.id,
    "selection": MARKET.selections[-1],
    "selection-template": MARKET.selections[-1],
    "market-type-template": MARKET.type,
}


@pytest.mark.parametrize("kind", KNOWN)
def test_only_what_is_known_can_be_changed(kind: Kind) -> None:
    catalogue = WorldCatalogue(WORLD, ("en",))
    wrong = KNOWN[kind] + 1 if kind.startswith("selection") else 9
    with pytest.raises(Unknown, match=f"there is no {kind} {wrong}"):
        catalogue.rename(kind, wrong, "x")
    with pytest.raises(Unknown, match=f"there is no {kind} {wrong}"):
        catalogue.remove(kind, wrong)
    catalogue.rename(kind, KNOWN[kind], "x")
    catalogue.remove(kind, KNOWN[kind])
    with pytest.raises(Unknown, match=f"there is no {kind} {KNOWN[kind]}"):
        catalogue.remove(kind, KNOWN[kind])
    assert catalogue.changes == 2


def test_a_name_in_an_unknown_language_is_refused() -> None:
    catalogue = WorldCatalogue(WORLD, ("en", "sv"))
    with pytest.raises(Unknown, match="there is no language de, only en, sv"):
        catalogue.rename("sport", 1, "x", "de")
