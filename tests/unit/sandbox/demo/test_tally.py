"""What was sent, what arrived, and what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge_sandbox.demo.verify import Tally, WriterSchema

SCHEMA = WriterSchema(
    json.dumps(
        {
            "type": "record",
            "name": "Bet",
            "fields": [
                {"name": "betId", "type": "string"},
                {"name": "settlementVersion", "type": "long"},
                {"name": "payout", "type": "double"},
            ],
        }
    )
)


def bet(bet_id: str, version: int, payout: float = 1.5) -> dict[str, Any]:
    return {"betId": bet_id, "settlementVersion": version, "payout": payout}


class Feed:
    """A provider of which a tally learns, and the topic that it reads."""

    def __init__(self) -> None:
        self._fresh: list[tuple[float, bytes]] = []
        self.tally = Tally(self._take)

    def _take(self) -> list[tuple[float, bytes]]:
        fresh, self._fresh = self._fresh, []
        return fresh

    def send(self, *bets: dict[str, Any], at: float = 100.0) -> None:
        self._fresh += [(at, json.dumps({"data": b}).encode()) for b in bets]

    def send_bodies(self, *bodies: bytes) -> None:
        self._fresh += [(100.0, body) for body in bodies]

    def arrive(self, record: dict[str, Any]) -> float | None:
        return self.tally.arrived((record["betId"], record["settlementVersion"]), record, SCHEMA)


def test_what_was_sent_is_missing_until_it_arrives() -> None:
    feed = Feed()
    feed.send(bet("a", 1), bet("b", 1), at=123.0)
    feed.tally.catch_up()
    assert (feed.tally.sent, feed.tally.missing) == (2, 2)
    assert [feed.arrive(bet(name, 1)) for name in "ba"] == [123.0, 123.0]
    assert (feed.tally.published, feed.tally.missing, feed.tally.duplicates) == (2, 0, 0)
    assert feed.tally.wrong == []


@pytest.mark.parametrize(
    ("arrived", "missing", "duplicates", "wrong"),
    [
        # A second record is a duplicate, whatever its content.
        ([bet("a", 1), bet("a", 1), bet("a", 1, payout=9.0)], 2, 2, []),
        ([bet("a", 3)], 3, 0, ["a version 3 was never sent"]),
        ([bet("a", 1, payout=2.5)], 2, 0, ["a: data.payout: 1.5 became 2.5"]),
        ([bet("a", 2), bet("b", 1), bet("a", 1)], 0, 0, ["a went back to version 1"]),
    ],
)
def test_what_arrives_is_counted_and_judged(
    arrived: list[dict[str, Any]], missing: int, duplicates: int, wrong: list[str]
) -> None:
    feed = Feed()
    feed.send(bet("a", 1), bet("a", 2), bet("b", 1))
    for record in arrived:
        feed.arrive(record)
    assert feed.tally.published == len(arrived)
    assert (feed.tally.missing, feed.tally.duplicates, feed.tally.wrong) == (missing, duplicates, wrong)


WITHOUT_ID = [b'{"data":{"betId":null,"settlementVersion":1}}', b'{"data":{"settlementVersion":2}}']


def test_a_bet_without_an_id_is_missing_until_its_dead_letter_arrives() -> None:
    feed = Feed()
    feed.send_bodies(*WITHOUT_ID, b"{}", b'{"pingId":null,"data":null}')  # of the last two nothing comes
    feed.tally.dead_letter(WITHOUT_ID[0])
    assert (feed.tally.sent, feed.tally.missing) == (2, 1)
    for body in (WITHOUT_ID[1], WITHOUT_ID[1], b'{"data":{"betId":"a","settlementVersion":1,"payout":1.5}}'):
        feed.tally.dead_letter(body)
    assert (feed.tally.missing, feed.tally.duplicates, len(feed.tally.wrong)) == (0, 1, 1)
    assert feed.tally.wrong[0].startswith("a dead letter of a bet with an id, or never sent: ")
