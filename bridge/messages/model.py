"""The messages of the settlement feed, as types that pydantic validates directly from JSON bytes.

`read_feed_message` returns an Avro datum: dicts with the interface's field names, date-times as microseconds,
enums as their Avro symbols, maps sorted by key. Nothing is copied or renamed afterwards.

Validation is strict, because money is never guessed: no number in quotes, no `5.0` for an integer, no value
out of range, no NaN, no undocumented field. A nullable field may be missing and is then null; any other is
required. If an object has a key twice, the last value counts, as in all common JSON parsers.

Field names, types and nullability: interface, "Resources and their fields".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NotRequired, TypeVar, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, TypeAdapter, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict, is_typeddict

from bridge.messages import scalars

T = TypeVar("T")

SETTLEMENT_RESULTS: Final = {
    0: "None",
    1: "Win",
    2: "Lose",
    3: "Refund",
    4: "HalfWin",
    5: "HalfLose",
    6: "CashOut",
    7: "PlaceWin",
}
"""SettlementResult: the feed's number → the symbol in Avro."""

BET_ITEM_TYPES: Final = {
    1: "Standard",
    2: "StartingPrice",
    3: "ToteExotics",
    4: "FixedExotics",
    5: "BetBuilder",
    6: "Pickem",
    7: "EachWay",
    8: "ToteSingleRunner",
}
"""BetItemType: the feed's number → the symbol in Avro."""


@dataclass(frozen=True, slots=True)
class Zero:
    """Marks a type with its zero in JSON: the value that a provider may mean by omitting the field."""

    json: str | int | float | bool


def not_a_date_time() -> PydanticCustomError:
    """Return the error for any other value."""
    return PydanticCustomError("date_time", "Input should be a date-time such as 2026-01-31T12:00:00Z")


def parse_date_time(value: object) -> int:
    """Parse a date-time like `bridge.messages.scalars.DateTimes.parse`, but faster as plain Python."""
    if not isinstance(value, str) or not _DATE_TIME(value):
        raise not_a_date_time()
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise not_a_date_time() from None
    # The difference of two datetimes has no year to overflow, unlike a conversion to UTC: 0001-01-01+14:00.
    since = moment - (_EPOCH if moment.tzinfo else _NAIVE_EPOCH)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


# datetime.fromisoformat accepts much more (bare dates, weeks, other separators, 24:00).
_DATE_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
).fullmatch
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH: Final = datetime(1970, 1, 1)


def _symbol_of(symbols: dict[int, str]) -> Callable[[object], str]:
    """Return what maps the numbers of an enum. pydantic's own enum would accept `true` and `1.0` for 1."""
    *most, last = symbols
    message = f"Input should be {', '.join(map(str, most))} or {last}"

    def symbol_of(value: object) -> str:
        if type(value) is not int or value not in symbols:
            raise PydanticCustomError("enum", message)
        return symbols[value]

    return symbol_of


_read_date_time = scalars.DateTimes(not_a_date_time).parse if scalars.COMPILED else parse_date_time

Boolean = Annotated[bool, Zero(False)]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1), Zero(0)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), Zero(0)]
Double = Annotated[float, Zero(0)]
"""The IEEE 754 value nearest to the JSON literal. An integer may have any size; the integer `-0` is 0."""
DateTime = Annotated[int, PlainValidator(_read_date_time), Zero("0001-01-01T00:00:00")]
"""A date-time in JSON; here and in Avro microseconds since 1970-01-01T00:00:00 UTC."""
SettlementResult = Annotated[str, PlainValidator(_symbol_of(SETTLEMENT_RESULTS)), Zero(0)]
BetItemType = Annotated[str, PlainValidator(_symbol_of(BET_ITEM_TYPES))]
StringMap = Annotated[dict[str, str], Field(fail_fast=True), AfterValidator(scalars.in_order)]
BetId = Annotated[str, Field(min_length=1, max_length=1000)]
"""The record's key: not null, although the interface allows it, and of a size that Kafka accepts."""

Items = Annotated[list[T], Field(fail_fast=True)]
"""Only the first wrong item of a list or map is reported: there may be any number of them."""
Nullable = Annotated[T | None, Field(default=None)]
"""May be null. With `NotRequired` it may also be missing, and is then null."""

_AS_SENT = with_config(ConfigDict(strict=True, extra="forbid", allow_inf_nan=False))


@_AS_SENT
class EventInfoModel(TypedDict):
    """EventInfoViewModel."""

    id: Int64
    name: NotRequired[Nullable[str]]
    isLive: Boolean
    startTime: NotRequired[Nullable[DateTime]]


@_AS_SENT
class MarketModel(TypedDict):
    """MarketViewModel."""

    id: Int64
    type: Int64
    name: NotRequired[Nullable[str]]
    properties: NotRequired[Nullable[StringMap]]


@_AS_SENT
class SettlementInfoModel(TypedDict):
    """SettlementInfoViewModel."""

    settlementResult: SettlementResult
    settlementTime: NotRequired[Nullable[DateTime]]
    settlementVersion: Int32
    isManualSettlement: Boolean


@_AS_SENT
class EachWayPriceModel(TypedDict):
    """EachWayPriceModel."""

    win: NotRequired[Nullable[Double]]
    place: NotRequired[Nullable[Double]]


@_AS_SENT
class BetBuilderItemModel(TypedDict):
    """SettledBetBuilderItemViewModel."""

    market: NotRequired[Nullable[MarketModel]]
    selectionId: Int64
    settlement: NotRequired[Nullable[SettlementInfoModel]]


@_AS_SENT
class BetAmountModel(TypedDict):
    """BetAmountViewModel."""

    currency: NotRequired[Nullable[str]]
    value: Int64
    precision: Int32
    placementExchangeRate: Double
    settlementExchangeRate: NotRequired[Nullable[Double]]


@_AS_SENT
class SettledBetItemModel(TypedDict):
    """SettledBetItemViewModel."""

    event: NotRequired[Nullable[EventInfoModel]]
    market: NotRequired[Nullable[MarketModel]]
    selectionId: Int64
    competitionId: Int64
    countryId: Int64
    sportId: Int64
    settlement: NotRequired[Nullable[SettlementInfoModel]]
    price: NotRequired[Nullable[Double]]
    eachWayPrice: NotRequired[Nullable[EachWayPriceModel]]
    limitsRatingId: NotRequired[Nullable[Int64]]
    limitsFactor: Double
    hasLineDeviation: Boolean
    isOutright: Boolean
    version: Int32
    deadHeatFactor: NotRequired[Nullable[Double]]
    placeDeadHeatFactor: NotRequired[Nullable[Double]]
    parameters: NotRequired[Nullable[StringMap]]
    manualPrice: NotRequired[Nullable[Double]]
    alternativePrice: NotRequired[Nullable[Double]]
    type: BetItemType
    betBuilderItems: NotRequired[Nullable[Items[BetBuilderItemModel]]]


@_AS_SENT
class SettledBetModel(TypedDict):
    """SettledBetViewModelV3."""

    betId: BetId
    betSettlement: SettlementResult
    payoutMultiplier: Double
    isCancelled: Boolean
    selections: NotRequired[Nullable[Items[SettledBetItemModel]]]
    isRejected: Boolean
    settlementTime: DateTime
    payout: Double
    partialRefund: Double
    settlementVersion: Int32
    amount: NotRequired[Nullable[BetAmountModel]]


@_AS_SENT
class FeedMessage(TypedDict):
    """SettlementFeedMessageDto: a ping, a settled bet, both or neither."""

    pingId: NotRequired[Nullable[str]]
    data: NotRequired[Nullable[SettledBetModel]]


read_feed_message: Final[Callable[[bytes], FeedMessage]] = TypeAdapter(FeedMessage).validator.validate_json
"""Raises pydantic's ValidationError. The adapter's own method would take 0.7 µs to call this one."""


def omittable_fields(record: Any = FeedMessage, prefix: str = "") -> dict[str, str | int | float | bool]:
    """Return path → zero, in JSON, of every field that has one and is not nullable, at any depth."""
    found = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Zero)]
        if marks:
            found[prefix + name] = marks[0].json
        for nested, suffix in nested_records(hint):
            found |= omittable_fields(nested, f"{prefix}{name}{suffix}.")
    return found


def nested_records(hint: Any, suffix: str = "") -> Iterator[tuple[Any, str]]:
    """Yield the TypedDicts inside a type, each with `[]` for every list around it."""
    if is_typeddict(hint):
        yield hint, suffix
    for part in get_args(hint):
        yield from nested_records(part, suffix + "[]" if get_origin(hint) is list else suffix)
