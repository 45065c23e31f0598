"""Settled bets, made from a seed and a number: every field, every enum value, null wherever it may be.

The stake depends on the bet's number alone, the outcome also on the settlement version, so that a
resettlement changes the outcome and nothing else; a correction does so under the same version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Literal, get_args

import orjson

from bridge_sandbox.provider.world.entities import Event, Market, World, mix

Json = dict[str, Any]
Draw = Callable[[], float]
Oddity = Literal[
    "with a ping", "without an id", "empty", "object", "list", "no stake", "negative stake", "unknown field"
]
"""What a provider has no reason to send. By default, what the interface allows of that: a bet and a ping in
one message, a bet without `betId`, and a message with neither ping nor bet. On request `{}`, `[]`, a bet with
a stake of 0 or below, and one with a field that the interface does not have."""
ODDITIES: tuple[Oddity, ...] = get_args(Oddity)[:3]
WITHOUT_BET: frozenset[Oddity | None] = frozenset({"empty", "object", "list"})

# SettlementResult and BetItemType (interface, "Resources and their fields")
NONE, WIN, LOSE, REFUND, HALF_WIN, HALF_LOSE, CASH_OUT, PLACE_WIN = range(8)
STANDARD, STARTING_PRICE, TOTE_EXOTICS, FIXED_EXOTICS, BET_BUILDER, PICKEM, EACH_WAY, TOTE_SINGLE = range(
    1, 9
)

# A hundred tickets each, so that a draw is one multiplication: this code runs for every message.
_COUNTS = (1,) * 40 + (2,) * 24 + (3,) * 14 + (4,) * 10 + (5,) * 6 + (6,) * 3 + (8,) * 2 + (10,)
_RESULTS = tuple(result for result, count in enumerate((1, 34, 48, 4, 3, 3, 5, 2)) for _ in range(count))
_TYPES = (
    (STANDARD,) * 85
    + (STARTING_PRICE, EACH_WAY) * 4
    + (TOTE_EXOTICS, FIXED_EXOTICS, PICKEM) * 2
    + (TOTE_SINGLE,)
)
_BUILDER_SHARE = 0.1
_TERSE_SHARE = 0.2

_PLACED, _SETTLED, _TERSE, _PINGED = 11, 12, 13, 14
_EPOCH = datetime(1970, 1, 1)  # naive: the zone is added as text, in whichever form it takes


@dataclass(frozen=True)
class _Currency:
    symbol: str
    precision: int
    highest: int
    """Highest stake, in units of 10^-precision."""
    rate: float


_CURRENCIES = (
    *(_Currency("EUR", 2, 50_000, 1.0),) * 8,
    *(_Currency("SEK", 2, 500_000, 0.0885),) * 4,
    *(_Currency("JPY", 0, 80_000, 0.0061),) * 2,
    _Currency("KWD", 3, 150_000, 3.01),
    *(_Currency("BTC", 8, 20_000_000, 58_211.4),) * 2,
    *(_Currency("ETH", 18, 9_000_000_000_000_000_000, 2_404.75),) * 2,
    _Currency("PTS", 0, 1_000_000, 0.01),
)


@dataclass(frozen=True, slots=True)
class _Settlement:
    """What the items of a bet share at one settlement."""

    version: int
    micros: int
    zone: int
    draw: Draw

    def stamp(self, earlier_micros: int = 0) -> str:
        return timestamp(self.micros - earlier_micros, self.zone, int(self.draw() * 10))

    def of(self, result: int) -> Json:
        """An item's settlement (interface, "SettlementInfoViewModel")."""
        draw = self.draw
        return {
            "settlementResult": result,
            "settlementTime": None if draw() < 0.03 else self.stamp(int(draw() * 60_000_000)),
            "settlementVersion": self.version,
            "isManualSettlement": draw() < 0.02,
        }


def message(
    world: World,
    number: int,
    version: int,
    micros: int,
    least_bytes: int = 0,
    oddity: Oddity | None = None,
    variant: int = 0,
) -> Json:
    """A message with a settled bet (interface, "SettlementFeedMessageDto").

    `number` says which bet, from 0; `version` which settlement of it, from 1, and `variant` which content of
    that version; `micros` when it was settled, in microseconds of Unix time: `settlementTime` is never a
    whole microsecond later. There are as many selections as it takes for the message to be of `least_bytes`.
    Some messages leave out what is null, as a serializer may.
    """
    whole: Json = {"pingId": None, "data": None}
    if oddity in ("object", "list"):
        return {}
    if oddity != "empty":
        whole["data"] = bet = _bet(world, number, version, micros, least_bytes, variant)
    if oddity == "with a ping":
        whole["pingId"] = f"{mix(world.seed, _PINGED, number, version):016x}"
    elif oddity == "without an id":
        bet["betId"] = None
    elif oddity == "unknown field":
        bet["unknownField"] = number
    elif oddity in ("no stake", "negative stake") and bet["amount"]:
        bet["amount"]["value"] *= 0 if oddity == "no stake" else -1
        bet["payout"] *= 0 if oddity == "no stake" else -1
    if mix(world.seed, _TERSE, number) < _TERSE_SHARE * 2**64:
        whole = _without_nulls(whole)
    return whole


def _bet(world: World, number: int, version: int, micros: int, least_bytes: int, variant: int) -> Json:
    """A settled bet (interface, "SettledBetViewModelV3")."""
    draw = Random(mix(world.seed, _PLACED, number)).random
    again = Random(mix(world.seed, _SETTLED, number, version + (variant << 32))).random
    bet_id = f"{mix(world.seed, number, 1):016x}{number:016x}"
    first = _RESULTS[int(draw() * 100)]
    result = (first + version + variant - 1) % 8
    settlement = _Settlement(version, micros, int(draw() * 100), again)
    builder = draw() < _BUILDER_SHARE
    items: list[Json] = []
    count, size = _COUNTS[int(draw() * 100)], 0
    while len(items) < count or size < least_bytes:
        is_first = not items
        # One lost item loses the whole bet.
        outcome = result if is_first or result != LOSE else WIN
        items.append(_item(world, draw, settlement, outcome, builder and is_first))
        size += len(orjson.dumps(_without_nulls(items[-1]))) if least_bytes else 0
    amount = _amount(draw, again)
    multiplier = _multiplier(result, items, again)
    precision = amount["precision"]
    payout = round(amount["value"] / 10**precision * multiplier, precision)
    return {
        "betId": f"{bet_id[:8]}-{bet_id[8:12]}-{bet_id[12:16]}-{bet_id[16:20]}-{bet_id[20:]}",
        "betSettlement": result,
        "payoutMultiplier": _number(multiplier),
        "isCancelled": result == REFUND and again() < 0.3,
        "selections": items if draw() > 0.002 or least_bytes else None,
        "isRejected": result == NONE,
        "settlementTime": settlement.stamp(),
        "payout": _number(payout),
        "partialRefund": _number(round(payout / 3, precision)) if items[0]["type"] == FIXED_EXOTICS else 0,
        "settlementVersion": version,
        "amount": amount if draw() > 0.002 else None,
    }


def timestamp(micros: int, zone: int = 0, tick: int = 0) -> str:
    """ISO 8601 with up to seven digits of a second, `tick` being the last of them.

    `zone` (0–99) picks the form: 5 in a hundred carry an offset of two hours, 3 carry none at all and
    mean UTC, the others end in `Z`.
    """
    offset = zone < 5
    text = (_EPOCH + timedelta(microseconds=micros, hours=2 if offset else 0)).isoformat()
    if tick and "." in text:
        text = f"{text}{tick}"
    return f"{text}+02:00" if offset else text if zone < 8 else f"{text}Z"


def _item(world: World, draw: Draw, settlement: _Settlement, result: int, builder: bool) -> Json:
    """One selection of a bet (interface, "SettledBetItemViewModel")."""
    event = world.events[int(draw() * len(world.events))]
    market, selection = _pick(event, draw)
    kind = BET_BUILDER if builder else _TYPES[int(draw() * 100)]
    price = round(1.01 + 9 * draw() ** 3, 2)
    league = event.league
    rare = draw()
    item: Json = {
        "event": {
            "id": event.id,
            "name": event.name if not 0.05 < rare < 0.06 else None,
            "isLive": draw() < 0.6,
            "startTime": event.start,
        },
        "market": market.json if not 0.06 < rare < 0.07 else _nameless(market),
        "selectionId": selection,
        "competitionId": league.id,
        "countryId": league.region.id,
        "sportId": league.sport.id,
        "settlement": settlement.of(result),
        "price": _number(price),
        "eachWayPrice": None,
        "limitsRatingId": int(draw() * 40) if draw() < 0.7 else None,
        "limitsFactor": _number(round(0.1 + draw(), 1)),
        "hasLineDeviation": draw() < 0.03,
        "isOutright": event.is_outright,
        "version": 1 + int(draw() * 4),
        "deadHeatFactor": 0.5 if rare < 0.01 else None,
        "placeDeadHeatFactor": None,
        "parameters": _parameters(market, kind, draw) if draw() < 0.3 else None,
        "manualPrice": _number(round(price * 1.1, 2)) if 0.01 < rare < 0.03 else None,
        "alternativePrice": price * draw() if 0.03 < rare < 0.05 else None,
        "type": kind,
        "betBuilderItems": None,
    }
    if kind == EACH_WAY:
        item["price"] = None
        item["eachWayPrice"] = {
            "win": None if 0.8 < rare < 0.9 else price,
            "place": None if rare > 0.9 else round(1 + (price - 1) / 5, 3),
        }
        item["placeDeadHeatFactor"] = 1 / 3 if rare < 0.2 else None
    elif kind == BET_BUILDER:
        item["betBuilderItems"] = [
            _builder_item(event, draw, settlement, result) for _ in range(2 + int(draw() * 3))
        ]
    if rare > 0.995:
        item["event" if rare > 0.998 else "market" if rare > 0.996 else "settlement"] = None
    return item


def _builder_item(event: Event, draw: Draw, settlement: _Settlement, result: int) -> Json:
    """A part of a bet builder, always of the same event (interface, "SettledBetBuilderItemViewModel")."""
    market, selection = _pick(event, draw)
    rare = draw()
    return {
        "market": None if rare < 0.02 else _nameless(market) if rare < 0.04 else market.json,
        "selectionId": selection,
        "settlement": settlement.of(result) if draw() > 0.02 else None,
    }


def _pick(event: Event, draw: Draw) -> tuple[Market, int]:
    market = event.markets[int(draw() * len(event.markets))]
    return market, market.selections[int(draw() * len(market.selections))]


def _nameless(market: Market) -> Json:
    return {**market.json, "name": None}


def _parameters(market: Market, kind: int, draw: Draw) -> dict[str, str]:
    found = {"lineage": f"sr:{market.type}:{int(draw() * 1000)}", "språk": "sv"}
    return {**found, "bog": "true"} if kind == STARTING_PRICE else found


def _amount(draw: Draw, again: Draw) -> Json:
    """The stake (interface, "BetAmountViewModel"). Values above 2^53 are odd, so no double holds them."""
    currency = _CURRENCIES[int(draw() * len(_CURRENCIES))]
    part = draw()
    rate = currency.rate * (0.99 + part / 50)
    return {
        "currency": currency.symbol if part > 0.01 else None,
        "value": int(draw() * currency.highest) + 1,
        "precision": currency.precision,
        "placementExchangeRate": rate,
        "settlementExchangeRate": rate * (0.99 + again() / 50) if again() > 0.1 else None,
    }


def _multiplier(result: int, items: list[Json], again: Draw) -> float:
    if result == WIN:
        product = 1.0
        for item in items[: _COUNTS[-1]]:  # the odds of a large bet would be beyond a double
            product *= item.get("price") or 1
        return round(product, 4)
    fixed = {REFUND: 1.0, HALF_WIN: 1.425, HALF_LOSE: 0.5, PLACE_WIN: 1.2}
    return again() if result == CASH_OUT else fixed.get(result, 0.0)


def _number(value: float) -> float | int:
    """A whole number goes out without a fraction, as many JSON writers do."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
