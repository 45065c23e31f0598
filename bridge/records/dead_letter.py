"""Dead letters: the original bytes as the value, everything else in headers.

    kind        error, oversized (the value is only the head), sample (converted, but with a field that the
                interface does not document), or redrive (see below)
    reason      why, with the paths of the fields
    feed        name of the feed
    revision    the position at receipt, Unix seconds: a replay from there repeats the message
    received    time of receipt, Unix seconds with a fraction
    size        bytes of the original

The key is the SHA-256 of the original, in hex. The deduplicator identifies a dead letter by it.

`bridge deadletters redrive` appends a mark under the same key: a record of the kind redrive without a value.
It says what became of the letters before it, in the transaction of the bet.

    outcome     published, duplicate, stale, ping, empty, or failed: then the letter stays as it is
    tries       how often it was redriven
    redriven    when, Unix seconds with a fraction
    feed        as above
    reason      why it failed, or why it was not published
    bet         its betId, if it is a bet
    version     its settlementVersion, if it is a bet
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from bridge.errors import ForeignRecord
from bridge.feed.received import Oversized, Received
from bridge.formatting import is_time, parse_unix, parse_whole, shortened
from bridge.kafka.batch import Header, Record
from bridge.kafka.partitioner import partition_of
from bridge.records.message import RECEIVED

_REASON_BYTES = 2_000
MOST_TRIES: Final = 2**31
"""More than a letter is ever redriven."""


class DeadLetterKind(Enum):
    """What a record of the topic is."""

    ERROR = "error"
    OVERSIZED = "oversized"
    SAMPLE = "sample"
    REDRIVE = "redrive"


class RedriveOutcome(Enum):
    """What became of a dead letter that was redriven."""

    PUBLISHED = "published"
    DUPLICATE = "duplicate"
    STALE = "stale"
    PING = "ping"
    EMPTY = "empty"
    FAILED = "failed"


class DeadLetterCause(NamedTuple):
    """What many dead letters have in common: the first wrong field, without indices, and what is wrong."""

    field: str
    """Empty if the whole message is wrong."""
    reason: str


_WHOLE = "the message"
_FIELD = re.compile(rf"({_WHOLE}|(?:data|pingId)[^\s:]*): ")


def cause_of(reason: str) -> DeadLetterCause:
    """Return the cause that the `reason` of a dead letter gives: without values, numbers and other errors."""
    field = ""
    if found := _FIELD.match(reason):
        field = "" if found[1] == _WHOLE else without_indices(found[1])
        reason = reason[found.end() :].partition(", got ")[0].partition("; ")[0]
    else:
        reason = re.sub(r"\d[\d,]*", "N", reason.partition(": ")[0])
    return DeadLetterCause(field, reason)


def without_indices(path: str) -> str:
    """Return the path of a field without the indices in it: `data.selections[3].price` has `[]`."""
    return re.sub(r"\[\d+\]", "[]", path)


def identity(body: bytes | Oversized) -> bytes:
    """Return the key of a message's dead letter."""
    digest = body.sha256 if isinstance(body, Oversized) else hashlib.sha256(body).hexdigest()
    return digest.encode()


def dead_letter(
    topic: str,
    message: Received,
    kind: DeadLetterKind,
    reason: str,
    *,
    feed: str,
    revision: int,
    partitions: int = 1,
) -> Record:
    """Return the dead letter of a message, in a topic with so many partitions."""
    body = message.body
    value, size = (body.head, body.size) if isinstance(body, Oversized) else (body, len(body))
    key = identity(body)
    return Record(
        topic=topic,
        key=key,
        partition=partition_of(key, partitions),
        value=value,
        timestamp=int(message.at * 1000),
        headers=[
            ("kind", kind.value),
            ("reason", _cut(reason)),
            ("feed", feed),
            ("revision", str(revision)),
            (RECEIVED, f"{message.at:.6f}"),
            ("size", str(size)),
        ],
    )


def is_sample(letter: Record) -> bool:
    """Whether the message of a dead letter was converted all the same."""
    return ("kind", DeadLetterKind.SAMPLE.value) in (letter.headers or [])


def redrive_mark(
    topic: str,
    key: bytes,
    outcome: RedriveOutcome,
    *,
    feed: str,
    at: float,
    tries: int,
    reason: str = "",
    bet: tuple[bytes, int] | None = None,
    partitions: int = 1,
) -> Record:
    """Return the mark of a redriven dead letter. `bet` is its betId and settlementVersion."""
    headers: list[Header] = [
        ("kind", DeadLetterKind.REDRIVE.value),
        ("outcome", outcome.value),
        ("tries", str(tries)),
        ("redriven", f"{at:.6f}"),
        ("feed", feed),
    ]
    if reason:
        headers.append(("reason", _cut(reason)))
    if bet is not None:
        headers += [("bet", bet[0]), ("version", str(bet[1]))]
    partition = partition_of(key, partitions)
    return Record(topic, key, None, int(at * 1000), headers, partition)


class LetterHeaders(NamedTuple):
    """The headers of a dead letter, as above."""

    kind: DeadLetterKind
    """Not REDRIVE."""
    reason: str
    feed: str
    revision: int
    received: float
    size: int

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> LetterHeaders:
        """Read the headers of a record. Raises ForeignRecord for any that no bridge has written."""
        try:
            kind, revision, size = (
                DeadLetterKind(headers["kind"]),
                parse_whole(headers["revision"]),
                parse_whole(headers["size"]),
            )
            if kind is DeadLetterKind.REDRIVE or not is_time(revision) or size < 0:
                raise ValueError(f"kind {kind.value}, revision {revision}, size {size}")
            return cls(
                kind, headers["reason"], headers["feed"], revision, parse_unix(headers[RECEIVED]), size
            )
        except (LookupError, ValueError) as error:
            raise _no_headers("dead letter", error) from None


class MarkHeaders(NamedTuple):
    """The headers of the mark of a redriven dead letter, as above, without those of the bet."""

    outcome: RedriveOutcome
    tries: int
    redriven: float
    feed: str
    reason: str
    """Empty if there is none."""

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> MarkHeaders:
        """Read the headers of a record. Raises ForeignRecord for any that no bridge has written."""
        try:
            outcome, tries = RedriveOutcome(headers["outcome"]), parse_whole(headers["tries"])
            if not 0 <= tries < MOST_TRIES:
                raise ValueError(f"tries {tries}")
            redriven = parse_unix(headers["redriven"])
            return cls(outcome, tries, redriven, headers["feed"], headers.get("reason", ""))
        except (LookupError, ValueError) as error:
            raise _no_headers("redriven dead letter", error) from None


def _no_headers(what: str, error: Exception) -> ForeignRecord:
    return ForeignRecord(f"its headers are not those of a {what}: {shortened(repr(error))}")


def _cut(reason: str) -> bytes:
    return reason.encode("utf-8", "replace")[:_REASON_BYTES]
