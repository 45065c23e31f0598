"""Two lines for each row that the Kafka Streams example prints on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from examples.engines import module_of

display = module_of("kafka-streams", "display")
KEY = "6c57ad06-cf98-b5ff-0000-000000010d28:1"


def row(**changes: Any) -> dict[str, Any]:
    return {
        "settlementVersion": 2,
        "betSettlement": "Win",
        "currency": "EUR",
        "stake": "1050.50",
        "payout": "1784.1062",
        "sport": "Rugby",
        "league": "Premier League",
        "region": None,
        "event": "Porto – Łódź",
        "market": "Handicap -1.5",
        "selection": "Porto [-1.5]",
        "parts": [],
        **changes,
    }


def test_a_row_is_two_lines() -> None:
    assert display.lines(KEY, row(), 120).split("\n") == [
        "6c57ad06…0d28:1  Win v2: stake 1,050.50, payout 1,784.1062 EUR",
        "    Porto – Łódź; Handicap -1.5: Porto [-1.5]; Rugby, Premier League",
    ]


def test_a_row_that_is_taken_back_is_said_to_be() -> None:
    assert display.lines(KEY, None, 120) == "6c57ad06…0d28:1  taken back: the bet has fewer selections now"


@pytest.mark.parametrize(
    ("changes", "line", "said"),
    [
        ({"stake": "3.123456789012345678", "currency": "ETH"}, 0, "stake 3.12345679, payout 1,784.1062 ETH"),
        ({"stake": None, "currency": None}, 0, "Win v2: payout 1,784.1062"),
        (
            {"parts": [{"market": "Both score", "selection": "Yes"}] * 2},
            1,
            "Both score: Yes and Both score: Yes;",
        ),
        (dict.fromkeys(("sport", "league", "event", "market", "selection")), 1, "no names yet"),
    ],
)
def test_whatever_a_row_lacks_it_is_two_lines(changes: dict[str, Any], line: int, said: str) -> None:
    lines = display.lines(KEY, row(**changes), 120).split("\n")
    assert len(lines) == 2
    assert said in lines[line]


def test_no_line_is_wider_than_the_terminal() -> None:
    assert [len(line) for line in display.lines(KEY, row(), 40).split("\n")] == [40, 40]
