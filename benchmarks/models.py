"""The messages as plain pydantic models: what the floor and the Quix Streams peer convert with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

_RESULTS = ("None", "Win", "Lose", "Refund", "HalfWin", "HalfLose", "CashOut", "PlaceWin")
_TYPES = (
    "Standard",
    "StartingPrice",
    "ToteExotics",
    "FixedExotics",
    "BetBuilder",
    "Pickem",
    "EachWay",
    "ToteSingleRunner",
)

Result = Annotated[str, BeforeValidator(lambda number: _RESULTS[number])]
Type = Annotated[str, BeforeValidator(lambda number: _TYPES[number - 1])]


class EventInfo(BaseModel):
    """EventInfoViewModel."""

    id: int
    name: str | None = None
    isLive: bool
    startTime: datetime | None = None


class Market(BaseModel):
    """MarketViewModel."""

    id: int
    type: int
    name: str | None = None
    properties: dict[str, str] | None = None


class SettlementInfo(BaseModel):
    """SettlementInfoViewModel."""

    settlementResult: Result
    settlementTime: datetime | None = None
    settlementVersion: int
    isManualSettlement: bool


class EachWayPrice(BaseModel):
    """EachWayPriceModel."""

    win: float | None = None
    place: float | None = None


class BetBuilderItem(BaseModel):
    """SettledBetBuilderItemViewModel."""

    market: Market | None = None
    selectionId: int
    settlement: SettlementInfo | None = None


class Item(BaseModel):
    """SettledBetItemViewModel."""

    event: EventInfo | None = None
    market: Market | None = None
    selectionId: int
    competitionId: int
    countryId: int
    sportId: int
    settlement: SettlementInfo | None = None
    price: float | None = None
    eachWayPrice: EachWayPrice | None = None
    limitsRatingId: int | None = None
    limitsFactor: float
    hasLineDeviation: bool
    isOutright: bool
    version: int
    deadHeatFactor: float | None = None
    placeDeadHeatFactor: float | None = None
    parameters: dict[str, str] | None = None
    manualPrice: float | None = None
    alternativePrice: float | None = None
    type: Type
    betBuilderItems: list[BetBuilderItem] | None = None


class Amount(BaseModel):
    """BetAmountViewModel."""

    currency: str | None = None
    value: int
    precision: int
    placementExchangeRate: float
    settlementExchangeRate: float | None = None


class Bet(BaseModel):
    """SettledBetViewModelV3."""

    betId: str
    betSettlement: Result
    payoutMultiplier: float
    isCancelled: bool
    selections: list[Item] | None = None
    isRejected: bool
    settlementTime: datetime
    payout: float
    partialRefund: float
    settlementVersion: int
    amount: Amount | None = None


class Message(BaseModel):
    """SettlementFeedMessageDto."""

    pingId: str | None = None
    data: Bet | None = None
