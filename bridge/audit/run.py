"""Reads the topics in an order in which a running bridge cannot look wrong.

    1. the checkpoints, to what is visible: C1, the last one of each feed
    2. gaps, dead letters and bets, each to the high watermark of then, waiting for open transactions
    3. the checkpoints again, to the high watermark: C2

What C1 covers was written before it was visible, so step 2 reads it. What step 2 reads was committed with a
checkpoint that step 3 reads. So a count lies between those of C1 and C2, however much is written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from confluent_kafka import Message

from bridge import clock
from bridge.audit.bets import FIELDS, BetsCheck, passes_over
from bridge.audit.checkpoints import CheckpointsCheck
from bridge.audit.findings import AuditFinding, Findings, Proof
from bridge.audit.letters import LettersCheck
from bridge.config import Settings
from bridge.errors import SchemaError, SettingsError
from bridge.kafka import admin
from bridge.kafka.reader import TopicScan
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint
from bridge.records.counters import Counters
from bridge.records.gap import Cause, FeedGap
from bridge.records.message import headers_of, record_of
from bridge.records.reach import differences
from bridge.records.topics import DAY_MS, Topics
from bridge.registry import Registry
from bridge.stored.checkpoint_reader import RETIRED, SUCCEEDS

Progress = Callable[[str, int, int], None]
"""Called with a topic, the number of offsets passed, and their total."""
OPEN_SECONDS = 60.0
"""How long an open transaction may hide records: as long as Kafka lets one of a bridge be open, twice."""
CLOCKS_MS = 3_600_000
"""How far a broker's clock may be from ours when it compacts."""


@dataclass(frozen=True)
class Audited:
    """The result of an audit. Times are Unix seconds."""

    feed: str | None
    since: float | None
    feeds: Mapping[str, Checkpoint]
    """The last checkpoint of each feed."""
    records: Mapping[str, int]
    """How many were read of each kind."""
    offsets: int
    """Offsets passed in all topics and passes."""
    seconds: float
    findings: Findings


class _Audit:
    """One audit."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        feed: str | None,
        since: float | None,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._topics: Topics = topics.declare(settings)
        self._registry = registry
        self._feed = feed
        self._since = since
        self._progress = progress
        # A topic that is missing would pass for one without records.
        for topic in (*self._topics.of_messages(), self._topics.checkpoints):
            self._client = admin.require_topic(settings.kafka, topic.name)
        self._started = clock.now()
        self._findings = Findings()
        self._checkpoints = CheckpointsCheck(self._findings, settings.feed.max_clock_skew_seconds)
        self._letters = LettersCheck(self._findings, feed)
        self._gaps: list[FeedGap] = []
        self._names: set[str] = set()
        """The feeds that have a checkpoint."""
        self._offsets = 0
        self._was_removed = False
        """Whether a checkpoint was removed: the counters began anew."""
        self._whole = False
        """Whether compaction can have removed no bet."""

    def run(self) -> Audited:
        ends = self._read_checkpoints()
        first = self._checkpoints.last
        if self._feed is not None and self._feed not in first:
            raise SettingsError(
                f"--feed {self._feed}: no feed of that name has a checkpoint under "
                f"{self._settings.topics.prefix}; known: {', '.join(sorted(self._names)) or 'none yet'}"
            )
        self._compare_topics(first)
        self._read_gaps()
        self._read_letters()
        bets = self._read_bets()
        last = self._read_later_checkpoints(ends, first)
        self._checkpoints.conclude(self._gaps, self._gaps_since)
        self._compare_letters(first, last)
        self._compare_bets(bets, first, last)
        return Audited(
            self._feed,
            self._since,
            last,
            {
                "checkpoints": self._checkpoints.records,
                "bets": bets.records,
                "deadLetters": self._letters.records,
                "gaps": len(self._gaps),
            },
            self._offsets,
            clock.now().monotonic - self._started.monotonic,
            self._findings,
        )

    def _scan(
        self,
        topic: str,
        take: Callable[[Message], None],
        *,
        start: Mapping[int, int] | float | None = None,
        ends: Mapping[int, int] | None = None,
        visible: bool = False,
        before: int = 0,
        total: int = 0,
    ) -> dict[int, int]:
        """Read a topic or a part; return the ends. `before` and `total` are offsets of all its parts."""

        passed = 0

        def show(done: int, of: int) -> None:
            nonlocal passed
            passed = done
            self._progress(topic, before + done, total or of)

        scan = TopicScan(
            topic, take, start=start, ends=ends, visible=visible, progress=show, stall_seconds=OPEN_SECONDS
        )
        found = scan.read(self._settings)
        self._offsets += passed
        return found

    def _read_checkpoints(self) -> dict[int, int]:
        codec = self._registry.codec("feed-checkpoint")

        def take(message: Message) -> None:
            place, value = _place(message, Proof.UNREADABLE), message.value()
            if value is not None:
                self._names.add(place.key or "")
            if self._feed not in (None, place.key):
                return
            if value is None:
                self._was_removed = True
                self._checkpoints.removed(place.key or "")
                self._findings.warn(place._replace(text="the checkpoint was removed: the feed started over"))
                return
            try:
                checkpoint = Checkpoint.from_avro(codec.decode(value))
            except SchemaError as error:
                self._findings.violate(place._replace(text=str(error)))
            else:
                headers = headers_of(message)
                self._checkpoints.take(
                    checkpoint, place, retires=RETIRED in headers, succeeds=SUCCEEDS in headers
                )

        return self._scan(self._topics.checkpoints.name, take, visible=True)

    def _read_later_checkpoints(
        self, starts: Mapping[int, int], first: Mapping[str, Checkpoint]
    ) -> dict[str, Checkpoint]:
        """Return the last checkpoint of each feed by now. Those on the way are judged by the next audit."""
        codec, values = self._registry.codec("feed-checkpoint"), dict[str, Message]()

        def take(message: Message) -> None:
            name = _place(message, Proof.UNREADABLE).key or ""
            if self._feed in (None, name) and message.value() is not None:
                values[name] = message

        self._scan(self._topics.checkpoints.name, take, start=starts)
        return dict(first) | {
            name: record_of(message, codec, Checkpoint.from_avro) for name, message in values.items()
        }

    def _compare_topics(self, feeds: Mapping[str, Checkpoint]) -> None:
        seen = admin.topics_seen(self._client, [topic.name for topic in self._topics.of_messages()])
        for checkpoint in feeds.values():
            for name, text in differences(checkpoint.topics, seen).items():
                self._findings.violate(AuditFinding(Proof.TOPICS, text, name))

    def _read_gaps(self) -> None:
        codec, first = self._registry.codec("feed-gap"), inf

        def take(message: Message) -> None:
            nonlocal first
            value, place = message.value(), _place(message, Proof.UNREADABLE)
            first = min(first, place.at or 0)
            if value is None or self._feed not in (None, place.key):
                return
            try:
                gap = FeedGap.from_avro(codec.decode(value))
            except SchemaError as error:
                self._findings.violate(place._replace(text=str(error)))
                return
            self._gaps.append(gap)
            self._findings.hour(place.at or 0).gaps += 1

        self._scan(self._topics.gaps.name, take)
        self._gaps_since = -inf
        """Since when all gaps are there, Unix ms; inf where all were deleted."""
        if any(admin.start_offsets(self._client, self._topics.gaps.name, 1)):
            self._gaps_since = first
            unproven = dict.fromkeys((Proof.GAP, Proof.POSITION, Proof.AHEAD), "old gaps were deleted")
            self._findings.unproven |= unproven
        self._lost_at = max(
            (g.detected_at for g in self._gaps if g.cause is Cause.RECORDS_LOST), default=-inf
        )
        """When records were last found to be lost, Unix seconds: a gap says so."""

    def _read_letters(self) -> None:
        def take(message: Message) -> None:
            self._letters.take(headers_of(message), _place(message, Proof.DEAD_LETTERS))

        self._scan(self._topics.deadletters.name, take, start=self._since)

    def _read_bets(self) -> BetsCheck:
        topic, client = self._topics.bets.name, self._client
        count = admin.partition_count(client, topic)
        ends = admin.end_offsets(client, topic, count)
        starts = admin.start_offsets(client, topic, count)
        if self._since is not None:
            starts = admin.offsets_since(client, topic, self._since, ends)
        wanted = self._wanted()
        missing = set(wanted)
        codec = self._registry.codec("settled-bet", FIELDS, strict=True)
        check = BetsCheck(topic, count, codec.decode, self._findings, missing)

        passes = [passes_over(end - start) for start, end in zip(starts, ends, strict=True)]
        total = sum(p * (end - start) for p, start, end in zip(passes, starts, ends, strict=True))
        before = 0
        for partition, (start, end) in enumerate(zip(starts, ends, strict=True)):
            for number in range(passes[partition]):
                check.begin(partition, number, passes[partition])
                part, to = {partition: start}, {partition: end}
                self._scan(topic, check.take_message, start=part, ends=to, before=before, total=total)
                check.end()
                before += end - start
        check.conclude()
        for micros in sorted(missing):
            self._findings.violate(wanted[micros])
        # Compaction removes nothing while all records are younger than its lag: the first one is there.
        kept = self._oldest_kept_ms()
        firsts = [check.first.get(partition, (-1, 0)) for partition, end in enumerate(ends) if end]
        self._whole = all(offset == 0 and at > kept for offset, at in firsts)
        return check

    def _wanted(self) -> dict[int, AuditFinding]:
        """Return the settlementTimes that a bet must have, microseconds, with the violation if none has.

        A bet is received after its settlement, so compaction has not reached one that was settled lately.
        """
        oldest = self._oldest_kept_ms()
        oldest = max(oldest, (self._since or 0) * 1000, self._lost_at * 1000)
        return {micros: found for micros, found in self._checkpoints.newest.items() if micros / 1000 > oldest}

    def _oldest_kept_ms(self) -> float:
        """Return a time, Unix ms: compaction keeps what was received later."""
        lag = self._settings.topics.min_compaction_lag_days * DAY_MS
        return self._started.wall * 1000 - lag + CLOCKS_MS

    def _compare_bets(
        self, bets: BetsCheck, first: Mapping[str, Checkpoint], last: Mapping[str, Checkpoint]
    ) -> None:
        unproven, uncounted = self._findings.unproven, self._uncounted
        if self._feed is not None or self._since is not None:
            uncounted = "bets can be counted only for all feeds at once: leave out --feed and --from"
        if uncounted:
            unproven[Proof.PUBLISHED] = uncounted
            return
        least, most = (
            sum(checkpoint.counters.published for checkpoint in feeds.values()) for feeds in (first, last)
        )
        if not self._whole:
            unproven[Proof.PUBLISHED] = (
                "compaction may have removed earlier versions: only a surplus would have been noticed"
            )
        self._compare(
            Proof.PUBLISHED, self._topics.bets.name, "bets", bets.records, (least, most), self._whole
        )

    @property
    def _uncounted(self) -> str:
        """Why no number of records can be compared with the counters; empty if all can."""
        if self._was_removed:
            return "a checkpoint was removed, and its counters with it"
        return "the topics have lost records, as a gap says" if self._lost_at > -inf else ""

    def _compare_letters(self, first: Mapping[str, Checkpoint], last: Mapping[str, Checkpoint]) -> None:
        topic, unproven, uncounted = self._topics.deadletters.name, self._findings.unproven, self._uncounted
        if self._since is not None:
            uncounted = "dead letters can be counted only from the beginning: leave out --from"
        if uncounted:
            unproven[Proof.DEAD_LETTERS] = uncounted
            return
        count = admin.partition_count(self._client, topic)
        complete = not any(admin.start_offsets(self._client, topic, count))
        if not complete:
            unproven[Proof.DEAD_LETTERS] = "dead letters were deleted: only a surplus would have been noticed"
        letters, none = self._letters, Counters()
        for name in sorted({*last, *letters.letters, *letters.redriven}):
            before, after = (feeds[name].counters if name in feeds else none for feeds in (first, last))
            for what, found, bounds in (
                ("dead letters", letters.letters, (before.dead_lettered, after.dead_lettered)),
                ("marks of redriven dead letters", letters.redriven, (before.redriven, after.redriven)),
            ):
                self._compare(Proof.DEAD_LETTERS, topic, f"{what} of {name}", found[name], bounds, complete)

    def _compare(
        self, proof: Proof, topic: str, what: str, found: int, bounds: tuple[int, int], complete: bool
    ) -> None:
        """Report a number of records that is not within its bounds by the checkpoints."""
        least, most = bounds
        if found > most or (complete and found < least):
            counted = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            text = f"{found:,} {what} in the topic, {counted} by the checkpoints"
            self._findings.violate(AuditFinding(proof, text, topic), max(found - most, least - found))


def audit(
    settings: Settings,
    feed: str | None = None,
    since: float | None = None,
    progress: Progress = lambda *_: None,
) -> Audited:
    """Audit the topics, of one feed or all, from a time of receipt (Unix seconds) or all.

    Bets do not name their feed: they are audited in any case. Writes nothing, and does not disturb a running
    bridge. Raises KafkaUnavailable when no broker answers or an open transaction hides records for long,
    TopologyError if a topic or a right is missing, SettingsError if there is no such feed.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    with Registry(settings.registry) as registry:
        return _Audit(settings, registry, feed, since, progress).run()


def _place(message: Message, proof: Proof) -> AuditFinding:
    """Return the place of a record."""
    key = message.key()
    name = key.decode("utf-8", "replace") if isinstance(key, bytes) else None
    topic, at = message.topic() or "", message.timestamp()[1]
    return AuditFinding(proof, "", topic, message.partition(), message.offset(), at, name)
