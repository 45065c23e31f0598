"""The entities that bets are about."""

from __future__ import annotations

import pytest

from bridge.sandbox.provider.world.entities import Sizes, World, mix


def test_a_seed_gives_one_world(world: World) -> None:
    assert World(7, 1_790_000_000.0).events == world.events
    assert World(8, 1_790_000_000.0).events != world.events


def test_the_hash_is_the_same_everywhere() -> None:
    """What a seed means does not depend on the platform or on Python's version."""
    assert mix(0) == 0xE220A8397B1DCDAF  # splitmix64's own first number
    assert mix(7, 2, 1) != mix(7, 1, 2)


def test_ids_name_one_thing(world: World) -> None:
    markets = [market.id for event in world.events for market in event.markets]
    selections = [s for event in world.events for market in event.markets for s in market.selections]
    assert len(set(markets)) == len(markets)
    assert len(set(selections)) == len(selections)
    assert min(selections) > 2**31


def test_two_lines_of_one_type_are_two_markets(world: World) -> None:
    event = next(event for event in world.events if not event.is_outright and not event.league.sport.is_race)
    totals = [market for market in event.markets if market.type == 18]
    assert [market.properties for market in totals] == [{"total": "2.5"}, {"total": "3.5"}]
    assert totals[0].id != totals[1].id


def test_an_event_is_played_within_its_league(world: World) -> None:
    """The competitors of an event are of its league, and a match has two of them."""
    for event in world.events:
        assert {competitor.league for competitor in event.competitors} == {event.league}
        assert len(set(event.competitors)) == len(event.competitors) >= 2


def test_names_are_unique_and_not_all_ascii(world: World) -> None:
    """Names survive only if text is handled as UTF-8, and no two teams are called the same."""
    teams = [competitor.name for competitor in world.competitors]
    assert len(set(teams)) == len(teams)
    assert any(not name.isascii() for name in teams)


def test_sizes_can_be_large() -> None:
    """A world of the size that snapshot jobs are tried with has all that was asked for."""
    sizes = Sizes(sports=40, regions=50, leagues=5000, competitors=20_000, events=50)
    world = World(1, 0.0, sizes)
    assert [len(x) for x in (world.sports, world.leagues, world.competitors)] == [40, 5000, 20_000]


def test_a_league_needs_two_competitors() -> None:
    with pytest.raises(ValueError, match="10 leagues need 20 competitors"):
        Sizes(leagues=10, competitors=19)
