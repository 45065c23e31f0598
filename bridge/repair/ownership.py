"""Owns a feed for the length of a command, and writes as `bridge run` does.

The command joins the owner group. It takes the feed only if the group has no other member: a standby would
take over in the middle. Then it fences every former owner and reads the checkpoint back. A `bridge run` that
starts meanwhile stands by, and takes over when the command ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from confluent_kafka.admin import AdminClient

from bridge import clock
from bridge.avro.codec import Codecs
from bridge.config import FeedSettings, Settings
from bridge.errors import FeedError, NotOwner, SettingsError
from bridge.feed.provider_clock import ask, check_skew
from bridge.kafka import admin, clients
from bridge.kafka.batch import Batch, Header, Reached, Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.log import get
from bridge.ownership import signals
from bridge.ownership.batch_writer import BatchWriter
from bridge.ownership.election import LeaderElection, group_of, look, new_owner_id
from bridge.ownership.group import Group, release
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge.records.checkpoint import Checkpoint, checkpoint_record
from bridge.records.topics import Topics, declare
from bridge.registry import Registry
from bridge.stored.checkpoint_reader import CheckpointReader
from bridge.stored.reach_reader import ReachReader
from bridge.stored.restore import PublishedReader

JOIN_SECONDS = 10.0
"""How long a group without other members may take to assign the feed, beyond a session time-out."""
LOOK_SECONDS = 0.5


@dataclass(eq=False, repr=False)
class OwnedFeed:
    """A feed that this process owns. Its calls block."""

    settings: Settings
    topics: Topics
    codecs: Codecs
    owner_id: str
    """Name of this process in the checkpoints that it writes."""
    checkpoints: CheckpointReader
    published: PublishedReader
    writer: BatchWriter
    election: LeaderElection

    def __post_init__(self) -> None:
        self._term = self.election.term
        value = self.writer.run(self.writer.open).result()
        decode = self.codecs.checkpoints.decode
        self.checkpoint = None if value is None else Checkpoint.from_avro(decode(value))
        """The last committed checkpoint, None before the first."""
        if self.checkpoint is not None:
            self.checkpoint.counters.balance()

    def agree_on_topics(self) -> None:
        """Take note of the topics in Kafka. Raises TopologyError as `ReachReader.agree`, which waits."""
        if self.checkpoint is not None:
            reader = ReachReader(self.settings, self.topics, self.codecs.bets.schema_by_id)
            reaches = reader.agree(self.checkpoint, self.lost, report)
            self.checkpoint = replace(self.checkpoint, topics=reaches, bets_schema=self.codecs.bets.schema_id)

    def lost(self) -> bool:
        """Return whether the feed is not owned any more."""
        return not self.election.holds(self._term)

    def commit(self, batch: Batch, checkpoint: Checkpoint, headers: list[Header] | None = None) -> None:
        """Commit the batch with the checkpoint that covers it, in one transaction.

        `headers` are those of the record of the checkpoint.

        Raises NotOwner if the feed was lost, in which case `bridge checkpoint show` tells what was committed,
        and SinkBroken if Kafka refuses.
        """
        assert checkpoint.counters.balanced, f"messages unaccounted for: {checkpoint.counters}"

        def complete(reached: Reached) -> Record:
            self.checkpoint = checkpoint.reaching(reached)
            return self.record(self.checkpoint, headers)

        # The group is asked each time: a command commits seldom.
        self.writer.run(partial(self.writer.commit, batch, complete, check_generation=True)).result()

    def record(self, checkpoint: Checkpoint, headers: list[Header] | None = None) -> Record:
        """Return the record of a checkpoint."""
        return checkpoint_record(self.topics.checkpoints.name, self.codecs.checkpoints, checkpoint, headers)


@contextmanager
def owning(settings: Settings, *, ignoring: str = "") -> Iterator[OwnedFeed]:
    """Own the feed in the block. Registers the schemas of an owner.

    Raises NotOwner at once if the owner group has a member, ClockError if this machine's clock is wrong,
    TopologyError if a topic or a right is missing or a feed other than the one named by
    `ignoring` uses the topics, KafkaUnavailable if no broker answers, SinkBroken if Kafka refuses to write.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    topics = declare(settings)
    client = admin.require_topic(settings.kafka, topics.checkpoints.name)
    refuse_members(settings, look(client, group_of(settings), topics.checkpoints.name))
    _refuse_wrong_clock(settings.feed)
    owner_id = new_owner_id()
    with Registry(settings.registry) as registry:
        codecs = registry.codecs_of_owner(settings.topics.prefix)
        checkpoints = CheckpointReader(settings, topics, registry.schema_by_id)
        published = PublishedReader(settings, topics, codecs.bets)
        changed = threading.Event()
        name, topic = group_of(settings), topics.checkpoints.name
        with closing(LeaderElection(settings.kafka, name, topic, changed.set, owner_id)) as election:
            _wait_for_feed(settings, election, client, changed, owner_id)
            guard = LostRecordGuard(settings, [topic.name for topic in topics.of_messages()])
            writer = BatchWriter(settings, election, checkpoints.last, report, guard)
            done = False
            try:
                owned = OwnedFeed(
                    settings, topics, codecs, owner_id, checkpoints, published, writer, election
                )
                checkpoints.refuse_other_feeds(owned.lost, report, ignoring=ignoring)
                yield owned
                done = True
            finally:
                writer.close(abandon=not done)


def members(settings: Settings) -> Group | None:
    """Return the owner group without joining it; None if Kafka refuses. Raises KafkaUnavailable."""
    return look(clients.admin(settings.kafka), group_of(settings), declare(settings).checkpoints.name)


def refuse_members(settings: Settings, group: Group | None) -> None:
    """Raise NotOwner if the owner group has a member; the text names it, and when a dead one is gone."""
    if group is None or not group.members:
        return
    awaited = group.awaited()
    names = ", ".join(f"{member.name} from {member.host}" for member in awaited)
    free_by = clock.now().wall + clients.session_seconds(settings.kafka)
    does = "owns it" if group.owner_hosts else "stands by"
    raise NotOwner(
        f"the feed {settings.feed.name} is not free: {names} {does}. "
        f"Stop every `bridge run` of this feed first; {release(awaited, round(free_by))}."
    )


def _refuse_wrong_clock(feed: FeedSettings) -> None:
    """Raise ClockError if the provider's clock says that this machine's is wrong.

    After a checkpoint from the future, the next `bridge run` takes the position for wrong, and stops on a
    gap. A provider that does not tell its time does not keep anybody from a repair.
    """
    if feed.base_url is None:
        return
    try:
        seen = signals.run(ask(feed))
    except (FeedError, SettingsError) as error:  # such as an authority that this machine does not have
        get().warning("provider's time unavailable, relying on this machine's clock", reason=str(error))
        return
    now = clock.now()
    if seen is not None:
        check_skew(feed, seen.by(now.wall - now.monotonic).seconds)


def _wait_for_feed(
    settings: Settings, election: LeaderElection, client: AdminClient, changed: threading.Event, own: str
) -> None:
    """Wait until the feed is assigned to this process. Raises as `owning`."""
    deadline = clock.now().monotonic + clients.session_seconds(settings.kafka) + JOIN_SECONDS
    while not election.is_owner:
        election.check()
        group = election.look(client)
        if group is not None:
            others = tuple(member for member in group.members if member.name != own)
            refuse_members(settings, group._replace(members=others))
        if clock.now().monotonic > deadline:
            if election.refusal:
                raise KafkaUnavailable(election.refusal)
            raise NotOwner(
                f"the feed {settings.feed.name} was not assigned to this command: another process may own "
                f"it. Describe the group {election.group} to see its members."
            )
        changed.wait(LOOK_SECONDS)
        changed.clear()


def report(reason: str) -> None:
    """Log why Kafka keeps a command waiting."""
    if reason:
        get().warning("waiting for Kafka", reason=reason)
