"""The comparison of the Kafka Streams example finds what is missing, doubled or different."""

from __future__ import annotations

from typing import Any

import pytest

from examples.engines import module_of
from examples.truth import Truth

check, display = (module_of("kafka-streams", name) for name in ("check", "display"))
ITEM = {"selectionId": 9, "competitionId": 3, "countryId": 2, "sportId": 1}
BET = {
    "betId": "b",
    "betSettlement": 1,
    "settlementVersion": 1,
    "settlementTime": "2026-11-23T21:00:00+02:00",
    "payout": 784.1062000000001,
    "selections": [ITEM, ITEM],
    "amount": {"currency": "EUR", "value": 1050, "precision": 2},
}
AGAIN = {**BET, "settlementVersion": 2, "selections": [ITEM], "payout": 3, "amount": None}
NAMES = {("sport", 1): "Golf", ("region", 2): "Iran", ("league", 3): "Open", ("selection", 9): "Yes"}
TRUTH = Truth([BET, AGAIN], {key: {"en": name} for key, name in NAMES.items()})


def rows() -> list[dict[str, Any]]:
    """What the example must print."""
    first: dict[str, Any] = {
        "betId": "b",
        "index": 0,
        "settlementVersion": 1,
        "settlementTime": "2026-11-23T19:00:00Z",
        "betSettlement": "Win",
        "currency": "EUR",
        "stake": "10.50",
        "payout": "784.1062",
        "selectionId": 9,
        "result": None,
        "sport": "Golf",
        "league": "Open",
        "region": "Iran",
        "event": None,
        "market": None,
        "selection": "Yes",
        "parts": [],
    }
    again = {**first, "settlementVersion": 2, "currency": None, "stake": None, "payout": "3"}
    return [
        {"key": "b:0", "value": first},
        {"key": "b:1", "value": {**first, "index": 1}},
        {"key": "b:0", "value": again},
        {"key": "b:1", "value": None},
    ]


def test_rows_as_they_must_be_have_no_difference() -> None:
    assert list(check.differences(rows(), TRUTH)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (rows()[1:], "b:0: 1 records instead of 2"),
        ([*rows(), rows()[0]], "b:0: 3 records instead of 2"),
        ([*rows(), {"key": "c:0", "value": None}], "c:0: 1 records instead of 0"),
        ([*rows()[:2], rows()[0], rows()[3]], "b:0, record 1: settlementVersion is 1 instead of 2"),
        ([*rows()[:3], rows()[1]], "b:1, record 1: {'betId': 'b'"),
        (
            [{"key": "b:0", "value": {**rows()[0]["value"], "more": None}}, *rows()[1:]],
            "more is None instead",
        ),
    ],
)
def test_the_first_difference_is_named(changed: list[dict[str, Any]], said: str) -> None:
    assert said in next(check.differences(changed, TRUTH))


def test_a_row_is_two_lines_no_wider_than_the_terminal() -> None:
    lines = display.lines("6c57ad06-cf98-b5ff-0000-000000010d28:1", rows()[0]["value"], 40).split("\n")
    assert [len(line) <= 40 for line in lines] == [True, True]
