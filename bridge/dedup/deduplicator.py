"""Distinguishes new bets from those that a replay repeats.

A replay overlaps with published bets, so the deduplicator stores the last version of each bet and its
contents at that version, in the order of publication. A connection replays the provider's own sequence. The
deduplicator walks along the contents that it knew when the connection began and drops those that match. So
A, B, A is published as A, B, A live as well as in a replay, whatever part of it was committed before. A match
before the last content is undecided until the replay has shown whether it repeats the last one.

A content is identified by the id of its schema and a hash of its bytes. Contents published with an earlier
schema are compared in that schema.

Memory: 45 bytes a publication and 12 to 24 a bet, in a `DigestTable`, and some hundred bytes for each of the
few bets with several contents at their last version, with 40 for each content whose row is still there. A bet
is identified by a 128-bit hash of its id; two bets with the same hash would be treated as one. Bets and
contents published before `keep_from` are evicted, as far as `EvictionHorizon` knows them and except for the
last `KEPT` rows.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable
from enum import Enum
from hashlib import blake2b

from bridge.avro.codec import HEADER_BYTES
from bridge.dedup.digests import SEED, bet_digest, content_digest
from bridge.dedup.eviction_horizon import EvictionHorizon
from bridge.dedup.hash_table import KEY_BYTES, DigestTable

Rewrite = Callable[[bytes], bytes | None]
"""Returns the fingerprint of the current content in another schema, by its id; None if it does not fit."""


class DedupResult(Enum):
    """What to do with a message."""

    NEW = "publish"
    CORRECTION = "publish: other content for a published version"
    DUPLICATE = "drop: already published"
    STALE = "drop: a later version is already published"
    UNDECIDED = "hold: repeated if what was published after it is repeated too, otherwise changed back"


class _Chain:
    """The contents of a bet with several at its last version: their rows, in order."""

    __slots__ = ("connection", "cursor", "rows")

    def __init__(self, row: int) -> None:
        self.rows = [row]
        self.connection = 0
        """The one of the cursor."""
        self.cursor = 0
        """Number of `rows` that the replay on this connection has passed."""

    def evict(self, first: int) -> None:
        """Forget the rows before this one, which are no longer in the table."""
        evicted = bisect_left(self.rows, first)
        if evicted:
            del self.rows[:evicted]
            self.cursor = max(0, self.cursor - evicted)


_ID_BYTES = HEADER_BYTES - 1
"""In wire format the schema id follows the first byte."""
_HASH_BYTES = 16
_ROW = struct.Struct(f"<{_ID_BYTES + _HASH_BYTES}sq?")
"""Payload of a bet: the fingerprint of its content, its version, whether it was brought."""
_DEAD_ROW = struct.Struct("<d20x?")
"""Payload of a dead letter: its time of receipt, whether it was brought."""
_BROUGHT = _ROW.size - 1
_NONE: tuple[bytes | None, bytes, int] = (None, b"", 0)
CROWDED = 500_000
"""Above this number of rows, 30 MB, eviction relies on settlementTimes too."""
KEPT = CROWDED
"""The last rows, which stay although no replay should reach them: one may begin earlier than requested."""
DROPPED_AT_ONCE = 2_000
"""Most rows dropped by one eviction."""
DROPPED_WITH_ONE = 4
"""Most rows dropped with each publication, which adds one."""


def fingerprint(value: bytes) -> bytes:
    """Return the 20 bytes that identify a value in wire format: schema id and hash. Maps must be sorted."""
    return value[1:HEADER_BYTES] + content_digest(value)


class Deduplicator:
    """Knows the last version of each bet, and the dead letters, as far back as a replay can reach."""

    def __init__(self) -> None:
        self._table = DigestTable(_ROW.size)
        self._chains: dict[bytes, _Chain] = {}
        """Only of bets with several contents at their last version."""
        self._horizon = EvictionHorizon()
        self._keep_row = self._reached_row = self._table.first
        """Rows before the first are to be dropped, no replay should reach those before the second."""
        self._connection = 0
        self._connected = self._table.first
        """The first row of this connection."""
        self._witnesses_end = self._connected
        """The first row that does not show whether a replay is whole."""
        self._inherited = True
        """Whether rows that are marked as brought by an unproven replay do not show it either."""
        self._found = _NONE
        """The last lookup, valid until a row changes: a bet is judged, then published."""

    def __len__(self) -> int:
        return len(self._table)

    def connected(self, revision: float | None = None, *, replay_unproven: bool = False) -> None:
        """Begin a connection that replays from this revision: all known bets may be repeated.

        While the replay of the last one is unproven (`replay_unproven`), what that has brought itself shows
        nothing.
        """
        if not replay_unproven or not self._connection:
            self._witnesses_end = self._table.end
        self._inherited &= replay_unproven
        self._connection += 1
        self._connected = self._table.end
        self._horizon.connected(revision)

    @property
    def received_until(self) -> float:
        """The latest time of receipt, Unix seconds; -inf before the first."""
        return self._horizon.received_until

    def rewind(self) -> None:
        """Begin again with the first of what may be repeated."""
        self._connection += 1

    def observe(self, settled_at: float) -> None:
        """Note the settlementTime of a received bet, Unix seconds, new or not."""
        self._horizon.observe(settled_at)

    def judge(
        self, key: bytes, version: int, content: bytes, rewrite: Rewrite, *, replaying: bool
    ) -> DedupResult:
        """Return the decision on this content of this bet. Changes only the position in the replay."""
        _, digest, row = self._find(key)
        if not row:
            return DedupResult.NEW
        last, last_version, _ = _ROW.unpack(self._table.payload(row))
        if version != last_version:
            return DedupResult.NEW if version > last_version else DedupResult.STALE
        chain = self._chain(digest)
        same = _same(last, content, rewrite)
        if chain is not None and replaying and self._walk(chain, content, rewrite):
            return DedupResult.DUPLICATE if same else DedupResult.UNDECIDED
        return DedupResult.DUPLICATE if same else DedupResult.CORRECTION

    def proves_replay(self, key: bytes) -> bool:
        """Return whether the last version of a bet shows, when it comes again, that a replay is whole."""
        _, digest, row = self._find(key)
        chain = self._chain(digest)
        return self._is_witness(row if chain is None else chain.rows[0])

    def publish(
        self,
        key: bytes,
        version: int,
        content: bytes,
        at: float,
        settled_at: float | None = None,
        *,
        brought: bool = False,
    ) -> None:
        """Add a published bet, in the order of its partition.

        `at` is its time of receipt, Unix seconds. `settled_at` is the settlementTime of a bet just received,
        so that all known bets were published before it; None for one that is restored from Kafka. One that is
        `brought` was received in a replay that an earlier process has left unproven.
        """
        _, digest, row = self._find(key)
        if row:
            _, last_version, _ = _ROW.unpack(self._table.payload(row))
            if version < last_version:
                return
            if version > last_version:
                self._chains.pop(digest, None)
            else:
                chain = self._chain(digest)
                if chain is None:
                    chain = self._chains[digest] = _Chain(row)
                chain.rows.append(self._table.end)
        self._add(digest, _ROW.pack(content, version, brought))
        self._horizon.published(self._table.end - 1, at, settled_at)

    def dead_letter_time(self, content: bytes) -> float | None:
        """Return when the dead letter of this `identity` was received, Unix seconds; None if it is new."""
        row = self._table.find(_of_dead_letter(content))
        return _DEAD_ROW.unpack(self._table.payload(row))[0] if row else None

    def letter_proves_replay(self, content: bytes, since: float) -> bool:
        """Return, as `proves_replay`, whether a dead letter received since then shows a whole replay."""
        row = self._table.find(_of_dead_letter(content))
        return self._is_witness(row) and _DEAD_ROW.unpack(self._table.payload(row))[0] >= since

    def record_dead_letter(self, content: bytes, at: float, *, brought: bool = False) -> None:
        """Add a published dead letter, received `at`, Unix seconds; `brought` as in `publish`."""
        self._add(_of_dead_letter(content), _DEAD_ROW.pack(at, brought))
        self._horizon.received(at)

    def evict(self, keep_from: float) -> None:
        """Drop bets and dead letters known to be published before `keep_from`, Unix seconds, except the last.

        No replay should reach further back. Takes milliseconds: the rest of a large eviction is spread over
        the next publications and evictions.
        """
        crowded = len(self._table) > CROWDED
        row = self._horizon.horizon(keep_from, self._table.end, crowded=crowded)
        self._reached_row = row or self._reached_row
        self._keep_row = max(self._keep_row, min(self._reached_row, self._table.end - KEPT))
        self._drop(DROPPED_AT_ONCE)

    def _find(self, key: bytes) -> tuple[bytes | None, bytes, int]:
        """Return a key with its digest and its row, 0 if there is none."""
        if self._found[0] != key:
            digest = bet_digest(key, SEED)
            self._found = (key, digest, self._table.find(digest))
        return self._found

    def _chain(self, digest: bytes) -> _Chain | None:
        """Return the chain of a bet that is in the table; None if it has only one content."""
        chain = self._chains.get(digest)
        if chain is not None:
            chain.evict(self._table.first)
        return chain

    def _walk(self, chain: _Chain, content: bytes, rewrite: Rewrite) -> bool:
        """Return whether a replay may repeat this content now: at the cursor or after it, which moves there.

        Only what was published before this connection can be repeated on it.
        """
        if chain.connection != self._connection:
            chain.connection, chain.cursor = self._connection, 0
        # The feed is ordered: after a new content no known one follows.
        if chain.rows[-1] < self._connected:
            # Includes the last match: a content may be repeated twice in a row.
            for place in range(max(0, chain.cursor - 1), len(chain.rows)):
                known, _, _ = _ROW.unpack(self._table.payload(chain.rows[place]))
                if _same(known, content, rewrite):
                    chain.cursor = place + 1
                    return True
        return False

    def _is_witness(self, row: int) -> bool:
        known_before = 0 < row < self._witnesses_end
        return known_before and not (self._inherited and self._table.payload(row)[_BROUGHT])

    def _add(self, digest: bytes, payload: bytes) -> None:
        self._table.put(digest, payload)
        self._found = _NONE
        if self._table.first < self._keep_row:
            self._drop(DROPPED_WITH_ONE)

    def _drop(self, limit: int) -> None:
        table = self._table
        self._found = _NONE
        for _ in range(min(limit, self._keep_row - table.first)):
            digest = table.drop()
            if digest is not None:
                self._chains.pop(digest, None)


def _of_dead_letter(content: bytes) -> bytes:
    """Return the key of a dead letter, which never equals that of a bet."""
    return blake2b(content, digest_size=KEY_BYTES, person=b"dead letter").digest()


def _same(known: bytes, content: bytes, rewrite: Rewrite) -> bool:
    schema = known[:_ID_BYTES]
    return known == content or (schema != content[:_ID_BYTES] and known == rewrite(schema))
