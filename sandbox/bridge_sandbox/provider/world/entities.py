"""The provider's world: who plays what, where, and what can be bet on it.

Everything follows from a seed, so the settled bets that name these things and any service that
describes them agree by their ids. Ids of markets and of selections are larger than 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from operator import attrgetter
from random import Random
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.world import words
from bridge_sandbox.provider.world.words import Language

Indexed = Literal["sport", "region", "league", "competitor", "event"]
"""The kinds whose ids are unique."""
Kind = Literal[Indexed, "market", "selection", "selection-template", "market-type-template"]
Relations = Mapping[str, int | tuple[int, ...]]

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


class Sizes(Model):
    """How many entities of each kind there are."""

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
class Entity:
    """Something with an id and a name in every language."""

    kind: ClassVar[Kind]
    _related: ClassVar[Mapping[str, str]]
    id: int

    def __init_subclass__(cls, *, kind: Kind, **related: str) -> None:
        """Take the kind and, for each relation, the attribute with its ids."""
        cls.kind, cls._related = kind, related

    def text(self, language: Language) -> str:
        """Return the name, which follows from the seed as the entity does."""
        raise NotImplementedError

    @property
    def relations(self) -> Relations:
        """The ids of related entities."""
        return {name: attrgetter(path)(self) for name, path in self._related.items()}


@dataclass(frozen=True)
class Sport(Entity, kind="sport"):
    """A sport. Races have runners, places and each-way bets."""

    is_race: bool

    def text(self, language: Language) -> str:
        """Such as `Fotboll`, in Swedish."""
        return words.name(words.SPORTS[language], self.id - _FIRST_SPORT)

    def templates(self) -> Iterator[MarketTypeTemplate]:
        """Generate the templates of all types of markets that its events may have."""
        for market_type in (_RACE_MARKETS if self.is_race else _MATCH_MARKETS) + _OUTRIGHT_MARKETS:
            yield MarketTypeTemplate(market_type.id, self)


@dataclass(frozen=True)
class Region(Entity, kind="region"):
    """A region; the feed calls its id `countryId`."""

    def text(self, language: Language) -> str:
        """Such as `Schweden`, in German."""
        return words.name(words.REGIONS[language], self.id - _FIRST_REGION)


@dataclass(frozen=True)
class League(Entity, kind="league", sportId="sport.id", regionId="region.id"):
    """A league; the feed calls its id `competitionId`."""

    name: str
    sport: Sport
    region: Region

    def text(self, language: Language) -> str:
        """Its own name with its region: several regions have a Premier League."""
        return f"{self.name} ({self.region.text(language)})"


@dataclass(frozen=True)
class Competitor(Entity, kind="competitor", sportId="league.sport.id", leagueId="league.id"):
    """A team, a player or a runner, of one league."""

    name: str
    league: League

    def text(self, language: Language) -> str:
        """Its own name, marked by language."""
        return words.CLUB[language].format(self.name)


@dataclass(frozen=True)
class MarketTypeTemplate(Entity, kind="market-type-template", sportId="sport.id", marketTypeId="id"):
    """What a sport calls a market type, whose id it has."""

    sport: Sport

    def text(self, language: Language) -> str:
        """Such as `Football: Total {total}`."""
        return f"{self.sport.text(language)}: {words.MARKET_TYPES[self.id][language]}"


@dataclass(frozen=True)
class Market(Entity, kind="market", eventId="event_id", marketTypeId="type"):
    """A market of one event. Two lines of one type (over 2.5, over 3.5) are two markets."""

    type: int
    name: str
    properties: dict[str, str] | None
    selections: tuple[int, ...]
    """Ids of the selections."""
    event_id: int
    sport: Sport
    competitors: tuple[Competitor, ...]

    @cached_property
    def json(self) -> dict[str, object]:
        """As the feed shows it (interface, "MarketViewModel")."""
        return {"id": self.id, "type": self.type, "name": self.name, "properties": self.properties}

    def text(self, language: Language) -> str:
        """Its type's template with its properties, such as `Football: Total 2.5`."""
        return MarketTypeTemplate(self.type, self.sport).text(language).format_map(self.properties or {})


@dataclass(frozen=True)
class SelectionTemplate(Entity, kind="selection-template", marketTypeId="market.type"):
    """What the selection with its id is called in any event."""

    market: Market
    index: int
    """Place in the market, from 0."""

    def text(self, language: Language) -> str:
        """Such as `Over {total}` or `{competitor1}`.

        Placeholders are the market's properties and the event's competitors, numbered from 1.
        """
        match self.market.type:
            case 18 | 29 as worded:
                return words.SELECTIONS[_WORDED[worded][self.index]][language]
            case 40:
                return ":".join(map(str, divmod(self.index, _GOALS)))
            case 16:
                return f"{{competitor{self.index + 1}}} [{{handicap}}]"
            case 1:
                return ("{competitor1}", words.SELECTIONS["draw"][language], "{competitor2}")[self.index]
        return f"{{competitor{self.index + 1}}}"


@dataclass(frozen=True)
class Selection(
    SelectionTemplate,
    kind="selection",
    eventId="market.event_id",
    marketId="market.id",
    marketTypeId="market.type",
):
    """A selection of one market."""

    def text(self, language: Language) -> str:
        """The template with everything filled in, such as `Over 2.5`."""
        sides = enumerate(self.market.competitors, 1)
        values = {f"competitor{number}": side.text(language) for number, side in sides}
        return super().text(language).format_map(values | (self.market.properties or {}))


@dataclass(frozen=True)
class Event(
    Entity,
    kind="event",
    sportId="league.sport.id",
    regionId="league.region.id",
    leagueId="league.id",
    competitorIds="competitor_ids",
):
    """A fixture, a race or an outright, with its markets."""

    name: str
    start: str | None
    """ISO 8601; None where the provider does not know it."""
    is_outright: bool
    league: League
    competitors: tuple[Competitor, ...]
    markets: tuple[Market, ...]

    def text(self, language: Language) -> str:
        """Both teams, the race, or the league whose winner is bet on."""
        if self.is_outright:
            return f"{self.league.text(language)} – {words.MARKET_TYPES[301][language]}"
        if self.league.sport.is_race:
            return words.RACE[language].format(self.name)
        return " – ".join(competitor.text(language) for competitor in self.competitors)

    @property
    def competitor_ids(self) -> tuple[int, ...]:
        """The ids of its competitors."""
        return tuple(competitor.id for competitor in self.competitors)


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

_WORDED = {18: ("over", "under"), 29: ("yes", "no")}
"""The market types whose selections are words, in the order of the selections."""
_GOALS = 5

SELECTIONS_A_MARKET = 100
"""The id of a selection is its market's times this, and its place in it."""
_FIRST_SPORT, _FIRST_REGION, _FIRST_LEAGUE = 1, 100, 5_000
_FIRST_COMPETITOR, _FIRST_EVENT = 60_000, 20_000_000


class World:
    """All entities of one seed.

    `epoch` (Unix seconds) is when the feed's memory begins: events start in the three days before it.
    """

    def __init__(self, seed: int, epoch: float, sizes: Sizes | None = None) -> None:
        self.seed = seed
        sizes = sizes or Sizes()
        self._newest = datetime.fromtimestamp(epoch // 3600 * 3600, UTC)
        self.sports = tuple(Sport(_FIRST_SPORT + i, i in words.RACES) for i in range(sizes.sports))
        self.regions = tuple(Region(_FIRST_REGION + i) for i in range(sizes.regions))
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
            markets=_markets(event_id, is_outright, league.sport, competitors),
        )


def _markets(
    event_id: int, is_outright: bool, sport: Sport, competitors: tuple[Competitor, ...]
) -> tuple[Market, ...]:
    types = _OUTRIGHT_MARKETS if is_outright else _RACE_MARKETS if sport.is_race else _MATCH_MARKETS
    markets: list[Market] = []
    for kind in types:
        for properties in kind.lines:
            number = event_id * 1000 + len(markets)
            count = kind.selections or len(competitors)
            selections = tuple(number * SELECTIONS_A_MARKET + i for i in range(count))
            of_event = (event_id, sport, competitors)
            markets.append(Market(number, kind.id, kind.name, properties, selections, *of_event))
    return tuple(markets)
