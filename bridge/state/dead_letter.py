"""Dead letters: the original bytes as the value, everything else in headers.

    kind        error, oversized (the value is only the head), or sample (converted, but with a field
                that the interface does not document)
    reason      why, with the paths of the fields
    feed        name of the feed
    revision    the position at receipt, Unix seconds: a replay from there repeats the message
    received    time of receipt, Unix seconds with a fraction
    size        bytes of the original

The key is the SHA-256 of the original, in hex. The deduplicator identifies a dead letter by it.
"""

from __future__ import annotations

import hashlib
from enum import Enum

from bridge.feed.received import Oversized, Received
from bridge.kafka.batch import Record

_REASON_BYTES = 2_000


class DeadLetterKind(Enum):
    """Why a message became a dead letter."""

    ERROR = "error"
    OVERSIZED = "oversized"
    SAMPLE = "sample"


def identity(body: bytes | Oversized) -> bytes:
    """Return the key of a message's dead letter."""
    digest = body.sha256 if isinstance(body, Oversized) else hashlib.sha256(body).hexdigest()
    return digest.encode()


def dead_letter(
    topic: str, message: Received, kind: DeadLetterKind, reason: str, *, feed: str, revision: int
) -> Record:
    """Return the dead letter of a message."""
    body = message.body
    value, size = (body.head, body.size) if isinstance(body, Oversized) else (body, len(body))
    return Record(
        topic=topic,
        key=identity(body),
        value=value,
        timestamp=int(message.at * 1000),
        headers=[
            ("kind", kind.value),
            ("reason", reason.encode("utf-8", "replace")[:_REASON_BYTES]),
            ("feed", feed),
            ("revision", str(revision)),
            ("received", f"{message.at:.6f}"),
            ("size", str(size)),
        ],
    )
