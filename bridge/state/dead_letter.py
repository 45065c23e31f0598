"""Dead letters: the original bytes as the value, everything else in headers.

    kind        error, oversized (the value is only the head), or sample (converted, but with a field
                that the interface does not know)
    reason      what is wrong, with the paths of the fields
    feed        name of the feed
    revision    the position at which it came, Unix seconds: from there a replay brings it again
    received    time of receipt, Unix seconds with a fraction
    size        bytes of the original

The key is the SHA-256 of the original, in hex: by it the guard knows a dead letter again.
"""

from __future__ import annotations

import hashlib
from enum import Enum

from bridge.feed.received import Oversized, Received
from bridge.kafka.batch import Record

_REASON_BYTES = 2_000


class Kind(Enum):
    """Why a message is among the dead letters."""

    ERROR = "error"
    OVERSIZED = "oversized"
    SAMPLE = "sample"


def identity(body: bytes | Oversized) -> bytes:
    """The key of a message among the dead letters."""
    digest = body.sha256 if isinstance(body, Oversized) else hashlib.sha256(body).hexdigest()
    return digest.encode()


def dead_letter(
    topic: str, message: Received, kind: Kind, reason: str, *, feed: str, revision: int
) -> Record:
    """The record of a message that is not, or not only, a settled bet."""
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
