"""Declares every topic and its settings; plans and applies the changes that a cluster needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bridge import clock
from bridge.config import FeedSettings, Settings, parse_start
from bridge.errors import SinkBroken, TopologyError
from bridge.formatting import plural
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable, SettingRefused, denied, explained
from bridge.log import get

DAY_MS = 86_400_000
TIMEOUT_SECONDS = 15
LOOKS, LOOK_SECONDS = 50, 0.1
"""How often, and after which pause, brokers are asked whether they know a new topic."""
COMPACT = {"cleanup.policy": "compact"}
CREATE_TIME = {"message.timestamp.type": "CreateTime"}
"""A record's time is that of its receipt: the deduplicator and `bridge replay` look records up by it."""
PUNCTUAL = {"message.timestamp.before.max.ms": 4 * DAY_MS, "message.timestamp.after.max.ms": 3_600_000}
"""A batch may be as old as an outage of Kafka, and clocks differ; a broker never takes a record beyond."""
ROOM = {**PUNCTUAL, "max.message.bytes": 256 * 1024}
"""For a checkpoint with hundreds of partitions, and all attempts that the limits remember."""
_MUST = frozenset({"cleanup.policy", "max.message.bytes"})
CLEANED_SOON = {"segment.bytes": "16777216", "segment.ms": "3600000", "delete.retention.ms": "3600000"}
"""Where each transaction writes: the cleaner keeps up with it, and removes its marker (78 bytes) an hour
after that, not a day. A reader that took longer than that for the topic could miss a tombstone."""
SNAPSHOTS = {**COMPACT, "min.compaction.lag.ms": str(DAY_MS)}
"""A reader that has not reached the ends of a snapshot finds all of it, even after the next one."""
_OF_MESSAGES = ("message.timestamp.type", "max.message.bytes", "segment.bytes")
"""Must be right where messages of the feed are kept: a broker never takes one above a segment's size."""
RECORD_OVERHEAD_BYTES = 1024 * 1024
"""Room for headers and framing above the largest message of the feed."""
FRAMING_BYTES = 1024
"""More than a record and its batch have around key and value."""


@dataclass(frozen=True)
class DeclaredTopic:
    """A topic as the bridge needs it; docs/topics.md says what for."""

    name: str
    partitions: int
    config: dict[str, str]
    must: frozenset[str] = frozenset({"cleanup.policy"})
    """The settings without which data would be lost."""
    least: dict[str, int] = field(default_factory=dict)
    """Lower bounds of other settings, where the broker has them. Kafka's defaults are above them."""
    wished: frozenset[str] = frozenset()
    """Settings that only save work: others will do."""


@dataclass(frozen=True)
class Topics:
    """All topics of the bridge under one prefix."""

    bets: DeclaredTopic
    checkpoints: DeclaredTopic
    deadletters: DeclaredTopic
    gaps: DeclaredTopic
    translations: DeclaredTopic
    currencies: DeclaredTopic
    snapshots: DeclaredTopic
    snapshot_state: DeclaredTopic

    def of_feed(self) -> tuple[DeclaredTopic, ...]:
        """Return the topics that `bridge run` writes to."""
        return self.checkpoints, *self.of_messages()

    def of_messages(self) -> tuple[DeclaredTopic, ...]:
        """Return those of them that have what was received, or why it is missing: all but the checkpoints."""
        return self.bets, self.deadletters, self.gaps

    def of_jobs(self) -> tuple[DeclaredTopic, ...]:
        """Return the topics that the snapshot jobs write to."""
        return self.snapshots, self.snapshot_state, self.translations, self.currencies

    def all(self) -> tuple[DeclaredTopic, ...]:
        """Return all topics in the order of their creation."""
        return *self.of_feed(), *self.of_jobs()


def declare(settings: Settings) -> Topics:
    """Return the topics that these settings declare."""
    prefix, partitions = settings.topics.prefix, settings.topics.partitions
    largest = max_record_bytes(settings.feed)
    lag = str(int(settings.topics.min_compaction_lag_days * DAY_MS))
    keep = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    return Topics(
        bets=DeclaredTopic(
            f"{prefix}.bets",
            partitions,
            {**COMPACT, **CREATE_TIME, "min.compaction.lag.ms": lag, "max.message.bytes": str(largest)},
            frozenset({"cleanup.policy", "min.compaction.lag.ms", *_OF_MESSAGES}),
            {**PUNCTUAL, "segment.bytes": largest},
        ),
        checkpoints=DeclaredTopic(
            f"{prefix}.checkpoints", 1, {**COMPACT, **CLEANED_SOON}, _MUST, ROOM, frozenset(CLEANED_SOON)
        ),
        deadletters=DeclaredTopic(
            f"{prefix}.deadletters",
            partitions,
            {**keep, **CREATE_TIME, "max.message.bytes": str(largest)},
            frozenset({*keep, *_OF_MESSAGES}),
            {**PUNCTUAL, "segment.bytes": largest},
        ),
        gaps=DeclaredTopic(f"{prefix}.gaps", 1, keep, _MUST | keep.keys(), ROOM),
        translations=DeclaredTopic(f"{prefix}.translations", partitions, SNAPSHOTS),
        currencies=DeclaredTopic(f"{prefix}.currencies", 1, SNAPSHOTS),
        snapshots=DeclaredTopic(f"{prefix}.snapshots", 1, COMPACT),
        # The ids in bets are written again each hour.
        snapshot_state=DeclaredTopic(
            f"{prefix}.snapshot-state", 1, {**COMPACT, **CLEANED_SOON}, wished=frozenset(CLEANED_SOON)
        ),
    )


def max_record_bytes(feed: FeedSettings) -> int:
    """Return the size of the largest record: a message of the largest size, with its headers."""
    return feed.max_message_bytes + RECORD_OVERHEAD_BYTES


def largest_bet(feed: FeedSettings) -> int:
    """Return how many bytes key and value of a bet may have, in a record with its framing."""
    return max_record_bytes(feed) - FRAMING_BYTES


def as_created(topic: DeclaredTopic, copies: int) -> dict[str, str]:
    """Return the settings of a new topic; with three or more copies, two acknowledge a record."""
    return topic.config | ({"min.insync.replicas": "2"} if copies >= 3 else {})


class Action(Enum):
    """How `apply` treats a difference."""

    CREATE = "create"
    ALTER = "alter"
    LEAVE = "leave as it is"
    ACCEPT = "accept"
    """It will do, but `apply` asks for what is better: a cluster may not allow it."""
    REFUSE = "refuse"


STANDING = frozenset({Action.LEAVE, Action.ACCEPT})
"""Of differences that may stay."""


@dataclass(frozen=True)
class Change:
    """A difference between a declared topic and the one in the cluster."""

    topic: DeclaredTopic
    action: Action
    detail: str
    config: dict[str, str] = field(default_factory=dict)
    harmful: bool = False
    """Without this change data would be lost, so `bridge run` refuses to start."""


def plan(client: AdminClient, topics: Topics, needed: Sequence[DeclaredTopic] | None = None) -> list[Change]:
    """Return the differences from the declaration of the topics in `needed`, of all without it.

    Raises KafkaUnavailable when no broker answers, TopologyError when a right is missing.
    """
    present = admin.metadata(client, admin.USER_SECONDS).topics
    needed = topics.all() if needed is None else needed
    changes = [
        Change(
            topic,
            Action.CREATE,
            f"{plural(topic.partitions, 'partition')}, {_words(topic.config)}",
            topic.config,
        )
        for topic in needed
        # A topic that may not be described is not in the list either.
        if topic.name not in present and admin.topic_id(client, topic.name) is None
    ]
    existing = [topic for topic in needed if topic.name in present]
    for topic, config in zip(existing, _configs(client, existing), strict=True):
        differs = {k: v for k, v in topic.config.items() if not _satisfied(k, config.get(k), v)}
        differs |= {k: str(v) for k, v in topic.least.items() if int(config.get(k, v)) < v}
        if differs:
            action = Action.ACCEPT if topic.wished.issuperset(differs) else Action.ALTER
            detail = ", ".join(
                f"{k} is {config.get(k)}, {'better' if k in topic.wished else 'must be'} {v}"
                for k, v in differs.items()
            )
            changes.append(Change(topic, action, detail, differs, not topic.must.isdisjoint(differs)))
        count = len(present[topic.name].partitions)
        if topic in (topics.checkpoints, topics.snapshots) and count != 1:
            detail = f"it has {count} partitions and must have one: choose another prefix or recreate it"
            changes.append(Change(topic, Action.REFUSE, detail, harmful=True))
        elif count < topic.partitions:
            changes.append(
                # Adding partitions would move keys to others than those of their earlier records.
                Change(topic, Action.LEAVE, f"it has {count} partitions, but {topic.partitions} are declared")
            )
    return changes


def apply(
    client: AdminClient, changes: list[Change], *, replication_factor: int | None, only_validate: bool = False
) -> None:
    """Create and alter topics by `changes`. Adds no partitions.

    A cluster may refuse settings that need not be, as by a policy: the log has them, and it takes the others.
    Without `replication_factor`, a topic has a copy on each broker, up to 3. With `only_validate` the brokers
    check rights and settings, and change nothing. Waits a little until brokers list what is new. Raises as
    `plan`.
    """
    if refused := [c for c in changes if c.action is Action.REFUSE]:
        raise TopologyError("; ".join(f"{c.topic.name}: {c.detail}" for c in refused))
    brokers = len(admin.metadata(client, admin.USER_SECONDS).brokers)
    for change in changes:
        if change.action is Action.CREATE:
            copies = replication_factor or min(3, brokers)
            ask = partial(_create, client, change.topic, copies)
            _take_what_is_allowed(change.topic, as_created(change.topic, copies), ask, only_validate)
        elif change.action in (Action.ALTER, Action.ACCEPT):
            ask = partial(_alter, client, change.topic.name)
            _take_what_is_allowed(change.topic, change.config, ask, only_validate)
    if not only_validate:
        _await_listed(client, {c.topic.name for c in changes if c.action is Action.CREATE})


def _take_what_is_allowed(
    topic: DeclaredTopic,
    config: dict[str, str],
    ask: Callable[[dict[str, str], bool], None],
    only_validate: bool,
) -> None:
    """Ask for all settings; if that is refused, for those that must be with each other one that is allowed.

    `ask` takes settings, and whether only to validate them.
    """
    taken = {name: value for name, value in config.items() if name in topic.must}
    try:
        ask(config, only_validate)
        return
    except SettingRefused as error:
        if taken and _refuses(ask, taken):
            alone = {name: value for name, value in taken.items() if _refuses(ask, {name: value})}
            raise SettingRefused(f"{error}; it must have {_words(alone or taken)}") from None
    for name in sorted(config.keys() - taken.keys()):
        try:
            ask(more := taken | {name: config[name]}, True)
            taken = more
        except SettingRefused as error:
            get().warning(
                "the cluster refuses a setting", setting=f"{name}={config[name]}", reason=str(error)
            )
    if taken:
        ask(taken, only_validate)


def _refuses(ask: Callable[[dict[str, str], bool], None], config: dict[str, str]) -> bool:
    try:
        ask(config, True)
    except SettingRefused:
        return True
    return False


def _create(
    client: AdminClient, topic: DeclaredTopic, copies: int, config: dict[str, str], only_validate: bool
) -> None:
    new = NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=copies, config=config)
    with explained(f"creating {topic.name}", client, f"Create the topic {topic.name}"):
        made = client.create_topics([new], request_timeout=TIMEOUT_SECONDS, validate_only=only_validate)
        try:
            admin.result_of(made[topic.name])
        except KafkaException as exception:
            # Two bridges that start together both find the topic missing.
            if exception.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _alter(client: AdminClient, name: str, config: dict[str, str], only_validate: bool) -> None:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    with explained(f"altering {name}", client, f"AlterConfigs the topic {name}"):
        altered = client.incremental_alter_configs(
            [resource], request_timeout=TIMEOUT_SECONDS, validate_only=only_validate
        )
        admin.result_of(altered[resource])


def _await_listed(client: AdminClient, names: set[str]) -> None:
    """Wait until new topics are listed: a broker learns of them a moment after the controller made them."""
    for _ in range(LOOKS if names else 0):
        if names <= admin.metadata(client, admin.USER_SECONDS).topics.keys():
            return
        time.sleep(LOOK_SECONDS)


def ensure(
    client: AdminClient,
    settings: Settings,
    needed: Callable[[Topics], Sequence[DeclaredTopic]],
    *,
    only_validate: bool = False,
) -> Topics:
    """Create the topics that a program needs and that are missing; refuse those that would lose data.

    Ignores all others: the topics of one program must not hold up another. Logs the differences of the needed
    ones, and returns all topics. Raises TopologyError, with the fix for a topic, SinkBroken if one that is
    there may not be written, and KafkaUnavailable. With `only_validate`, creates and logs nothing.
    """
    topics = declare(settings)
    wanted = needed(topics)
    changes = plan(client, topics, wanted)
    if harmful := [change for change in changes if change.harmful]:
        raise TopologyError(
            "\n".join(f"{c.topic.name}: {c.detail}" for c in harmful)
            + "\nRun `bridge topics apply` to correct it, or set BRIDGE_TOPICS__PREFIX to use other topics."
        )
    if topics.checkpoints in wanted:
        refuse_lost_position(client, settings, topics)
    missing = [change for change in changes if change.action is Action.CREATE]
    made = {change.topic.name for change in missing}
    _refuse_without_write(client, [topic.name for topic in wanted if topic.name not in made])
    copies = settings.topics.replication_factor
    apply(client, missing, replication_factor=copies, only_validate=only_validate)
    if only_validate:
        return topics
    with suppress(KafkaUnavailable):  # a broker may not know them yet
        _refuse_without_write(client, sorted(made))
    for change in changes:
        get().info("topic", topic=change.topic.name, action=change.action.value, detail=change.detail)
    return topics


def _refuse_without_write(client: AdminClient, names: Sequence[str]) -> None:
    """Raise SinkBroken for a missing right that would be noticed late: after hours, or with a gap."""
    allowed = admin.allowed_on(client, names).items()
    if lacking := [name for name, found in allowed if found is not None and "WRITE" not in found]:
        error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        raise SinkBroken(denied(error, *(f"Write the topic {name}" for name in lacking)))


def refuse_lost_position(
    client: AdminClient, settings: Settings, topics: Topics, *, was_read: bool = False
) -> None:
    """Raise TopologyError if records are there without a checkpoint: nobody knows from where to go on.

    `was_read` says that the feed has no checkpoint; without it, one may be among those that are there. One
    that was removed on purpose (a tombstone, which compaction removes too) leaves the start of the topic
    alone; what deletes records moves it. A topic without checkpoints will do if `feed.start` is before the
    last record.
    """
    checkpoints = topics.checkpoints.name
    # These first: another bridge that starts just now writes a checkpoint before anything else.
    seen = admin.topics_seen(client, [topic.name for topic in topics.of_messages()])
    written = {
        name: list(topic.ends) for name, topic in seen.items() if topic is not None and any(topic.ends)
    }
    if not written:
        return
    if admin.topic_id(client, checkpoints) is None:
        found, restore = "gone", "Restore the topic; or create it with `bridge topics apply`, and set"
    else:
        [end], [first] = (
            admin.end_offsets(client, checkpoints, 1),
            admin.start_offsets(client, checkpoints, 1),
        )
        if first < end and not (was_read and first):
            return
        start = parse_start(settings.feed.start, clock.now().wall)
        if start is not None and any(
            admin.offsets_since(client, name, start, ends) != ends for name, ends in written.items()
        ):
            return
        found, restore = "without a checkpoint of the feed", "Restore what it had; or set"
    has = "has" if len(written) == 1 else "have"
    raise TopologyError(
        f"{checkpoints} is {found}, and {', '.join(written)} {has} records: without its position the bridge "
        f"would neither ask for what has come since then nor declare a gap. {restore} feed.start "
        "(BRIDGE_FEED__START) to a time or an age before the last record."
    )


def min_insync_replicas(client: AdminClient, topics: list[DeclaredTopic]) -> dict[str, int]:
    """Return by topic how many replicas must have a record before it counts. Raises as `plan`."""
    found = zip(topics, _configs(client, topics), strict=True)
    return {topic.name: int(config.get("min.insync.replicas", 1)) for topic, config in found}


def _configs(client: AdminClient, topics: list[DeclaredTopic]) -> list[dict[str, str]]:
    if not topics:
        return []
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics]
    by_name = {}
    for resource, future in client.describe_configs(resources, request_timeout=TIMEOUT_SECONDS).items():
        name = resource.name
        with explained(f"reading the settings of {name}", client, f"DescribeConfigs the topic {name}"):
            by_name[name] = {k: str(e.value) for k, e in admin.result_of(future).items()}
    return [by_name[topic.name] for topic in topics]


def _satisfied(name: str, actual: str | None, wanted: str) -> bool:
    if name in ("min.compaction.lag.ms", "max.message.bytes") and actual is not None:
        return int(actual) >= int(wanted)
    return actual == wanted


def _words(config: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())
