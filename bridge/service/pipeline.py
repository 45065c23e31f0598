"""feed → decode → guard → encode → batch: what becomes of each message.

No IO: messages with their time of receipt in, records in a batch out. Every message moves the position
and ends in exactly one counter. A replay that brings back nothing of what is known from after the
revision that was asked for is a gap: the provider has forgotten without saying so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf

from bridge.avro.codec import Codecs
from bridge.clock import MICROS
from bridge.clock_skew import Skew
from bridge.config import Settings
from bridge.errors import ConversionError, SchemaError
from bridge.feed.position import Position
from bridge.feed.received import Oversized, Received
from bridge.kafka.batch import Batch, Record
from bridge.kafka.topics import Topics
from bridge.messages.converter import Bet, conversion
from bridge.messages.parser import Converter, holds_objects
from bridge.state.checkpoint import Counters
from bridge.state.dead_letter import Kind, dead_letter, identity
from bridge.state.deduplicator import Deduplicator, DedupResult, fingerprint
from bridge.state.gap import Cause, Gap

SAMPLES = 3
"""Originals kept of each field that the interface does not know."""
_WITNESSES = (DedupResult.DUPLICATE, DedupResult.STALE)
"""What was published before; a correction is new, though its bet is known."""
EXTRA_PATHS = 1_000
"""Distinct paths of such fields that are told apart."""


class Pipeline:
    """Turns messages into the batch in hand. One for as long as this process owns the feed.

    `new_extra` is told the path of a field that the interface does not know, once.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        codecs: Codecs,
        deduplicator: Deduplicator,
        position: Position,
        counters: Counters,
        newest: float | None,
        new_extra: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._converter = Converter(settings.feed.optional_fields)
        self._conversion = conversion(settings.feed.converter, self._converter, codecs.bets)
        self._convert = self._conversion.convert
        self._bets = codecs.bets
        self._bets_before = {codecs.bets.schema_id: codecs.bets}
        self._gaps = codecs.gaps
        self._deduplicator = deduplicator
        self._awaiting: int | None = None
        """The revision that was asked for, while what is known from after it has yet to come back."""
        self._stood_at = position.revision
        """Where the position was when the connection began."""
        self._connected_at = 0.0
        self.replays_from = inf
        """From where on this connection may still bring back what is known, Unix seconds."""
        self._new_extra = new_extra
        self.position = position
        self.counters = counters
        self.newest = newest
        """The newest settlementTime published, Unix seconds; none from the future."""
        self.extras: Counter[str] = Counter()
        """How often each field that the interface does not know has come."""
        self.batch = Batch()
        self.gaps = 0
        """Declared so far."""
        self.missing_in_replay: Gap | None = None
        """A gap that a replay has shown, until somebody takes note of it."""

    @property
    def full(self) -> bool:
        """Whether the batch in hand takes nothing more."""
        return self.batch.full(self._settings.batch)

    @property
    def fallbacks(self) -> int:
        """Messages that the compiled converter has left to pydantic."""
        return self._conversion.fallbacks

    def take_batch(self) -> Batch:
        """The batch in hand, to be committed; a new one is begun."""
        sealed, self.batch = self.batch, Batch()
        return sealed

    def connected(self, revision: int | None, skew: Skew | None, now: float) -> None:
        """A connection that replays from this revision begins; `skew` is what its handshake says, if any."""
        self.position.connected(*(skew.seconds, skew.high) if skew else (0.0, None))
        self._connected_at = now
        self._deduplicator.connected(revision)
        self.replays_from = inf if revision is None else float(revision)
        # What was settled after the revision was published after it, so a replay has to bring it back.
        known = revision is not None and self.newest is not None and self.newest > revision
        self._awaiting = revision if known else None
        self._stood_at = self.position.revision

    def declare(self, gap: Gap) -> None:
        """Put a gap on record, in the transaction of the checkpoint that goes on behind it."""
        self.gaps += 1
        self.batch.add(
            Record(
                self._topics.gaps.name,
                gap.feed.encode(),
                self._gaps.encode(gap.to_avro()),
                int(gap.detected_at * 1000),
                partition=0,
            )
        )

    def handle(self, message: Received, now: float) -> str | None:
        """Take a message at a monotonic time; returns its ping id, to be answered, if it has one."""
        ping_id = self._handle(message, now)
        if self._awaiting is not None and self.position.revision > self._stood_at:
            self._declare_replay_gap(message.at, self._awaiting)
        return ping_id

    def _declare_replay_gap(self, now: float, revision: int) -> None:
        """The position leaves the revision behind, and nothing of what is known from then has come."""
        self._awaiting = None
        settings, newest = self._settings.feed, self.position.newest
        # What came so far was published by then at the latest; what came first, some time before.
        resumed = now if newest is None else min(now, newest + settings.max_out_of_orderness_seconds)
        self.missing_in_replay = Gap(settings.name, revision, resumed, Cause.MISSING_IN_REPLAY, now)
        self.declare(self.missing_in_replay)

    def _handle(self, message: Received, now: float) -> str | None:
        self.batch.touch(now)
        self.counters.received += 1
        if message.stalled:
            self.position.stalled()
        body = message.body
        if isinstance(body, Oversized):
            limit = self._settings.feed.max_message_bytes
            self._bury(
                message, Kind.OVERSIZED, f"{body.size} bytes are more than feed.max_message_bytes = {limit}"
            )
            return None
        try:
            ping_id, bet, extras = self._convert(body)
        except ConversionError as error:
            self._bury(message, Kind.ERROR, error.reason)
            self._count(error.extras)
            return error.ping_id
        if bet is not None:
            self._publish_bet(message, body, bet)
        elif ping_id is None:
            self.counters.empty += 1
        else:
            self.counters.pings += 1
            if extras and holds_objects(body):  # a bet, for all that anybody knows
                self.position.not_understood(message.at)
            else:
                self.position.ping(message.at)
        if extras:
            self._sample(message, extras)
        return ping_id

    def _publish_bet(self, message: Received, body: bytes, bet: Bet) -> None:
        key, version, micros, value = bet
        settled_at = micros / MICROS
        content = fingerprint(value)
        self._deduplicator.observe(settled_at)
        verdict = self._deduplicator.judge(
            key,
            version,
            content,
            lambda schema: self._rewrite(body, schema),
            replaying=self.position.replaying(message.at),
        )
        if verdict in _WITNESSES and self._deduplicator.knew(key):
            self._awaiting = None
        if verdict is DedupResult.DUPLICATE:
            self.counters.duplicates += 1
        elif verdict is DedupResult.STALE:
            self.counters.stale += 1
        else:
            self._deduplicator.publish(key, version, content, message.at, settled_at)
            self.replays_from = inf  # the feed is in order: all that is known has come before what is new
            if settled_at <= message.at:
                self.newest = settled_at if self.newest is None else max(self.newest, settled_at)
            self.batch.add(Record(self._topics.bets.name, key, value, int(message.at * 1000)))
            self.counters.published += 1
            self.counters.corrections += verdict is DedupResult.CORRECTION
        self.position.data(message.at, settled_at)

    def _rewrite(self, body: bytes, schema: bytes) -> bytes | None:
        """The fingerprint of a bet as an earlier schema has it. Reading it anew is slow, but rarely asked."""
        schema_id = int.from_bytes(schema, "big")
        if schema_id not in self._bets_before:  # known since the guard was restored: nobody is asked
            self._bets_before[schema_id] = self._bets.in_schema(schema_id)
        bet = self._converter.decode(body).bet
        assert bet is not None
        try:
            return fingerprint(self._bets_before[schema_id].encode(bet))
        except SchemaError:
            return None

    def _bury(self, message: Received, kind: Kind, reason: str) -> None:
        content = identity(message.body)
        dead_letter_time = self._deduplicator.dead_letter_time(content)
        if dead_letter_time is not None:
            self.counters.duplicates += 1
            if self._awaiting is not None and self._awaiting <= dead_letter_time < self._connected_at:
                self._awaiting = None
        else:
            self._deduplicator.record_dead_letter(content, message.at)
            self._write_dead_letter(message, kind, reason)
            self.counters.dead_lettered += 1
        self.position.not_understood(message.at)

    def _sample(self, message: Received, extras: tuple[str, ...]) -> None:
        """Keep the first few originals with a field that nobody expected, so that somebody finds out."""
        if fresh := self._count(extras):
            self._write_dead_letter(message, Kind.SAMPLE, f"unknown fields: {', '.join(fresh)}")

    def _count(self, extras: tuple[str, ...]) -> list[str]:
        """Count fields that the interface does not know, and tell of each once; returns the rare ones."""
        rare = []
        for path in extras:
            if path in self.extras or len(self.extras) < EXTRA_PATHS:
                self.extras[path] += 1
                if self.extras[path] <= SAMPLES:
                    rare.append(path)
                if self.extras[path] == 1:
                    self._new_extra(path)
        return rare

    def _write_dead_letter(self, message: Received, kind: Kind, reason: str) -> None:
        self.batch.add(
            dead_letter(
                self._topics.deadletters.name,
                message,
                kind,
                reason,
                feed=self._settings.feed.name,
                revision=self.position.revision,
            )
        )
