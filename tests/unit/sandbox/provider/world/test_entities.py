"""The entities that bets are about."""

from __future__ import annotations

from bridge_sandbox.provider.world.entities import World, mix


def test_the_hash_is_the_same_everywhere() -> None:
    assert mix(0) == 0xE220A8397B1DCDAF  # splitmix64's own first number
    assert mix(7, 2, 1) != mix(7, 1, 2)


def test_ids_name_one_thing(world: World) -> None:
    markets = [market.id for event in world.events for market in event.markets]
    selections = [s for event in world.events for market in event.markets for s in market.selections]
    assert len(set(markets)) == len(markets)
    assert len(set(selections)) == len(selections)
    assert min(selections) > 2**31


def test_an_event_is_played_within_its_league(world: World) -> None:
    for event in world.events:
        assert {competitor.league for competitor in event.competitors} == {event.league}
        assert len(set(event.competitors)) == len(event.competitors) >= 2


def test_names_are_unique_and_not_all_ascii(world: World) -> None:
    teams = [competitor.name for competitor in world.competitors]
    assert len(set(teams)) == len(teams)
    assert any(not name.isascii() for name in teams)
