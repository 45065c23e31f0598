"""What becomes of a dead letter that is redriven."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import Schema, load
from bridge.config import FeedSettings, Settings
from bridge.dedup.deduplicator import Deduplicator, fingerprint
from bridge.errors import SchemaError
from bridge.records.counters import Counters
from bridge.records.dead_letter import RedriveOutcome, identity
from bridge.repair.redrive_rules import Model, RedriveDecision, RedriveRules, in_order
from tests.repo.source import ROOT

EXAMPLE: dict[str, Any] = json.loads((ROOT / "examples" / "settled-bet.message.json").read_text("utf-8"))
SCHEMA = load("settled-bet")
CODEC = Codec(SCHEMA, 7)
OLDER: Schema = SCHEMA | {"fields": [field for field in SCHEMA["fields"] if field["name"] != "partialRefund"]}


def body(version: int = 1, payout: float = 1.5, **extra: Any) -> bytes:
    data = EXAMPLE["data"] | {"betId": "b", "settlementVersion": version, "payout": payout}
    return json.dumps({"data": data | extra}).encode()


def schemas(schema_id: int) -> Schema:
    if schema_id != 6:
        raise SchemaError("unknown")
    return OLDER


def desk(*published: tuple[bytes, float], codec: Codec = CODEC) -> RedriveRules:
    """The rules, after these messages were published, with their times of receipt."""
    given = Codec(SCHEMA, 7, schemas)
    model = Model(Settings(feed=FeedSettings(max_message_bytes=10_000)), given)
    deduplicator, received = Deduplicator(), {}
    for message, at in published:
        bet = model.convert(identity(message).decode(), message)
        assert not isinstance(bet, RedriveDecision)
        key, version, _, value = bet
        if codec is not CODEC:
            datum = given.decode(value)
            value = codec.encode(datum)
        deduplicator.publish(key, version, fingerprint(value), at)
        received[key] = at
    deduplicator.connected()
    return RedriveRules(model, deduplicator, received)


def judged(rules: RedriveRules, message: bytes, at: float = 10.0) -> RedriveDecision:
    return rules.decide(identity(message).decode(), message, at)


def test_a_bet_that_nobody_has_published_is_published() -> None:
    rules = desk()
    decision = judged(rules, body())
    assert (decision.outcome, decision.reason, decision.correction) == (RedriveOutcome.PUBLISHED, "", False)
    assert decision.bet is not None
    assert decision.bet[:2] == (b"b", 1)
    assert judged(rules, body()).outcome is RedriveOutcome.DUPLICATE


@pytest.mark.parametrize("at", [5.0, 15.0], ids=["later", "earlier"])
def test_a_bet_with_a_later_version_is_not_published(at: float) -> None:
    decision = judged(desk((body(3), at)), body(2))
    assert (decision.outcome, decision.reason) == (RedriveOutcome.STALE, "a later version is published")
    assert judged(desk((body(3), at)), body(4)).outcome is RedriveOutcome.PUBLISHED


def test_what_is_published_with_the_same_content_is_a_duplicate() -> None:
    assert judged(desk((body(), 5.0)), body()).outcome is RedriveOutcome.DUPLICATE
    assert judged(desk((body(), 5.0), codec=Codec(OLDER, 6)), body()).outcome is RedriveOutcome.DUPLICATE
    assert judged(desk((body(), 5.0), codec=Codec(OLDER, 5)), body()).outcome is RedriveOutcome.PUBLISHED


@pytest.mark.parametrize(
    ("at", "outcome", "correction"),
    [
        (5.0, RedriveOutcome.PUBLISHED, True),
        (9.9989, RedriveOutcome.PUBLISHED, True),
        (9.9991, RedriveOutcome.FAILED, False),
        (10.0, RedriveOutcome.FAILED, False),
        (10.0009, RedriveOutcome.FAILED, False),
        (15.0, RedriveOutcome.STALE, False),
    ],
)
def test_other_content_of_the_published_version_counts_by_its_receipt(
    at: float, outcome: RedriveOutcome, correction: bool
) -> None:
    """Received after the published one it is a correction; before, that one has replaced it already.

    In one read, or in the same millisecond, nobody knows: the letter stays as it is.
    """
    decision = judged(desk((body(payout=2.0), at)), body(payout=9.0))
    assert (decision.outcome, decision.correction) == (outcome, correction)


def test_a_redriven_bet_counts_by_the_receipt_of_its_letter() -> None:
    rules = desk()
    judged(rules, body(payout=1.0), at=20.0)
    assert judged(rules, body(payout=2.0), at=19.0).outcome is RedriveOutcome.STALE
    assert judged(rules, body(payout=3.0), at=21.0).correction
    assert judged(rules, body(payout=4.0), at=21.0).outcome is RedriveOutcome.FAILED
    assert judged(rules, body(version=2), at=21.0).outcome is RedriveOutcome.PUBLISHED


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (body(betSettlement=99), "data.betSettlement: Input should be 0, 1, 2, 3, 4, 5, 6 or 7, got 99"),
        (b"\xff", "Invalid JSON: "),
        (body(parameters={"novelty": 1}, selections=["x" * 20_000]), "bytes are more than feed.max_message"),
        (b'{"novelty":1}', "neither pingId nor data, but: novelty"),
    ],
)
def test_what_todays_model_refuses_fails_again(message: bytes, reason: str) -> None:
    decision = judged(desk(), message)
    assert (decision.outcome, decision.bet) == (RedriveOutcome.FAILED, None)
    assert reason in decision.reason


def test_bytes_that_are_not_those_of_the_key_fail() -> None:
    decision = desk().decide("0" * 64, body(), 10.0)
    assert (decision.outcome, "its key" in decision.reason) == (RedriveOutcome.FAILED, True)


def test_what_is_no_bet_is_a_ping_or_empty() -> None:
    assert judged(desk(), b'{"pingId":"7"}') == RedriveDecision(RedriveOutcome.PING)
    assert judged(desk(), b"{}") == RedriveDecision(RedriveOutcome.EMPTY)


@pytest.mark.parametrize("outcome", RedriveOutcome)
@pytest.mark.parametrize("correction", [False, True])
def test_each_letter_is_counted_a_second_time_unless_it_failed(
    outcome: RedriveOutcome, correction: bool
) -> None:
    counters = Counters(received=1, dead_lettered=1)
    RedriveDecision(outcome, correction=correction).add_to(counters)
    assert counters.balanced
    assert (counters.received, counters.dead_lettered) == (1, 1)
    assert counters.redriven == (outcome is not RedriveOutcome.FAILED)
    assert counters.corrections == (correction and outcome is RedriveOutcome.PUBLISHED)


def test_versions_of_a_bet_ascend_and_all_else_stays_in_order_of_receipt() -> None:
    letters = ["a2", "x", "b1", "a3", "a1", "b1'", "y"]
    versions = {one: (one[:1].encode(), int(one[1])) for one in letters if one[1:]}
    assert in_order(letters, versions) == ["a1", "x", "b1", "a2", "a3", "b1'", "y"]
