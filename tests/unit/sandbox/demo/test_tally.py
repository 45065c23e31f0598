"""What was sent, what arrived, and what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

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
    assert feed.arrive(bet("b", 1)) == 123.0
    assert feed.arrive(bet("a", 1)) == 123.0
    assert (feed.tally.published, feed.tally.missing, feed.tally.duplicates) == (2, 0, 0)
    assert feed.tally.wrong == []


def test_a_second_record_is_a_duplicate_whatever_its_content() -> None:
    feed = Feed()
    feed.send(bet("a", 1))
    for record in (bet("a", 1), bet("a", 1), bet("a", 1, payout=9.0)):
        feed.arrive(record)
    assert (feed.tally.published, feed.tally.duplicates, feed.tally.wrong) == (3, 2, [])


def test_a_version_that_was_never_sent_is_wrong() -> None:
    feed = Feed()
    feed.send(bet("a", 1))
    assert feed.arrive(bet("a", 2)) is None
    assert feed.tally.wrong == ["a version 2 was never sent"]
    assert feed.tally.missing == 1


def test_a_changed_field_is_named_and_its_message_counts_as_arrived() -> None:
    feed = Feed()
    feed.send(bet("a", 1))
    feed.arrive(bet("a", 1, payout=2.5))
    assert feed.tally.wrong == ["a: data.payout: 1.5 became 2.5"]
    assert feed.tally.missing == 0


def test_a_bet_that_goes_back_is_wrong() -> None:
    feed = Feed()
    feed.send(bet("a", 1), bet("a", 2), bet("b", 1))
    for record in (bet("a", 2), bet("b", 1), bet("a", 1)):
        feed.arrive(record)
    assert feed.tally.wrong == ["a went back to version 1"]


WITHOUT_ID = [b'{"data":{"betId":null,"settlementVersion":1}}', b'{"data":{"settlementVersion":2}}']


def test_a_bet_without_an_id_is_missing_until_its_dead_letter_arrives() -> None:
    feed = Feed()
    feed.send_bodies(*WITHOUT_ID)
    feed.tally.dead_letter(WITHOUT_ID[0])
    assert (feed.tally.sent, feed.tally.missing) == (2, 1)
    feed.tally.dead_letter(WITHOUT_ID[1])
    assert (feed.tally.missing, feed.tally.duplicates, feed.tally.wrong) == (0, 0, [])


def test_a_duplicate_or_unexpected_dead_letter_is_reported() -> None:
    feed = Feed()
    feed.send(bet("a", 1))
    feed.send_bodies(WITHOUT_ID[0])
    for body in (WITHOUT_ID[0], WITHOUT_ID[0], b'{"data":{"betId":"a","settlementVersion":1,"payout":1.5}}'):
        feed.tally.dead_letter(body)
    assert (feed.tally.missing, feed.tally.duplicates, len(feed.tally.wrong)) == (1, 1, 1)
    assert feed.tally.wrong[0].startswith("a dead letter of a bet with an id, or never sent: ")


def test_nothing_is_to_come_of_a_message_without_a_bet() -> None:
    feed = Feed()
    feed.send_bodies(b"{}", b'{"pingId":null,"data":null}')
    feed.tally.catch_up()
    assert (feed.tally.sent, feed.tally.missing) == (0, 0)
