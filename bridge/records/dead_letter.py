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
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple, Self

from bridge.errors import ForeignRecord
from bridge.feed.received import Oversized, Received
from bridge.formatting import is_time, parse_unix, parse_whole, shortened
from bridge.kafka.batch import Header, Record
from bridge.kafka.partitioner import partition_of
from bridge.records.message import RECEIVED
from bridge.records.place import Place

_REASON_BYTES = 2_000
MOST_TRIES: Final = 2**31
"""More than a letter is ever redriven."""


class DeadLetterKind(StrEnum):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter(Place):
    """A message that could not be converted, or a sample of one with an unknown field.

    `body` is the original message, of an oversized one its head. The mark of a redrive has no value, so
    `bridge.reader.changes` yields it as `Removed`, although the letter stays.
    """

    body: bytes
    kind: DeadLetterKind
    """Not REDRIVE."""
    reason: str
    feed: str
    revision: int
    """The position at receipt, Unix seconds: a replay from there repeats the message."""
    received: float
    """When it was received, Unix seconds."""
    size: int
    """Bytes of the original."""

    @classmethod
    def read(cls, place: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Self:
        """Return the dead letter in a record. Raises ForeignRecord for headers that no bridge has written."""
        try:
            kind = DeadLetterKind(headers["kind"])
            revision, size = parse_whole(headers["revision"]), parse_whole(headers["size"])
            if kind is DeadLetterKind.REDRIVE or not is_time(revision) or size < 0:
                raise ValueError(f"kind {kind}, revision {revision}, size {size}")
            return cls(
                **place,
                body=body,
                kind=kind,
                reason=headers["reason"],
                feed=headers["feed"],
                revision=revision,
                received=parse_unix(headers[RECEIVED]),
                size=size,
            )
        except (LookupError, ValueError) as error:
            raise _no_headers("dead letter", error) from None


class RedriveMark(NamedTuple):
    """The mark of a redriven dead letter."""

    outcome: RedriveOutcome
    tries: int
    redriven: float
    feed: str
    reason: str = ""
    """Empty if there is none."""
    bet: tuple[bytes, int] | None = None
    """betId and settlementVersion; not read."""

    def record(self, topic: str, key: bytes, partitions: int = 1) -> Record:
        """Return its record, for the letter of this key in a topic with so many partitions."""
        headers: list[Header] = [
            ("kind", DeadLetterKind.REDRIVE.value),
            ("outcome", self.outcome.value),
            ("tries", str(self.tries)),
            ("redriven", f"{self.redriven:.6f}"),
            ("feed", self.feed),
        ]
        if self.reason:
            headers.append(("reason", _cut(self.reason)))
        if self.bet is not None:
            headers += [("bet", self.bet[0]), ("version", str(self.bet[1]))]
        return Record(topic, key, None, int(self.redriven * 1000), headers, partition_of(key, partitions))

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> RedriveMark:
        """Return the mark in the headers of a record. Raises ForeignRecord as `DeadLetter.read`."""
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
