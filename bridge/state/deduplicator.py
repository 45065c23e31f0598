"""The guard: tells what is new from what a replay brings back.

A replay overlaps what is already published, so for each bet the guard knows the last version and the
contents published at it, in order. A connection replays the provider's own sequence; the guard walks
along what it knew when the connection began and drops what matches. So A, B, A is published as A, B, A
live as well as in a replay, whatever part of it had been committed before.

A content is known by the schema in which it was published and a hash of its bytes. What was published
with another schema than today's is compared in that one.

Memory: 44 bytes a publication and 12 to 24 a bet, in a `Table`. Only a bet that has had several contents at
its last version, which is rare, takes some hundred more. A bet is known by a 128-bit hash of its id: two
bets that share one would be taken for one. What was published at `keep_from` or later is not evicted, the
rest is: `EvictionHorizon` says what that is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from hashlib import blake2b

from bridge.avro.codec import HEADER_BYTES
from bridge.state.hash_table import KEY_BYTES, Table
from bridge.state.replay_marks import EvictionHorizon

Rewrite = Callable[[bytes], bytes | None]
"""The fingerprint of the content in hand in another schema, by the schema's id; None if it does not fit."""


class DedupResult(Enum):
    """What to do with a message."""

    NEW = "publish"
    CORRECTION = "publish: another content for a version that is published already"
    DUPLICATE = "drop: published already"
    STALE = "drop: a later version is published already"


class _Chain:
    """The contents of a bet that has had several at its last version, in order."""

    __slots__ = ("connection", "contents", "cursor", "known")

    def __init__(self, content: bytes, connection: int, known: int) -> None:
        self.contents = [content]
        self.connection = connection
        self.known = known
        """How many of `contents` were published before this connection: only these can come back."""
        self.cursor = 0
        """How far the replay on this connection has walked along them."""

    def walk(self, content: bytes, rewrite: Rewrite, connection: int) -> bool:
        """Whether the content is found where the replay has come to, or further on: then it walks there."""
        if self.connection != connection:
            self.connection, self.known, self.cursor = connection, len(self.contents), 0
        # Once something new has come, all that was known has come before it: the walk is over.
        if len(self.contents) == self.known:
            # From where the walk stands, not behind it: a content may come twice in a row.
            for place in range(max(0, self.cursor - 1), self.known):
                if _same(self.contents[place], content, rewrite):
                    self.cursor = place + 1
                    return True
        return False


_ID_BYTES = HEADER_BYTES - 1
"""A value in wire format has the id of its schema behind its first byte."""
_HASH_BYTES = 16
_ROW = struct.Struct(f"<{_ID_BYTES + _HASH_BYTES}sq")
"""What a row says of a bet: the fingerprint of its content, its version."""
_DEAD_ROW = struct.Struct("<d20x")
"""And of a dead letter: when it was received."""
_NONE: tuple[bytes | None, bytes, int] = (None, b"", 0)
CROWDED = 500_000
"""Rows beyond which settlementTimes are relied on to forget some: 30 MB."""
DROPPED_AT_ONCE = 2_000
"""Rows that one eviction drops at most."""
DROPPED_WITH_ONE = 4
"""Rows that each publication drops at most: more than it adds."""


def fingerprint(value: bytes) -> bytes:
    """The 20 bytes by which a value in wire format is known: schema and hash. Maps must be sorted."""
    return value[1:HEADER_BYTES] + blake2b(value[HEADER_BYTES:], digest_size=_HASH_BYTES).digest()


class Deduplicator:
    """The last version of each bet, and the dead letters, of the time that a replay can reach."""

    def __init__(self) -> None:
        self._table = Table(_ROW.size)
        self._chains: dict[bytes, _Chain] = {}
        """Of the few bets that have had several contents at their last version."""
        self._horizon = EvictionHorizon()
        self._passed = self._table.first
        """The rows before this one are to be dropped."""
        self._connection = 0
        self._connected = self._table.first
        """The first row of this connection."""
        self._found = _NONE
        """The last bet that was looked for, while nothing has changed: it is judged, then published."""

    def __len__(self) -> int:
        return len(self._table)

    def connected(self, revision: float | None = None) -> None:
        """A new connection begins, from this revision: what is known up to now may come again."""
        self._connection += 1
        self._connected = self._table.end
        self._horizon.connected(revision)

    def observe(self, settled_at: float) -> None:
        """The feed has brought a bet that was settled then, Unix seconds, be it new or not."""
        self._horizon.observe(settled_at)

    def judge(
        self, key: bytes, version: int, content: bytes, rewrite: Rewrite, *, replaying: bool
    ) -> DedupResult:
        """What to do with this content of this bet. Changes nothing but the place in the replay."""
        _, digest, row = self._find(key)
        if not row:
            return DedupResult.NEW
        last, last_version = _ROW.unpack(self._table.payload(row))
        if version != last_version:
            return DedupResult.NEW if version > last_version else DedupResult.STALE
        chain = self._chains.get(digest)
        if chain is not None and replaying and chain.walk(content, rewrite, self._connection):
            return DedupResult.DUPLICATE
        return DedupResult.DUPLICATE if _same(last, content, rewrite) else DedupResult.CORRECTION

    def knew(self, key: bytes) -> bool:
        """Whether the last version of a bet was known before this connection began."""
        _, digest, row = self._find(key)
        chain = self._chains.get(digest)
        if chain is not None:
            return chain.connection != self._connection or chain.known > 0
        return 0 < row < self._connected

    def publish(
        self, key: bytes, version: int, content: bytes, at: float, settled_at: float | None = None
    ) -> None:
        """A record is published, or was: in the order of its partition.

        `at` is its time of receipt, Unix seconds. `settled_at` is its settlementTime where the feed has
        just brought it, so that everything known was published before it; None where it is read back.
        """
        _, digest, row = self._find(key)
        if row:
            last, last_version = _ROW.unpack(self._table.payload(row))
            if version < last_version:
                return
            if version > last_version:
                self._chains.pop(digest, None)
            else:
                self._chain(digest, row, last).contents.append(content)
        self._add(digest, _ROW.pack(content, version))
        self._horizon.published(self._table.end - 1, at, settled_at)

    def _chain(self, digest: bytes, row: int, content: bytes) -> _Chain:
        """The contents of a bet at its last version. The first one makes a chain of it."""
        if digest not in self._chains:
            known = 1 if row < self._connected else 0
            self._chains[digest] = _Chain(content, self._connection, known)
        return self._chains[digest]

    def dead_letter_time(self, content: bytes) -> float | None:
        """When the dead letter of this `identity` was received, Unix seconds; None when it is new."""
        row = self._table.find(_of_dead_letter(content))
        return _DEAD_ROW.unpack(self._table.payload(row))[0] if row else None

    def record_dead_letter(self, content: bytes, at: float) -> None:
        """A dead letter is published, or was. `at` is its time of receipt, Unix seconds."""
        self._add(_of_dead_letter(content), _DEAD_ROW.pack(at))
        self._horizon.received(at)

    def evict(self, keep_from: float) -> None:
        """Forget what the provider published before `keep_from`, Unix seconds, as far as that is known.

        No replay may reach that far any more. Takes milliseconds: where there is much to forget, the
        rest of it goes with the next publications and evictions.
        """
        crowded = len(self._table) > CROWDED
        self._passed = self._horizon.horizon(keep_from, self._table.end, crowded=crowded) or self._passed
        self._drop(DROPPED_AT_ONCE)

    def _find(self, key: bytes) -> tuple[bytes | None, bytes, int]:
        """A bet with its digest and its row, 0 where there is none."""
        if self._found[0] != key:
            digest = blake2b(key, digest_size=KEY_BYTES).digest()
            self._found = (key, digest, self._table.find(digest))
        return self._found

    def _add(self, digest: bytes, payload: bytes) -> None:
        self._table.put(digest, payload)
        self._found = _NONE
        if self._table.first < self._passed:
            self._drop(DROPPED_WITH_ONE)

    def _drop(self, limit: int) -> None:
        table = self._table
        self._found = _NONE
        for _ in range(min(limit, self._passed - table.first)):
            digest = table.drop()
            if digest is not None:
                self._chains.pop(digest, None)


def _of_dead_letter(content: bytes) -> bytes:
    """The key of a dead letter, which is never that of a bet."""
    return blake2b(content, digest_size=KEY_BYTES, person=b"dead letter").digest()


def _same(known: bytes, content: bytes, rewrite: Rewrite) -> bool:
    schema = known[:_ID_BYTES]
    return known == content or (schema != content[:_ID_BYTES] and known == rewrite(schema))
