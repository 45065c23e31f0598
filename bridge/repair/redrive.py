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
from bridge.avro.codec import Codec
from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.inspection.dead_letters import Filter, Letter, batches, read_letters, read_messages
from bridge.kafka import admin
from bridge.kafka.batch import Batch, Header, Record
from bridge.kafka.partitioner import partition_of
from bridge.log import get
from bridge.ownership.signals import Stop
from bridge.records import topics
from bridge.records.dead_letter import RedriveMark, RedriveOutcome, cause_of
from bridge.records.message import RECEIVED
from bridge.records.reach import used_partitions
from bridge.registry import Registry
from bridge.repair.ownership import OwnedFeed, owning
from bridge.repair.redrive_rules import Model, RedriveDecision, RedriveRules, in_order
from bridge.repair.report import RedriveReport
from bridge.stored.restore import PublishedReader


def forecast(settings: Settings, wanted: Filter) -> RedriveReport:
    """Return what a redrive would do now. Writes nothing and does not own the feed.

    Raises as `inspection.dead_letters.read_letters` and `PublishedReader.of_bets`.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    with Registry(settings.registry) as registry:
        # Its schema need not be registered: contents are compared in the schema of the published one.
        codec = registry.codec("settled-bet")
        published = PublishedReader(settings, topics.declare(settings), codec)
        work = _Work(settings, published, codec, wanted, visible=True)
        for batch in batches(work.letters, settings.batch):
            bodies = read_bodies(settings, batch)
            for letter in batch:
                work.decide(letter, bodies[letter.place])
        return work.report


def read_bodies(settings: Settings, letters: Sequence[Letter]) -> dict[tuple[int, int], bytes]:
    """Return the bytes of dead letters by their place. Raises and reads as `read_messages`."""
    return {place: message.value() or b"" for place, message in read_messages(settings, letters).items()}


def redrive(settings: Settings, wanted: Filter, stop: Stop) -> RedriveReport:
    """Redrive the open dead letters that are meant. Returns when all transactions are committed.

    Raises NotOwner, which names the owner, if the feed has one; as `forecast`; SinkBroken if Kafka refuses
    the writes, KeyboardInterrupt once `stop` is set. What is committed by then stays.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    admin.require_topic(settings.kafka, topics.declare(settings).deadletters.name)
    with owning(settings) as owned:
        owned.agree_on_topics()
        work = _Work(settings, owned.published, owned.codecs.bets, wanted, visible=False)
        pace = owned.writer.pace
        for batch in batches(work.letters, settings.batch, pace):
            stop.check()
            bodies, began = read_bodies(settings, batch), clock.now().monotonic
            _commit(owned, work, batch, bodies)
            now = clock.now().monotonic
            pace.took(sum(letter.size for letter in batch), now - began, now)
            work.report.transactions += 1
            done = work.report.total.total()
            get().info("dead letters tried", done=done, left=len(work.letters) - done)
        return work.report


class _Work:
    """The open dead letters that are meant, in order, and the rules for them.

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
            if not isinstance(bet, RedriveDecision):
                versions[letter.key] = bet[0], bet[1]

        found = read_letters(settings, wanted, convert, visible=visible)
        meant = {letter.key: letter for letter in found if letter.open}
        whole = [key for key, letter in meant.items() if letter.is_whole]
        self.report = RedriveReport(oversized=len(meant) - len(whole))
        self.letters = [meant[key] for key in in_order(whole, versions)]
        """Those whose bytes are there."""
        published = reader.of_bets({versions[k][0] for k in whole if k in versions}, visible=visible)
        self._rules = RedriveRules(model, published.deduplicator, published.received)

    def decide(self, letter: Letter, body: bytes) -> RedriveDecision:
        """Return what becomes of a letter, and count it."""
        decision = self._rules.decide(letter.key, body, letter.received)
        self.report.add(cause_of(letter.reason), decision.outcome)
        self.report.corrections += decision.correction
        return decision


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
        decision = work.decide(letter, bodies[letter.place])
        decision.add_to(counters)
        if decision.outcome is RedriveOutcome.PUBLISHED and decision.bet is not None:
            key, _, _, value = decision.bet
            original: Header = (RECEIVED, f"{letter.received:.6f}")
            batch.add(Record(bets, key, value, timestamp, [original], partition_of(key, partitions[bets])))
        bet = decision.bet and decision.bet[:2]
        mark = RedriveMark(decision.outcome, letter.tries + 1, now, last.feed, decision.reason, bet)
        batch.add(mark.record(letters_topic, letter.key.encode(), partitions[letters_topic]))
    checkpoint = replace(last, counters=counters, updated_at=now, owner=owned.owner_id)
    assert checkpoint.follows(last), "the checkpoint would go back"
    owned.commit(batch, checkpoint)
