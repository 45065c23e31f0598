"""feed → decode → deduplicate → encode → batch: what becomes of each message.

No IO: messages with their time of receipt in, records in a batch out. Every message moves the position and
is counted exactly once. If a replay repeats nothing that was published after the requested revision, the
provider has lost it without saying so: that is a gap.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from math import inf
from typing import Final

from bridge.avro.codec import Codecs
from bridge.clock import MICROS
from bridge.clock_skew import Skew
from bridge.config import Settings
from bridge.errors import ConversionError, SchemaError
from bridge.feed.position import Position
from bridge.feed.received import Oversized, Received
from bridge.kafka.batch import Batch, Record
from bridge.kafka.partitioner import partition_of
from bridge.kafka.topics import Topics, largest_bet
from bridge.log import get
from bridge.messages.converter import make_converter
from bridge.messages.parser import MessageParser, holds_objects
from bridge.messages.transcoder import Bet
from bridge.service.held import OVER, Held, HeldBet
from bridge.state.counters import Counters
from bridge.state.dead_letter import DeadLetterCause, DeadLetterKind, cause_of, dead_letter, identity
from bridge.state.deduplicator import Deduplicator, DedupResult, fingerprint
from bridge.state.gap import Cause, Gap, gap_record
from bridge.state.reach import TopicReach, used_partitions

SAMPLES = 3
"""Original messages kept of each unknown field."""
_DUPLICATE: Final = DedupResult.DUPLICATE
_STALE: Final = DedupResult.STALE
_CORRECTION: Final = DedupResult.CORRECTION
_UNDECIDED: Final = DedupResult.UNDECIDED
"""Looked up once, not for every message."""
EXTRA_PATHS = 1_000
"""Distinct paths of unknown fields that are counted."""
CAUSES = 100
"""Distinct causes of dead letters that are logged and counted."""
OTHER_CAUSES: Final = DeadLetterCause("various", "other reasons")
"""Counts all further ones."""
GAPS = 20
"""Declared gaps that are remembered."""


class Pipeline:
    """Turns messages into the current batch, for one term of leadership."""

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        codecs: Codecs,
        deduplicator: Deduplicator,
        position: Position,
        counters: Counters,
        newest: float | None,
        reaches: Sequence[TopicReach],
        moved_from: int = 0,
    ) -> None:
        used = used_partitions(reaches)
        self._bets_partitions = used[topics.bets.name]
        self._letters_partitions = used[topics.deadletters.name]
        self._settings = settings
        self._topics = topics
        self._parser = MessageParser(settings.feed.optional_fields)
        self._converter = make_converter(self._parser, codecs.bets, largest_bet(settings))
        self._bets = codecs.bets
        self._body = b""
        """The last message with a bet."""
        self._rewritten = self._rewrite  # made once, not for every message
        self._gaps = codecs.gaps
        self.deduplicator = deduplicator
        self._awaiting: int | None = None
        """The requested revision, until the replay repeats something known from after it."""
        self._provisional = False
        self._stood_at = position.revision
        """The position when the connection began, or `_moved_from` if that is later."""
        self._moved_from = moved_from
        """The position before an operator moved it. What lies before may never have been received."""
        self._newest_known = newest
        """`newest` when the connection began that was the first to await it."""
        self.replays_from = inf
        """Unix seconds from which this connection may still repeat known bets."""
        self._held = Held()
        self._news = 0
        """Number of new contents in a row, after all that this connection may repeat."""
        self.position = position
        self.counters = counters
        self.newest = newest
        """The newest published settlementTime that is not in the future, Unix seconds."""
        self.unconverted = 0
        """Messages since the last bet that may have been bets too, and could not be converted."""
        self.unconverted_since = self.unconverted_until = -inf
        """When the first and the last of them came, Unix seconds."""
        self.extras: Counter[str] = Counter()
        """Path of each unknown field → how often it was received."""
        self.causes: Counter[DeadLetterCause] = Counter()
        """Causes of dead letters → how many were written."""
        self.batch = Batch()
        self.transaction_bytes = settings.batch.max_bytes
        """Records of how many bytes are committed at once."""
        self.gaps = 0
        """Number of declared gaps."""
        self.declared: deque[Gap] = deque(maxlen=GAPS)
        """The last of them."""
        self.missing_in_replay: Gap | None = None
        """A gap that a replay has shown, until the caller takes it."""

    @property
    def full(self) -> bool:
        """Whether the current batch is full. During a catch-up, it holds no more than one transaction."""
        one = self.batch.bytes >= self.transaction_bytes and not self.position.live
        return one or self.batch.full(self._settings.batch)

    @property
    def fallbacks(self) -> int:
        """Messages that the transcoder left to pydantic."""
        return self._converter.fallbacks

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
        self._held, self._news = Held(), 0  # the replay brings it again
        self.position.held = False
        self.position.connected(skew, inf if provisional else clock_corrected_at)
        self._provisional = provisional
        if self._awaiting is None:
            self._newest_known = self.newest
        self.deduplicator.connected(revision, awaiting=self._awaiting is not None)
        self.replays_from = inf if revision is None else float(revision)
        # What was settled after the revision was published after it, so a replay must repeat it.
        known = (
            revision is not None
            and self._newest_known is not None
            and self._newest_known > revision
            and self._newest_known > self._moved_from
        )
        self._awaiting = revision if known else None
        self._stood_at = max(self.position.revision, self._moved_from)

    def declare(self, gap: Gap) -> None:
        """Add a gap to the batch, whose checkpoint continues after it."""
        self.declared.append(gap)
        self.gaps += 1
        self.batch.add(gap_record(self._topics.gaps.name, self._gaps, gap))

    def handle(self, messages: list[Received], now: float) -> list[tuple[str, bytes]]:
        """Handle messages, in order, at a monotonic time. Returns the ping id and the body of each ping."""
        pings = []
        for message in messages:
            if self._held.bets and (self._news >= OVER or not self._replaying(message.at)):
                self._release()
            ping_id = self._handle(message, now)
            if ping_id is not None:
                assert isinstance(message.body, bytes)
                pings.append((ping_id, message.body))
            if self._awaiting is not None and self.position.revision > self._stood_at:
                self._declare_replay_gap(message.at, self._awaiting)
        return pings

    def _declare_replay_gap(self, now: float, revision: int) -> None:
        """Declare a gap: the position passed the revision, and the replay repeated nothing known."""
        self._awaiting = None
        settings, newest = self._settings.feed, self.position.newest
        # The replay began at the newest message or before it.
        resumed = now if newest is None else min(now, newest + settings.max_out_of_orderness_seconds)
        self.missing_in_replay = Gap(settings.name, revision, resumed, Cause.MISSING_IN_REPLAY, now)
        self.declare(self.missing_in_replay)

    def _handle(self, message: Received, now: float) -> str | None:
        self.batch.touch(now, message.at)
        self.counters.received += 1
        if message.after_read_pause:
            self.position.catch_up()
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
            ping_id, bet, extras = self._converter.convert(body)
        except ConversionError as error:
            self._dead_letter(message, DeadLetterKind.ERROR, error.reason)
            self._count(error.extras)
            return error.ping_id
        if bet is not None:
            self._publish_bet(message, body, bet)
        elif ping_id is None:
            self.counters.empty += 1
        else:
            self.counters.pings += 1
            if extras and holds_objects(body):  # possibly a bet
                self._invalid(message.at)
            else:
                self.position.ping(message.at)
        if extras and (fresh := self._count(extras)):
            self._write_dead_letter(message, DeadLetterKind.SAMPLE, f"unknown fields: {', '.join(fresh)}")
        return ping_id

    def _replaying(self, at: float) -> bool:
        """Return whether a message of this time may be a repetition."""
        return self.position.replaying(at) or (self.replays_from < inf and not self.position.rested(at))

    def _publish_bet(self, message: Received, body: bytes, bet: Bet) -> None:
        key, version, micros, value = bet
        self._body = body
        self.unconverted = 0
        at, settled_at = message.at, micros / MICROS
        content = fingerprint(value)
        self.deduplicator.observe(settled_at)
        verdict = self.deduplicator.judge(
            key, version, content, self._rewritten, replaying=self._replaying(at)
        )
        if verdict is _UNDECIDED and self.position.revision < self._moved_from:
            verdict = _DUPLICATE  # what lies after it may come much later, and the position must move
        if verdict is _UNDECIDED:
            self._news = 0
            if not self._held.add(key, HeldBet(at, body, version, settled_at, content, value)):
                reason = "more corrections than can be held: it repeats, or changes a bet back"
                self._dead_letter(message, DeadLetterKind.ERROR, reason)
                return
            self.counters.received -= 1  # counted with its outcome
            self.position.held = True
        elif verdict is _DUPLICATE or verdict is _STALE:  # a correction is new, though its bet is known
            self._news = 0
            if self.deduplicator.knew(key):
                self._awaiting = None
            if verdict is _STALE:
                self.counters.stale += 1
            else:
                self.counters.duplicates += 1
                if self._held.bets:
                    self._repeated(key)
        else:
            if self.replays_from < inf or self._awaiting is not None:
                self._end_replay(body)
            self._news = self._news + 1 if self.replays_from == inf else 0
            if self._held.bets:
                self._changed(key)
            self._publish(key, at, version, settled_at, content, value, verdict)
        self.position.data(at, settled_at)

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
        if settled_at <= at and not self._provisional:
            self.newest = settled_at if self.newest is None else max(self.newest, settled_at)
        partition = partition_of(key, self._bets_partitions)
        self.batch.add(Record(self._topics.bets.name, key, value, int(at * 1000), None, partition))
        self.batch.settle(settled_at)
        self.counters.published += 1
        self.counters.corrections += verdict is _CORRECTION

    def _repeated(self, key: bytes) -> None:
        """Drop what is held of a bet whose last content has come again."""
        repeated = len(self._held.take(key))
        self.counters.received += repeated
        self.counters.duplicates += repeated
        self.position.held = bool(self._held.bets)

    def _changed(self, key: bytes) -> None:
        """Publish what is held of a bet, except what is the last content by then."""
        for bet in self._held.take(key):
            self.counters.received += 1
            self._body = bet.body
            verdict = self.deduplicator.judge(key, bet.version, bet.content, self._rewritten, replaying=False)
            if verdict is _CORRECTION:
                self._publish(key, bet.at, bet.version, bet.settled_at, bet.content, bet.value, verdict)
            else:
                self.counters.duplicates += 1
        self.position.held = bool(self._held.bets)

    def _release(self) -> None:
        """Publish all that is held: the replay is over and has not repeated what was published after it."""
        get().info("bets were changed back to an earlier content", bets=len(self._held.bets))
        for key in [*self._held.bets]:
            self._changed(key)

    def _end_replay(self, body: bytes) -> None:
        """Take note of something new, which known bets come before, because the feed is ordered.

        It is not as new as that if it was a dead letter until this version of the bridge could convert it, or
        if an operator moved the position back to where nothing was received.
        """
        letter = identity(body)
        if self._awaiting is not None and self.deduplicator.knew_dead_letter(letter, since=self._awaiting):
            self._awaiting = None
        was_letter = self.deduplicator.dead_letter_time(letter) is not None
        if not was_letter and self.position.revision >= self._moved_from:
            self.replays_from = inf

    def _rewrite(self, schema: bytes) -> bytes | None:
        """Return the fingerprint of the bet at hand in an earlier schema. Slow, but rarely needed."""
        schema_id = int.from_bytes(schema, "big")
        bet = self._parser.parse(self._body).bet
        assert bet is not None
        try:
            # The schema is known since the restore: the registry is not asked.
            return fingerprint(self._bets.in_schema(schema_id).encode(bet))
        except SchemaError:
            return None

    def _dead_letter(self, message: Received, kind: DeadLetterKind, reason: str) -> None:
        content = identity(message.body)
        if self.deduplicator.dead_letter_time(content) is not None:
            self.counters.duplicates += 1
        else:
            self.deduplicator.record_dead_letter(content, message.at)
            self._write_dead_letter(message, kind, reason)
            self._count_cause(cause_of(reason))
            self.counters.dead_lettered += 1
        self._invalid(message.at)

    def _invalid(self, at: float) -> None:
        """Note a message that may have been a bet."""
        if not self.unconverted:
            self.unconverted_since = at
        self.unconverted += 1
        self.unconverted_until = at
        self.position.invalid(at)

    def _count_cause(self, cause: DeadLetterCause) -> None:
        """Count a dead letter by its cause, and log the first of each."""
        if cause not in self.causes:
            if len(self.causes) >= CAUSES:
                cause = OTHER_CAUSES
            else:
                get().warning(
                    "dead letters of a new kind",
                    field=cause.field,
                    reason=cause.reason,
                    see="bridge deadletters list",
                )
        self.causes[cause] += 1

    def _count(self, extras: tuple[str, ...]) -> list[str]:
        """Count unknown fields. Returns those of which originals are still kept."""
        rare = []
        for path in extras:
            if path in self.extras or len(self.extras) < EXTRA_PATHS:
                self.extras[path] += 1
                if self.extras[path] <= SAMPLES:
                    rare.append(path)
                if self.extras[path] == 1:
                    get().warning("undocumented field", path=path)
        return rare

    def _write_dead_letter(self, message: Received, kind: DeadLetterKind, reason: str) -> None:
        self.batch.add(
            dead_letter(
                self._topics.deadletters.name,
                message,
                kind,
                reason,
                feed=self._settings.feed.name,
                revision=self.position.revision,
                partitions=self._letters_partitions,
            )
        )
