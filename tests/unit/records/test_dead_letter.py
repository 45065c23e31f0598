"""A dead letter holds the original bytes, and everything else in headers."""

from __future__ import annotations

import hashlib

import pytest

from bridge.feed.received import Received
from bridge.kafka.partitioner import partition_of
from bridge.records.dead_letter import (
    DeadLetterCause,
    DeadLetterKind,
    RedriveMark,
    RedriveOutcome,
    cause_of,
    dead_letter,
    identity,
)

BODY = b'{"data":\xff}'
AT = 1_790_000_000.123456


def test_the_original_is_the_value() -> None:
    record = dead_letter(
        "t.deadletters",
        Received(BODY, AT),
        DeadLetterKind.ERROR,
        "data: not JSON",
        feed="f",
        revision=17,
        partitions=6,
    )
    partition = partition_of(identity(BODY), 6)
    assert (record.topic, record.value, record.partition) == ("t.deadletters", BODY, partition)
    assert record.key == hashlib.sha256(BODY).hexdigest().encode() == identity(BODY)
    assert record.timestamp == 1_790_000_000_123
    assert dict(record.headers or []) == {
        "kind": "error",
        "reason": b"data: not JSON",
        "feed": "f",
        "revision": "17",
        "received": "1790000000.123456",
        "size": str(len(BODY)),
    }


def test_a_reason_may_be_long_or_not_encodable() -> None:
    record = dead_letter(
        "t", Received(BODY, AT), DeadLetterKind.ERROR, "\ud800" + "x" * 5000, feed="f", revision=0
    )
    reason = dict(record.headers or [])["reason"]
    assert isinstance(reason, bytes)
    assert reason.startswith(b"?xxx")
    assert len(reason) == 2000


@pytest.mark.parametrize(
    ("reason", "field", "what"),
    [
        ("data.betSettlement: should be 1 or 2, got 9; data.x: y", "data.betSettlement", "should be 1 or 2"),
        ("data.selections[12].event.id: required; and 3 more", "data.selections[].event.id", "required"),
        ('data.x: Input should be a number, got "a; b, got c"', "data.x", "Input should be a number"),
        ("pingId: Input should be a valid string, got 7", "pingId", "Input should be a valid string"),
        ("the message: Input should be an object", "", "Input should be an object"),
        ("Invalid JSON: EOF while parsing at line 1 column 5", "", "Invalid JSON"),
        ("neither pingId nor data, but: novelty", "", "neither pingId nor data, but"),
        ("90 bytes are more than feed.x = 8", "", "N bytes are more than feed.x = N"),
    ],
)
def test_a_reason_has_a_cause(reason: str, field: str, what: str) -> None:
    assert cause_of(reason) == DeadLetterCause(field, what)


def test_a_mark_has_no_value() -> None:
    mark = RedriveMark(RedriveOutcome.STALE, 2, AT, "f", "a later one", (b"b", 3)).record("t", b"key", 6)
    assert (mark.topic, mark.key, mark.value, mark.partition) == ("t", b"key", None, partition_of(b"key", 6))
    assert mark.timestamp == 1_790_000_000_123
    assert dict(mark.headers or []) == {
        "kind": "redrive",
        "outcome": "stale",
        "tries": "2",
        "redriven": "1790000000.123456",
        "feed": "f",
        "reason": b"a later one",
        "bet": b"b",
        "version": "3",
    }
    bare = RedriveMark(RedriveOutcome.PING, 1, AT, "f").record("t", b"key")
    assert dict(bare.headers or []).keys() == {"kind", "outcome", "tries", "redriven", "feed"}
