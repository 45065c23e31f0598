"""The tables of the interface ("Resources and their fields"): field → type, with ? where it is nullable."""

from __future__ import annotations

TABLES = {
    "SettlementFeedMessageDto": "pingId string? / data SettledBetViewModelV3?",
    "SettledBetViewModelV3": """
        betId string? / betSettlement SettlementResult / payoutMultiplier double / isCancelled boolean
        / selections SettledBetItemViewModel[]? / isRejected boolean / settlementTime date-time
        / payout double / partialRefund double / settlementVersion int32 / amount BetAmountViewModel?""",
    "SettledBetItemViewModel": """
        event EventInfoViewModel? / market MarketViewModel? / selectionId int64 / competitionId int64
        / countryId int64 / sportId int64 / settlement SettlementInfoViewModel? / price double?
        / eachWayPrice EachWayPriceModel? / limitsRatingId int64? / limitsFactor double
        / hasLineDeviation boolean / isOutright boolean / version int32 / deadHeatFactor double?
        / placeDeadHeatFactor double? / parameters map? / manualPrice double? / alternativePrice double?
        / type BetItemType / betBuilderItems SettledBetBuilderItemViewModel[]?""",
    "EventInfoViewModel": "id int64 / name string? / isLive boolean / startTime date-time?",
    "MarketViewModel": "id int64 / type int64 / name string? / properties map?",
    "SettlementInfoViewModel": """
        settlementResult SettlementResult / settlementTime date-time? / settlementVersion int32
        / isManualSettlement boolean""",
    "EachWayPriceModel": "win double? / place double?",
    "SettledBetBuilderItemViewModel": """
        market MarketViewModel? / selectionId int64 / settlement SettlementInfoViewModel?""",
    "BetAmountViewModel": """
        currency string? / value int64 / precision int32 / placementExchangeRate double
        / settlementExchangeRate double?""",
}
ENUMS = {
    "SettlementResult": "0 None 1 Win 2 Lose 3 Refund 4 HalfWin 5 HalfLose 6 CashOut 7 PlaceWin",
    "BetItemType": """1 Standard 2 StartingPrice 3 ToteExotics 4 FixedExotics 5 BetBuilder 6 Pickem 7 EachWay
        8 ToteSingleRunner""",
}


def fields_of(table: str) -> dict[str, str]:
    """Field → type of a table."""
    return dict(line.split() for line in TABLES[table].replace("\n", " ").split(" / "))
