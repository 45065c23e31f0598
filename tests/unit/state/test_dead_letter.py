"""A dead letter holds the original bytes, and everything else in headers."""

from __future__ import annotations

import hashlib

from bridge.feed.received import Oversized, Received
from bridge.state.dead_letter import DeadLetterKind, dead_letter, identity

BODY = b'{"data":\xff}'
AT = 1_790_000_000.123456


def test_the_original_is_the_value() -> None:
    """The key is the hash of the value."""
    record = dead_letter(
        "t.deadletters", Received(BODY, AT), DeadLetterKind.ERROR, "data: not JSON", feed="f", revision=17
    )
    assert (record.topic, record.value, record.partition) == ("t.deadletters", BODY, -1)
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


def test_of_an_oversized_message_the_head_is_the_value() -> None:
    """Size and key are those of the whole message."""
    whole = bytes(1000)
    oversized = Oversized(1000, hashlib.sha256(whole).hexdigest(), whole[:10])
    record = dead_letter(
        "t", Received(oversized, AT), DeadLetterKind.OVERSIZED, "too large", feed="f", revision=0
    )
    assert record.value == whole[:10]
    assert record.key == identity(whole)
    headers = dict(record.headers or [])
    assert (headers["kind"], headers["size"]) == ("oversized", "1000")


def test_a_reason_may_be_long_or_not_encodable() -> None:
    """It is cut, and characters that cannot be encoded are replaced."""
    record = dead_letter(
        "t", Received(BODY, AT), DeadLetterKind.ERROR, "\ud800" + "x" * 5000, feed="f", revision=0
    )
    reason = dict(record.headers or [])["reason"]
    assert isinstance(reason, bytes)
    assert reason.startswith(b"?xxx")
    assert len(reason) == 2000
