"""What the topics hold, typed. Field names of Avro values are those of the schemas (schemas/README.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypedDict

from bridge.clock import MICROS
from bridge.reader.money import payout_of, stake_of
from bridge.records.place import Place, moment


class EventInfo(TypedDict):
    """What an item is a bet on. `startTime` in microseconds since 1970, UTC, like all times below."""

    id: int
    name: str | None
    isLive: bool
    startTime: int | None


class Market(TypedDict):
    """A market of an event; `type` is the id of its type."""

    id: int
    type: int
    name: str | None
    properties: dict[str, str] | None


class SettlementInfo(TypedDict):
    """How an item was settled."""

    settlementResult: str
    settlementTime: int | None
    settlementVersion: int
    isManualSettlement: bool


class EachWayPrice(TypedDict):
    """The two prices of an each-way bet."""

    win: float | None
    place: float | None


class BetBuilderItem(TypedDict):
    """One leg of a bet builder."""

    market: Market | None
    selectionId: int
    settlement: SettlementInfo | None


class SettledBetItem(TypedDict):
    """One item of a bet. `competitionId` is the id of its league, `countryId` of its region."""

    event: EventInfo | None
    market: Market | None
    selectionId: int
    competitionId: int
    countryId: int
    sportId: int
    settlement: SettlementInfo | None
    price: float | None
    eachWayPrice: EachWayPrice | None
    limitsRatingId: int | None
    limitsFactor: float
    hasLineDeviation: bool
    isOutright: bool
    version: int
    deadHeatFactor: float | None
    placeDeadHeatFactor: float | None
    parameters: dict[str, str] | None
    manualPrice: float | None
    alternativePrice: float | None
    type: str
    betBuilderItems: list[BetBuilderItem] | None


class BetAmount(TypedDict):
    """A stake: `value` × 10^-`precision`."""

    currency: str | None
    value: int
    precision: int
    placementExchangeRate: float
    settlementExchangeRate: float | None


class SettledBet(TypedDict):
    """The value of a record of bets."""

    betId: str
    betSettlement: str
    payoutMultiplier: float
    isCancelled: bool
    selections: list[SettledBetItem] | None
    isRejected: bool
    settlementTime: int
    payout: float
    partialRefund: float
    settlementVersion: int
    amount: BetAmount | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bet(Place):
    """A settlement of a bet. The record with the highest offset of a key is the one that counts."""

    value: SettledBet
    redriven_from: float | None = None
    """When the message of a redriven dead letter was received, Unix seconds; its timestamp is later."""

    @property
    def received(self) -> float:
        """When its message was received, by the bridge's clock, Unix seconds."""
        return self.timestamp / 1000 if self.redriven_from is None else self.redriven_from

    @property
    def received_at(self) -> datetime | None:
        """The same; None for a time that Python's datetime cannot hold."""
        return moment(round(self.received * MICROS))

    @property
    def version(self) -> int:
        """The settlementVersion."""
        return self.value["settlementVersion"]

    @property
    def result(self) -> str:
        """The outcome of the bet as a whole, such as Win."""
        return self.value["betSettlement"]

    @property
    def settled_at(self) -> datetime | None:
        """The settlementTime: event time. None for one that Python's datetime cannot hold."""
        return moment(self.value["settlementTime"])

    @property
    def stake(self) -> Decimal | None:
        """The stake, exact; None if the bet has no amount."""
        return stake_of(self.value["amount"])

    @property
    def currency(self) -> str | None:
        """The symbol of the stake's currency."""
        amount = self.value["amount"]
        return amount and amount["currency"]

    @property
    def payout(self) -> Decimal:
        """The payout, without the rounding errors of its double."""
        return payout_of(self.value["payout"], self.value["amount"])

    @property
    def items(self) -> list[SettledBetItem]:
        """What was bet on; empty if the provider did not say."""
        return self.value["selections"] or []


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation(Place):
    """The names of one thing, by language. The ids it belongs to are None where the provider gives none."""

    kind: str
    id: int
    event_id: int | None
    sport_id: int | None
    region_id: int | None
    league_id: int | None
    competitor_ids: list[int] | None
    market_type_id: int | None
    texts: Mapping[str, str]
    snapshot_id: str
    """The snapshot in which it last changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency(Place):
    """A currency; its `type` is Fiat, Crypto, Custom or Unknown, its `precision` a number of decimals."""

    symbol: str
    type: str
    precision: int
    snapshot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Place):
    """Messages published in [start, end) may be missing, and no replay can bring them back."""

    feed: str
    start: datetime
    end: datetime
    cause: str
    detected_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Place):
    """A committed snapshot of the translations or the currencies.

    A reader of the job's topic that stops at `ends` has exactly this snapshot.
    """

    job: str
    id: str
    finished_at: datetime
    complete: bool
    languages: tuple[str, ...]
    kinds: tuple[str, ...]
    """The kinds of names that it has; empty for currencies, and of an older bridge, for all."""
    ends: Mapping[int, int]
    """Partition → the first offset that is not part of it."""
