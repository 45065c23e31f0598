"""Redrives dead letters: publishes what today's model converts, each bet once and in order.

As the owner of the feed, so nobody else writes meanwhile, and what is read after fencing is final. Each
transaction has some bets, the marks of their letters and the checkpoint with the counters. So a redrive that
dies leaves letters that are published and marked, and others that are neither: another redrive, or a bridge,
goes on from there. Position, connection attempts and state stay as they are, because the feed is not
connected.

Decision 0023 has the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bridge import clock
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.inspection.dead_letters import Filter, Letter, in_portions, read_letters, read_messages
from bridge.kafka import admin
from bridge.kafka.batch import Batch, Header, Record
from bridge.kafka.partitioner import partition_of
from bridge.log import get
from bridge.records import topics
from bridge.records.dead_letter import DeadLetterKind, Outcome, cause_of, redrive_mark
from bridge.records.message import RECEIVED
from bridge.records.reach import used_partitions
from bridge.registry import Registry
from bridge.repair.judge import Judge, Model, Verdict, in_order
from bridge.repair.ownership import OwnedFeed, owning
from bridge.repair.report import Report
from bridge.stored.restore import PublishedReader


def forecast(settings: Settings, wanted: Filter) -> Report:
    """Return what a redrive would do now. Writes nothing and does not own the feed.

    Raises as `inspection.dead_letters.read_letters` and `PublishedReader.of_bets`.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    with Registry(settings.registry) as registry:
        # Its schema need not be registered: contents are compared in the schema of the published one.
        codec = Codec(load("settled-bet"), READ_ONLY, registry.schema_by_id)
        published = PublishedReader(settings, topics.declare(settings), codec)
        work = _Work(settings, published, codec, wanted, visible=True)
        for portion in in_portions(work.letters, settings.batch):
            bodies = read_bodies(settings, portion)
            for letter in portion:
                work.judge(letter, bodies[letter.place])
        return work.report


def read_bodies(settings: Settings, letters: Sequence[Letter]) -> dict[tuple[int, int], bytes]:
    """Return the bytes of dead letters by their place. Raises and reads as `read_messages`."""
    return {place: message.value() or b"" for place, message in read_messages(settings, letters).items()}


def redrive(settings: Settings, wanted: Filter) -> Report:
    """Redrive the open dead letters that are meant. Returns when all transactions are committed.

    Raises NotOwner, which names the owner, if the feed has one; as `forecast`; SinkBroken if Kafka refuses
    the writes. What is committed by then stays.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    admin.look_for(settings.kafka, topics.declare(settings).deadletters.name)
    with owning(settings) as owned:
        owned.agree_on_topics()
        work = _Work(settings, owned.published, owned.codecs.bets, wanted, visible=False)
        pace = owned.writer.pace
        for portion in in_portions(work.letters, settings.batch, pace):
            bodies, began = read_bodies(settings, portion), clock.now().monotonic
            _commit(owned, work, portion, bodies)
            now = clock.now().monotonic
            pace.took(sum(letter.size for letter in portion), now - began, now)
            work.report.transactions += 1
            done = work.report.total.total()
            get().info("dead letters tried", done=done, left=len(work.letters) - done)
        return work.report


class _Work:
    """The open dead letters that are meant, in order, and the judge of them.

    Reads the topic of dead letters for them, and that of bets for what is published of their bets.
    """

    def __init__(
        self,
        settings: Settings,
        reader: PublishedReader,
        codec: Codec,
        wanted: Filter,
        *,
        visible: bool,
    ) -> None:
        model = Model(settings, codec)
        versions: dict[str, tuple[bytes, int]] = {}

        def convert(letter: Letter, body: bytes) -> None:
            bet = model.convert(letter.key, body)
            if not isinstance(bet, Verdict):
                versions[letter.key] = bet[0], bet[1]

        found = read_letters(settings, wanted, convert, visible=visible)
        meant = {letter.key: letter for letter in found if letter.open}
        whole = [key for key, letter in meant.items() if letter.kind is DeadLetterKind.ERROR]
        self.report = Report(oversized=len(meant) - len(whole))
        self.letters = [meant[key] for key in in_order(whole, versions)]
        """Those whose bytes are there."""
        published = reader.of_bets({versions[k][0] for k in whole if k in versions}, visible=visible)
        self._judge = Judge(model, published.deduplicator, published.received)

    def judge(self, letter: Letter, body: bytes) -> Verdict:
        """Return what becomes of a letter, and count it."""
        verdict = self._judge.judge(letter.key, body, letter.received)
        self.report.add(cause_of(letter.reason), verdict.outcome)
        self.report.corrections += verdict.correction
        return verdict


def _commit(
    owned: OwnedFeed, work: _Work, letters: Sequence[Letter], bodies: Mapping[tuple[int, int], bytes]
) -> None:
    """Commit the bets and marks of some letters, and the checkpoint with their counters."""
    last, batch = owned.checkpoint, Batch()
    if last is None:
        raise BridgeError(f"there is no checkpoint of the feed {owned.settings.feed.name} to resume from")
    partitions = used_partitions(last.topics)
    bets, letters_topic = owned.topics.bets.name, owned.topics.deadletters.name
    # By a clock that is behind, the next owner would not find the bets where it looks for recent ones.
    now = max(clock.now().wall, last.updated_at)
    counters, timestamp = last.counters.copy(), int(now * 1000)
    for letter in letters:
        verdict = work.judge(letter, bodies[letter.place])
        verdict.add_to(counters)
        if verdict.outcome is Outcome.PUBLISHED and verdict.bet is not None:
            key, _, _, value = verdict.bet
            original: Header = (RECEIVED, f"{letter.received:.6f}")
            batch.add(Record(bets, key, value, timestamp, [original], partition_of(key, partitions[bets])))
        mark = redrive_mark(
            letters_topic,
            letter.key.encode(),
            verdict.outcome,
            feed=last.feed,
            at=now,
            tries=letter.tries + 1,
            reason=verdict.reason,
            bet=verdict.bet and verdict.bet[:2],
            partitions=partitions[letters_topic],
        )
        batch.add(mark)
    checkpoint = replace(last, counters=counters, updated_at=now, owner=owned.owner_id)
    assert checkpoint.follows(last), "the checkpoint would go back"
    owned.commit(batch, checkpoint)
