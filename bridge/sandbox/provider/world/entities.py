"""The provider's world: who plays what, where, and what can be bet on it.

Everything follows from a seed, so the settled bets that name these things and any service that
describes them agree by their ids. Ids of markets and of selections are larger than 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from random import Random
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bridge.sandbox.provider.world import words

_MASK = (1 << 64) - 1


def mix(*numbers: int) -> int:
    """A 64-bit hash of integers: equal on every platform and Python, unlike `hash` (splitmix64)."""
    state = 0
    for number in numbers:
        state = (state + (number & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


Count = Annotated[int, Field(ge=1)]


class Sizes(BaseModel):
    """How many entities of each kind there are."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    sports: Count = 12
    regions: Count = 20
    leagues: Count = 200
    competitors: Count = 1000
    events: Count = 2000

    @model_validator(mode="after")
    def _leagues_have_teams(self) -> Self:
        if self.competitors < 2 * self.leagues:
            raise ValueError(
                f"{self.leagues} leagues need {2 * self.leagues} competitors or more: two teams each"
            )
        return self


@dataclass(frozen=True)
class Sport:
    """A sport. Races have runners, places and each-way bets."""

    id: int
    is_race: bool


@dataclass(frozen=True)
class Region:
    """A region; the feed calls its id `countryId`."""

    id: int


@dataclass(frozen=True)
class League:
    """A league; the feed calls its id `competitionId`."""

    id: int
    name: str
    sport: Sport
    region: Region


@dataclass(frozen=True)
class Competitor:
    """A team, a player or a runner, of one league."""

    id: int
    name: str
    league: League


@dataclass(frozen=True)
class Market:
    """A market of one event. Two lines of one type (over 2.5, over 3.5) are two markets."""

    id: int
    type: int
    name: str
    properties: dict[str, str] | None
    selections: tuple[int, ...]
    """Ids of the selections."""

    @cached_property
    def json(self) -> dict[str, object]:
        """As the feed shows it (interface, "MarketViewModel")."""
        return {"id": self.id, "type": self.type, "name": self.name, "properties": self.properties}


@dataclass(frozen=True)
class Event:
    """A fixture, a race or an outright, with its markets."""

    id: int
    name: str
    start: str | None
    """ISO 8601; None where the provider does not know it."""
    is_outright: bool
    league: League
    competitors: tuple[Competitor, ...]
    markets: tuple[Market, ...]


@dataclass(frozen=True)
class _MarketType:
    id: int
    name: str
    selections: int
    lines: tuple[dict[str, str] | None, ...] = (None,)
    """The properties of each line; one market each."""


_MATCH_MARKETS = (
    _MarketType(1, "Match result", 3),
    _MarketType(16, "Handicap", 2, ({"handicap": "-1.5"}, {"handicap": "0.5", "period": "1"})),
    _MarketType(18, "Total", 2, ({"total": "2.5"}, {"total": "3.5"})),
    _MarketType(29, "Both score", 2),
    _MarketType(40, "Rätt resultat", 24),
)
_RACE_MARKETS = (
    _MarketType(201, "Winner", 0),
    _MarketType(202, "Place", 0, ({"places": "3", "fraction": "1/5"}, {"places": "4", "fraction": "1/4"})),
)
_OUTRIGHT_MARKETS = (_MarketType(301, "Outright winner", 0),)
_RUNNERS = 8

FIRST_SPORT, FIRST_REGION = 1, 100
"""The first ids of those that are named by their number."""
SELECTIONS_A_MARKET = 100
"""The id of a selection is its market's times this, and its place in it."""
_FIRST_LEAGUE, _FIRST_COMPETITOR, _FIRST_EVENT = 5_000, 60_000, 20_000_000


class World:
    """All entities of one seed.

    `epoch` (Unix seconds) is when the feed's memory begins: events start in the three days before it.
    """

    def __init__(self, seed: int, epoch: float, sizes: Sizes | None = None) -> None:
        self.seed = seed
        sizes = sizes or Sizes()
        self._newest = datetime.fromtimestamp(epoch // 3600 * 3600, UTC)
        self.sports = tuple(Sport(FIRST_SPORT + i, i in words.RACES) for i in range(sizes.sports))
        self.regions = tuple(Region(FIRST_REGION + i) for i in range(sizes.regions))
        self.leagues = tuple(self._league(i) for i in range(sizes.leagues))
        self.competitors = tuple(self._competitor(i) for i in range(sizes.competitors))
        self.events = tuple(self._event(i) for i in range(sizes.events))

    def _league(self, index: int) -> League:
        sport = self.sports[index % len(self.sports)]
        region = self.regions[mix(self.seed, 1, index) % len(self.regions)]
        name = words.name(words.LEAGUES, index // len(self.sports))
        return League(_FIRST_LEAGUE + index, name, sport, region)

    def _competitor(self, index: int) -> Competitor:
        name = f"{words.name(words.PLACES, index)} {words.CLUBS[mix(self.seed, 2, index) % len(words.CLUBS)]}"
        return Competitor(_FIRST_COMPETITOR + index, name, self.leagues[index % len(self.leagues)])

    def _event(self, index: int) -> Event:
        random = Random(mix(self.seed, 3, index))
        league_index = int(random.random() * len(self.leagues))
        league = self.leagues[league_index]
        is_outright = random.random() < 0.03
        start = self._newest - timedelta(minutes=5 * int(random.random() * 864))
        members = self.competitors[league_index :: len(self.leagues)]
        first = int(random.random() * len(members))
        wanted = _RUNNERS if league.sport.is_race or is_outright else 2
        competitors = (members[first:] + members[:first])[:wanted]
        if is_outright:
            name = f"{league.name} – winner"
        elif league.sport.is_race:
            name = f"{words.name(words.PLACES, index % 30)} {start:%H:%M}"
        else:
            name = " – ".join(competitor.name for competitor in competitors)
        event_id = _FIRST_EVENT + index
        return Event(
            id=event_id,
            name=name,
            start=None if random.random() < 0.04 else f"{start:%Y-%m-%dT%H:%M:%SZ}",
            is_outright=is_outright,
            league=league,
            competitors=competitors,
            markets=_markets(event_id, is_outright, league.sport.is_race, len(competitors)),
        )


def market_types(sport: Sport) -> tuple[int, ...]:
    """Ids of all types of markets that events of the sport may have."""
    types = (_RACE_MARKETS if sport.is_race else _MATCH_MARKETS) + _OUTRIGHT_MARKETS
    return tuple(kind.id for kind in types)


def _markets(event_id: int, is_outright: bool, is_race: bool, runners: int) -> tuple[Market, ...]:
    types = _OUTRIGHT_MARKETS if is_outright else _RACE_MARKETS if is_race else _MATCH_MARKETS
    markets: list[Market] = []
    for kind in types:
        for properties in kind.lines:
            market_id = event_id * 1000 + len(markets)
            selections = tuple(market_id * SELECTIONS_A_MARKET + i for i in range(kind.selections or runners))
            markets.append(Market(market_id, kind.id, kind.name, properties, selections))
    return tuple(markets)
