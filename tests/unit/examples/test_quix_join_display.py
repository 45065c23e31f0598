"""Three lines for each bet that the Quix Streams example prints on a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from examples.engines import module_of

display = module_of("quix-join", "display")


def bet(**changes: Any) -> dict[str, Any]:
    texts = {"event": "Porto – Łódź", "sport": "Rugby", "league": "Premier League", "region": None}
    texts |= {"market": "Handicap -1.5", "selection": "Porto [-1.5]"}
    names = {name: text and {"sv": f"{text} (sv)", "en": text} for name, text in texts.items()}
    part = {"names": {"market": {"en": "Both score"}, "selection": {"en": "Yes"}}}
    item = {"names": names, "betBuilderItems": None}
    return {
        "betId": "6c57ad06-cf98-b5ff-0000-000000010d28",
        "settlementVersion": 2,
        "betSettlement": "Win",
        "payout": 784.1062000000001,
        "amount": {"value": 1050, "precision": 2, "currency": "EUR"},
        "corrects": None,
        "selections": [item, {**item, "betBuilderItems": [part]}],
        **changes,
    }


def test_a_bet_is_three_lines_with_the_running_count() -> None:
    assert display.lines(bet(), 1_234, 120).split("\n") == [
        "1,234  6c57ad06…0d28  Win v2: stake 10.50, payout 784.11 EUR",
        "       Porto – Łódź; Rugby, Premier League",
        "       Handicap -1.5: Porto [-1.5]  +1",
    ]


@pytest.mark.parametrize(
    ("changes", "line", "said"),
    [
        (
            {"corrects": {"betSettlement": "Lose", "settlementVersion": 1, "payout": 0.0}},
            0,
            "Win v2: stake 10.50, payout 784.11 EUR; was Lose v1, payout 0.00",
        ),
        ({"amount": None}, 0, "Win v2: payout 784.11"),
        ({"betId": "7"}, 0, "1  7  Win"),
        ({"selections": None}, 1, "no selections"),
        ({"selections": [bet()["selections"][1]]}, 2, "Both score: Yes"),
        ({"selections": [{"names": dict.fromkeys(display.NAMES), "betBuilderItems": []}]}, 1, "no names yet"),
    ],
)
def test_whatever_a_bet_lacks_it_is_three_lines(changes: dict[str, Any], line: int, said: str) -> None:
    lines = display.lines(bet(**changes), 1, 120).split("\n")
    assert len(lines) == 3
    assert said in lines[line]


def test_no_line_is_wider_than_the_terminal() -> None:
    lines = display.lines(bet(), 1, 40).split("\n")
    assert [len(line) for line in lines] == [40, 38, 34]
    assert [line.endswith("…") for line in lines] == [True, False, False]
