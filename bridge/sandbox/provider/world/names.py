"""Words that the world's names are made of. Many are not ASCII, as in a real provider's data."""

from __future__ import annotations

SPORTS = (
    "Football",
    "Horse Racing",
    "Tennis",
    "Basketball",
    "Ice Hockey",
    "Greyhounds",
    "Handball",
    "Volleyball",
    "Baseball",
    "American Football",
    "Rugby Union",
    "Rugby League",
    "Cricket",
    "Darts",
    "Snooker",
    "Table Tennis",
    "Badminton",
    "Boxing",
    "MMA",
    "Cycling",
    "Golf",
    "Formula 1",
    "Futsal",
    "Water Polo",
    "Floorball",
    "Bandy",
    "Biathlon",
    "Ski Jumping",
    "Esports",
    "Pétanque",
)

RACES = frozenset({"Horse Racing", "Greyhounds"})

REGIONS = (
    "Sverige",
    "Türkiye",
    "España",
    "Österreich",
    "Česko",
    "Polska",
    "Ísland",
    "日本",
    "대한민국",
    "Україна",
    "Ελλάδα",
    "Brasil",
    "México",
    "Deutschland",
    "France",
    "Italia",
    "England",
    "Éire",
    "Việt Nam",
    "العراق",
)

LEAGUES = (
    "Premier League",
    "Süper Lig",
    "1. división",
    "Extraliga",
    "Série A",
    "Супер Лига",
    "J1リーグ",
    "Cup",
)

PLACES = (
    "Malmö",
    "Göteborg",
    "København",
    "Tromsø",
    "Reykjavík",
    "Łódź",
    "Kraków",
    "České Budějovice",
    "Győr",
    "Timișoara",
    "Beşiktaş",
    "İzmir",
    "Αθήνα",
    "Одеса",
    "Львів",
    "São Paulo",
    "Córdoba",
    "Málaga",
    "Nîmes",
    "Zürich",
    "Münster",
    "浦和",
    "大阪",
    "서울",
    "Leeds",
    "Torino",
    "Porto",
    "Gent",
    "Boston",
    "Perth",
)

CLUBS = ("FF", "FC", "IK", "SK", "United", "Athletic", "Wanderers", "Städte", "レッズ", "Динамо")


def name(words: tuple[str, ...], index: int) -> str:
    """The name at `index`, from 0. When the words run out they come again with a number."""
    turn, word = divmod(index, len(words))
    return f"{words[word]} {turn + 1}" if turn else words[word]
