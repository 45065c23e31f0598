"""feed → decode → deduplicate → encode → batch: what becomes of each message.

No IO: messages with their time of receipt in, records in a batch out. Every message moves the position and
is counted exactly once. If a replay repeats nothing that was published after the requested revision, the
provider has lost it without saying so: that is a gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Final

from bridge.avro.codec import Codec, Codecs
from bridge.clock import MICROS
from bridge.clock_skew import Skew
from bridge.config import Settings
from bridge.dedup.deduplicator import Deduplicator, DedupResult, fingerprint
from bridge.errors import ConversionError, SchemaError
from bridge.feed.received import Oversized, Received
from bridge.kafka.batch import Batch, Record
from bridge.kafka.partitioner import partition_of
from bridge.log import get
from bridge.messages.converter import make_converter
from bridge.messages.parser import MessageParser, holds_objects
from bridge.messages.transcoder import Bet
from bridge.records.dead_letter import DeadLetterKind, dead_letter, identity
from bridge.records.gap import Cause, FeedGap, gap_record
from bridge.records.reach import TopicReach, used_partitions
from bridge.records.topics import Topics, largest_bet
from bridge.service.conversion_log import ConversionLog
from bridge.service.held import HeldBet
from bridge.service.replay import ReplayTracker
from bridge.service.term import Term

_DUPLICATE: Final = DedupResult.DUPLICATE
_STALE: Final = DedupResult.STALE
_CORRECTION: Final = DedupResult.CORRECTION
_UNDECIDED: Final = DedupResult.UNDECIDED
"""Looked up once, not for every message."""
GAPS = 20
"""Declared gaps that are remembered."""


class _Records:
    """Makes the records of a feed."""

    def __init__(self, feed: str, topics: Topics, gaps: Codec, reaches: Sequence[TopicReach]) -> None:
        used, letters = used_partitions(reaches), topics.deadletters.name
        self._bets = topics.bets.name
        self._partitions = used[topics.bets.name]
        self.letter = partial(dead_letter, letters, feed=feed, partitions=used[letters])
        self.gap = partial(gap_record, topics.gaps.name, gaps)

    def bet(self, key: bytes, value: bytes, at: float) -> Record:
        """Return that of a bet received at `at`."""
        return Record(self._bets, key, value, int(at * 1000), None, partition_of(key, self._partitions))


class _Conversion:
    """Converts messages, and converts the last one once more for another version of the schema."""

    def __init__(self, settings: Settings, bets: Codec) -> None:
        self._parser = MessageParser(settings.feed.optional_fields)
        self._bets = bets
        self.converter = make_converter(self._parser, bets, largest_bet(settings.feed))
        self.body = b""
        """The last message with a bet."""
        self.rewritten = self._rewrite  # made once, not for every message

    def _rewrite(self, schema: bytes) -> bytes | None:
        """Return the fingerprint of the bet at hand in an earlier schema. Slow, but rarely needed."""
        schema_id = int.from_bytes(schema, "big")
        bet = self._parser.parse(self.body).bet
        assert bet is not None
        try:
            # The schema is known since the restore: the registry is not asked.
            return fingerprint(self._bets.in_schema(schema_id).encode(bet))
        except SchemaError:
            return None


class Pipeline:
    """Turns messages into the current batch, for one term of leadership."""

    def __init__(self, term: Term, topics: Topics, codecs: Codecs, deduplicator: Deduplicator) -> None:
        settings = term.settings
        self.term = term
        self._settings = settings
        self._position = term.position
        self._counters = term.counters
        self._records = _Records(settings.feed.name, topics, codecs.gaps, term.topics)
        self._conversion = _Conversion(settings, codecs.bets)
        self.deduplicator = deduplicator
        self.replay = ReplayTracker(term.position, deduplicator, term.start)
        self.conversion_log = ConversionLog(settings.feed)
        self.batch = Batch()
        self.transaction_bytes = settings.batch.max_bytes
        """Records of how many bytes are committed at once."""
        self.gaps = 0
        """Number of declared gaps."""
        self.declared: deque[FeedGap] = deque(maxlen=GAPS)
        """The last of them."""
        self.missing_in_replay: FeedGap | None = None
        """A gap that a replay has shown, until the caller takes it."""

    @property
    def full(self) -> bool:
        """Whether the current batch is full. During a catch-up, it holds no more than one transaction."""
        one = self.batch.bytes >= self.transaction_bytes and not self._position.live
        return one or self.batch.full(self._settings.batch)

    @property
    def fallbacks(self) -> int:
        """Messages that the transcoder left to pydantic."""
        return self._conversion.converter.fallbacks

    def take_batch(self) -> Batch:
        """Return the current batch, to be committed, and begin a new one."""
        sealed, self.batch = self.batch, Batch()
        return sealed

    def connected(
        self,
        revision: int | None,
        skew: Skew | None,
        clock_corrected_at: float = -inf,
        *,
        provisional: bool = False,
    ) -> None:
        """Begin a connection that replays from this revision. `skew` is that of its handshake, if known.

        A provisional one may lack what was published before it: neither position nor `newest` follow it.
        """
        self._position.connected(skew, inf if provisional else clock_corrected_at)
        self.replay.connected(revision, provisional=provisional)

    def declare(self, gap: FeedGap) -> None:
        """Add a gap to the batch, whose checkpoint continues after it."""
        self.declared.append(gap)
        self.gaps += 1
        self.batch.add(self._records.gap(gap))

    def handle(self, messages: list[Received], now: float) -> list[tuple[str, bytes]]:
        """Handle messages, in order, at a monotonic time. Returns the ping id and the body of each ping."""
        pings, replay = [], self.replay
        for message in messages:
            if replay.is_over(message.at):
                self._release()
            ping_id = self._handle(message, now)
            if ping_id is not None:
                assert isinstance(message.body, bytes)
                pings.append((ping_id, message.body))
            if replay.is_unproven:
                self._declare_replay_gap(message.at)
        return pings

    def _declare_replay_gap(self, now: float) -> None:
        """Declare a gap: the position passed the revision, and the replay repeated nothing known."""
        unproven, self.replay.unproven = self.replay.unproven, None
        assert unproven is not None
        settings, newest = self._settings.feed, self._position.newest
        # The replay began at the newest message or before it.
        resumed = now if newest is None else min(now, newest + settings.max_out_of_orderness_seconds)
        self.missing_in_replay = FeedGap(
            settings.name, unproven.revision, resumed, Cause.MISSING_IN_REPLAY, now
        )
        self.declare(self.missing_in_replay)

    def _handle(self, message: Received, now: float) -> str | None:
        self.batch.touch(now, message.at)
        self._counters.received += 1
        if message.after_read_pause:
            self._position.catch_up()
        body = message.body
        if isinstance(body, Oversized):
            limit = self._settings.feed.max_message_bytes
            self._dead_letter(
                message,
                DeadLetterKind.OVERSIZED,
                f"{body.size} bytes are more than feed.max_message_bytes = {limit}",
            )
            return None
        try:
            ping_id, bet, extras = self._conversion.converter.convert(body)
        except ConversionError as error:
            self._dead_letter(message, DeadLetterKind.ERROR, error.reason)
            self.conversion_log.count_extras(error.extras)
            return error.ping_id
        if bet is not None:
            self._publish_bet(message, body, bet)
        elif ping_id is None:
            self._counters.empty += 1
        else:
            self._counters.pings += 1
            if extras and holds_objects(body):  # possibly a bet
                self._invalid(message.at)
            else:
                self._position.ping(message.at)
        if extras and (fresh := self.conversion_log.count_extras(extras)):
            self._write_dead_letter(message, DeadLetterKind.SAMPLE, f"unknown fields: {', '.join(fresh)}")
        return ping_id

    def _publish_bet(self, message: Received, body: bytes, bet: Bet) -> None:
        key, version, micros, value = bet
        conversion, replay = self._conversion, self.replay
        conversion.body = body
        self.conversion_log.in_a_row = 0
        at, settled_at = message.at, micros / MICROS
        content = fingerprint(value)
        self.deduplicator.observe(settled_at)
        verdict = self.deduplicator.judge(
            key, version, content, conversion.rewritten, replaying=replay.may_repeat(at)
        )
        if verdict is _UNDECIDED and replay.is_before_move:
            verdict = _DUPLICATE  # what lies after it may come much later, and the position must move
        if verdict is _UNDECIDED:
            replay.news = 0
            if not replay.held.add(key, HeldBet(at, body, version, settled_at, content, value)):
                reason = "more corrections than can be held: it repeats, or changes a bet back"
                self._dead_letter(message, DeadLetterKind.ERROR, reason)
                return
            self._counters.received -= 1  # counted with its outcome
            self._position.held = True
        elif verdict is _DUPLICATE or verdict is _STALE:  # a correction is new, though its bet is known
            replay.repeated(key)
            if verdict is _STALE:
                self._counters.stale += 1
            else:
                self._counters.duplicates += 1
                if replay.held.bets:
                    self._repeated(key)
        else:
            if replay.since < inf or replay.unproven is not None:
                replay.brought_new(identity(body))
            replay.news = replay.news + 1 if replay.since == inf else 0
            if replay.held.bets:
                self._changed(key)
            self._publish(key, at, version, settled_at, content, value, verdict)
        self._position.data(at, settled_at)

    def _publish(
        self,
        key: bytes,
        at: float,
        version: int,
        settled_at: float,
        content: bytes,
        value: bytes,
        verdict: DedupResult,
    ) -> None:
        self.deduplicator.publish(key, version, content, at, settled_at)
        if settled_at <= at and not self.replay.provisional:
            newest = self.replay.newest
            self.replay.newest = settled_at if newest is None else max(newest, settled_at)
        self.batch.add(self._records.bet(key, value, at))
        self.batch.settle(settled_at)
        self._counters.published += 1
        self._counters.corrections += verdict is _CORRECTION

    def _repeated(self, key: bytes) -> None:
        """Drop what is held of a bet whose last content has come again."""
        repeated = len(self.replay.held.take(key))
        self._counters.received += repeated
        self._counters.duplicates += repeated
        self._position.held = bool(self.replay.held.bets)

    def _changed(self, key: bytes) -> None:
        """Publish what is held of a bet, except what is the last content by then."""
        for bet in self.replay.held.take(key):
            self._counters.received += 1
            self._conversion.body = bet.body
            verdict = self.deduplicator.judge(
                key, bet.version, bet.content, self._conversion.rewritten, replaying=False
            )
            if verdict is _CORRECTION:
                self._publish(key, bet.at, bet.version, bet.settled_at, bet.content, bet.value, verdict)
            else:
                self._counters.duplicates += 1
        self._position.held = bool(self.replay.held.bets)

    def _release(self) -> None:
        """Publish all that is held: the replay is over and has not repeated what was published after it."""
        get().info("bets were changed back to an earlier content", bets=len(self.replay.held.bets))
        for key in [*self.replay.held.bets]:
            self._changed(key)

    def _dead_letter(self, message: Received, kind: DeadLetterKind, reason: str) -> None:
        content = identity(message.body)
        if self.deduplicator.dead_letter_time(content) is not None:
            self._counters.duplicates += 1
        else:
            self.deduplicator.record_dead_letter(content, message.at)
            self._write_dead_letter(message, kind, reason)
            self.conversion_log.count_cause(reason)
            self._counters.dead_lettered += 1
        self._invalid(message.at)

    def _invalid(self, at: float) -> None:
        """Note a message that may have been a bet."""
        self.conversion_log.failed(at)
        self._position.invalid(at)

    def _write_dead_letter(self, message: Received, kind: DeadLetterKind, reason: str) -> None:
        self.batch.add(self._records.letter(message, kind, reason, revision=self._position.revision))
