"""What a redrive makes of dead letters that came more than once."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import KafkaSettings, Settings
from bridge.feed.received import Oversized, Received
from bridge.inspection.dead_letters import Filter
from bridge.kafka import admin
from bridge.kafka.batch import Record
from bridge.kafka.reader import TopicScan
from bridge.records import topics
from bridge.records.dead_letter import DeadLetterKind, RedriveOutcome, dead_letter, identity
from bridge.repair import redrive
from bridge.repair.redrive_rules import Model
from bridge.stored.restore import PublishedReader
from tests.repo.source import ROOT

EXAMPLE: dict[str, Any] = orjson.loads((ROOT / "examples" / "settled-bet.message.json").read_bytes())
AT = 1_790_000_000.0
LATER = AT + 50_000
SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="nowhere:1"))
TOPICS = topics.declare(SETTINGS)
SCHEMA = load("settled-bet")
CODEC = Codec(SCHEMA, 7, lambda _: SCHEMA)


class Written:
    """Topics of one partition in memory."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def letter(self, body: bytes, at: float, *, oversized: bool = False) -> None:
        """Write the dead letter of a message."""
        kind = DeadLetterKind.OVERSIZED if oversized else DeadLetterKind.ERROR
        head = Oversized(len(body), hashlib.sha256(body).hexdigest(), body[:50])
        message = Received(head if oversized else body, at)
        self._add(dead_letter(TOPICS.deadletters.name, message, kind, "data.x: wrong", feed="f", revision=17))

    def bet(self, body: bytes, at: float) -> None:
        """Write the bet of a message, as if received at this time."""
        bet = Model(SETTINGS, CODEC).convert(identity(body).decode(), body)
        assert isinstance(bet, tuple)
        self._add(Record(TOPICS.bets.name, bet[0], bet[3], int(at * 1000)))

    def _add(self, record: Record) -> None:
        offset = sum(message.topic() == record.topic for message in self.messages)
        at = (1, record.timestamp)
        self.messages.append(
            Message(record.topic, 0, offset, record.key, record.value, record.headers, timestamp=at)
        )

    def read(self, scan: TopicScan, _settings: Settings) -> dict[int, int]:
        """Read as `TopicScan.read`."""
        starts: Any = scan.start or {}
        for message in self.messages:
            begin, end = starts.get(0, 0), (scan.ends or {}).get(0, len(self.messages))
            if message.topic() == scan.topic and begin <= (message.offset() or 0) < end:
                scan.take(message)
        return {}

    def redriven(self) -> list[tuple[RedriveOutcome, int | None]]:
        """Return the outcome of each open letter that is tried, and its version, in order."""
        settings = SETTINGS.model_copy(update={"feed": SETTINGS.feed.model_copy(update={"name": "f"})})
        reader = PublishedReader(settings, TOPICS, CODEC)
        work = redrive._Work(settings, reader, CODEC, Filter(), visible=True)
        bodies = redrive.read_bodies(settings, work.letters)
        decisions = [work.decide(letter, bodies[letter.place]) for letter in work.letters]
        return [(decision.outcome, decision.bet and decision.bet[1]) for decision in decisions]


def body(version: int, payout: float = 1.5) -> bytes:
    return orjson.dumps({"data": EXAMPLE["data"] | {"settlementVersion": version, "payout": payout}})


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    written = Written()
    monkeypatch.setattr(TopicScan, "read", lambda scan, settings: written.read(scan, settings))
    monkeypatch.setattr(admin, "require_topic", lambda *_: None)
    return written


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("published", "outcome"),
    [(None, RedriveOutcome.PUBLISHED), (body(2), RedriveOutcome.STALE), (body(1), RedriveOutcome.DUPLICATE)],
    ids=["nothing", "later version", "same content"],
)
def test_a_letter_that_came_again_is_compared_with_what_is_published(
    written: Written, times: int, published: bytes | None, outcome: RedriveOutcome
) -> None:
    written.letter(body(1), AT)
    if published is not None:
        written.bet(published, AT + 100)
    if times == 2:
        written.letter(body(1), LATER)
    assert written.redriven() == [(outcome, 1)]


def test_versions_ascend_although_the_lower_one_came_again(written: Written) -> None:
    written.letter(body(1), AT)
    written.letter(body(2), AT + 100)
    written.letter(body(1), LATER)
    assert written.redriven() == [(RedriveOutcome.PUBLISHED, 1), (RedriveOutcome.PUBLISHED, 2)]


@pytest.mark.parametrize("whole_first", [True, False])
def test_a_letter_is_tried_if_its_bytes_came_whole_once(written: Written, whole_first: bool) -> None:
    written.letter(body(1), AT, oversized=not whole_first)
    written.letter(body(1), LATER, oversized=whole_first)
    assert written.redriven() == [(RedriveOutcome.PUBLISHED, 1)]


def test_contents_that_are_published_are_duplicates_in_whatever_order_their_letters_come(
    written: Written,
) -> None:
    first, second = body(1, 1.0), body(1, 2.0)
    written.bet(first, AT)
    written.bet(second, AT + 100)
    written.letter(second, LATER)
    written.letter(first, LATER + 100)
    assert written.redriven() == [(RedriveOutcome.DUPLICATE, 1), (RedriveOutcome.DUPLICATE, 1)]


def test_a_letter_received_a_millisecond_apart_is_no_later_one(written: Written) -> None:
    written.bet(body(1, 1.0), AT + 0.001)
    written.letter(body(1, 2.0), AT + 0.002)
    assert written.redriven() == [(RedriveOutcome.FAILED, 1)]


def test_a_content_that_came_again_in_another_message_is_published_again(written: Written) -> None:
    written.letter(body(1, 1.0), AT)
    written.letter(body(1, 2.0), AT + 1)
    written.letter(body(1, 1.0) + b" ", AT + 2)
    assert written.redriven() == [(RedriveOutcome.PUBLISHED, 1)] * 3
