"""The guard: tells what is new from what a replay brings back.

A replay overlaps what is already published, so for each bet the guard knows the last version and the
contents published at it, in order. A connection replays the provider's own sequence; the guard walks
along what it knew when the connection began and drops what matches. So A, B, A is published as A, B, A
live as well as in a replay, whatever part of it had been committed before.

A content is known by the schema in which it was published and a hash of its bytes. What was published
with another schema than today's is compared in that one.

Memory: about 450 bytes a bet (a key of 36 characters, an entry and one hash), measured by
`tests/unit/sink/test_guard.py`. What is younger than `keep_from` is never evicted, the rest is.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from hashlib import blake2b
from itertools import takewhile
from typing import TypeVar

from bridge.avro.codec import HEADER_BYTES

T = TypeVar("T")

Rewrite = Callable[[bytes], bytes | None]
"""The fingerprint of the content in hand in another schema, by the schema's id; None if it does not fit."""


class Verdict(Enum):
    """What to do with a message."""

    NEW = "publish"
    CORRECTION = "publish: another content for a version that is published already"
    DUPLICATE = "drop: published already"
    STALE = "drop: a later version is published already"


class _Entry:
    """The last version of a bet."""

    __slots__ = ("at", "connection", "contents", "cursor", "known", "version")

    def __init__(self, version: int, content: bytes, at: float, connection: int) -> None:
        self.version = version
        self.contents = [content]
        self.at = at
        self.connection = connection
        self.known = 0
        """How many of `contents` were published before this connection: only these can come back."""
        self.cursor = 0
        """How far the replay on this connection has walked along them."""


SCHEMA = slice(1, HEADER_BYTES)
"""Where a value in wire format has the id of its schema."""
_ID_BYTES = SCHEMA.stop - SCHEMA.start


def fingerprint(value: bytes) -> bytes:
    """The 20 bytes by which a value in wire format is known: schema and hash. Maps must be sorted."""
    return value[SCHEMA] + blake2b(value[HEADER_BYTES:], digest_size=16).digest()


class Guard:
    """The last version of each bet, and the dead letters, of the time that a replay can reach."""

    def __init__(self) -> None:
        self._bets: dict[bytes, _Entry] = {}  # oldest publication first
        self._dead: dict[bytes, float] = {}  # likewise
        self._connection = 0

    def __len__(self) -> int:
        return len(self._bets) + len(self._dead)

    def connected(self) -> None:
        """A new connection begins: what is known up to now may come again."""
        self._connection += 1

    def judge(
        self, key: bytes, version: int, content: bytes, rewrite: Rewrite, *, replaying: bool
    ) -> Verdict:
        """What to do with this content of this bet. Changes nothing but the place in the replay."""
        entry = self._bets.get(key)
        if entry is None or version > entry.version:
            return Verdict.NEW
        if version < entry.version:
            return Verdict.STALE
        if entry.connection != self._connection:
            entry.connection, entry.known, entry.cursor = self._connection, len(entry.contents), 0
        # Once something new has come, all that was known has come before it: the walk is over.
        if replaying and len(entry.contents) == entry.known:
            # From where the walk stands, not behind it: a content may come twice in a row.
            for place in range(max(0, entry.cursor - 1), entry.known):
                if _same(entry.contents[place], content, rewrite):
                    entry.cursor = place + 1
                    return Verdict.DUPLICATE
        return Verdict.DUPLICATE if _same(entry.contents[-1], content, rewrite) else Verdict.CORRECTION

    def knew(self, key: bytes) -> bool:
        """Whether the last version of a bet was known before this connection began."""
        entry = self._bets.get(key)
        return entry is not None and (entry.connection != self._connection or entry.known > 0)

    def publish(self, key: bytes, version: int, content: bytes, at: float) -> None:
        """A record is published, or was: in the order of its partition. `at`: receipt, Unix seconds."""
        entry = self._bets.pop(key, None)
        if entry is None or version > entry.version:
            entry = _Entry(version, content, at, self._connection)
        elif version == entry.version:
            entry.contents.append(content)
            entry.at = at
        self._bets[key] = entry  # at the young end

    def buried_at(self, content: bytes) -> float | None:
        """When the dead letter of this `identity` was received, Unix seconds; None when it is new."""
        return self._dead.get(content)

    def bury(self, content: bytes, at: float) -> None:
        """A dead letter is published, or was. `at` is its time of receipt, Unix seconds."""
        self._dead.pop(content, None)
        self._dead[content] = at

    def evict(self, keep_from: float) -> None:
        """Forget what was published before `keep_from`, Unix seconds: no replay reaches that far."""
        _drop_while(self._bets, lambda entry: entry.at < keep_from)
        _drop_while(self._dead, lambda at: at < keep_from)


def _same(known: bytes, content: bytes, rewrite: Rewrite) -> bool:
    schema = known[:_ID_BYTES]
    return known == content or (schema != content[:_ID_BYTES] and known == rewrite(schema))


def _drop_while(entries: dict[bytes, T], old: Callable[[T], bool]) -> None:
    for key in [key for key, _ in takewhile(lambda item: old(item[1]), entries.items())]:
        del entries[key]
