"""Checks of Kafka and of the registry. They change nothing and join no group."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, PartitionMetadata, ResourceType

from bridge import clock
from bridge.config import KafkaSettings, Settings
from bridge.doctor.finding import Finding, Verdict
from bridge.errors import TopologyError
from bridge.formatting import format_duration, plural
from bridge.kafka import admin, clients
from bridge.kafka.blocking import Clients, destroy_in_background
from bridge.kafka.errors import coordinated, explained, unanswered
from bridge.kafka.open_transactions import Look, TransactionWatch, show_producer
from bridge.kafka.outage import outage_of
from bridge.ownership import batch_writer
from bridge.ownership.election import group_of, group_of_job, is_owner_id, look
from bridge.ownership.group import Group, Member
from bridge.records import rights, topics
from bridge.registry import (
    OF_OWNER,
    TO_TELL_APART,
    TO_UPGRADE,
    Compatibility,
    Registry,
    RegistryUnavailable,
)
from bridge.stored.restore import PublishedReader

GROUP_SECONDS = 15.0
"""Long: after a time-out of this request, the client may end the process (decision 0005)."""
MOST_PARTITIONS = 3
"""Partitions that are named of each kind of trouble."""
LAST_BETS = 10_000
LOOKS = 3
LOOK_SECONDS = 2.0
"""Between looks for open transactions. A live bridge ends each of its own before the last one."""
TOPIC_RIGHTS = frozenset(operation.name for operation in rights.NEEDED[ResourceType.TOPIC])
GROUP_RIGHTS = frozenset(operation.name for operation in rights.NEEDED[ResourceType.GROUP])
READER_RIGHTS, READ, NONE = frozenset({"DESCRIBE"}), frozenset({"READ"}), frozenset[str]()
JOBS = ("translations", "currencies")
OF_JOBS = "only the snapshot jobs need that"
SUBJECTS_OF_JOBS = (*(f"{job}-value" for job in JOBS), "snapshots-value")
"""Subjects that the snapshot jobs register, without the prefix; `bridge run` registers the others."""

ADVICE = {Compatibility.INCOMPATIBLE: TO_UPGRADE, Compatibility.ALTERED: TO_TELL_APART}
"""For the standings of a schema with which its writer ends."""


class Needed(NamedTuple):
    """A resource in Kafka, the operations that are needed on it, and those that are allowed."""

    name: str
    rights: frozenset[str]
    allowed: frozenset[str] | None
    """None if the cluster does not report them."""
    spare: frozenset[str] = frozenset()
    """Those that `bridge run` does without."""

    @property
    def missing(self) -> frozenset[str]:
        """The operations that are known not to be allowed."""
        return frozenset() if self.allowed is None else self.rights - self.allowed


def check_brokers(settings: Settings) -> Finding:
    """Whether a broker answers, and `bridge run` could make its clients."""
    destroy_in_background(batch_writer.transactional(settings))
    Clients(settings).close()
    found = admin.metadata(clients.admin(settings.kafka), admin.USER_SECONDS)
    count = plural(len(found.brokers), "broker")
    return Finding(Verdict.OK, f"{count}, controller: broker {found.controller_id}")


def check_topics(settings: Settings) -> Finding:
    """Whether `bridge run` could create and use its topics, and all match the settings."""
    client = clients.admin(settings.kafka)
    declared = topics.ensure(client, settings, topics.Topics.of_feed, only_validate=True)
    try:
        return assess_topics(topics.plan(client, declared))
    except TopologyError as error:  # `bridge run` does not notice it
        return Finding(Verdict.TROUBLE, f"{error}\n{OF_JOBS}")


def assess_topics(changes: list[topics.Change]) -> Finding:
    """Whether topics that `bridge run` could use match the settings, by the changes that would do that."""
    message = "\n".join(f"{c.topic.name}: {c.action.value}: {c.detail}" for c in changes)
    advice = "Run `bridge topics apply`."
    if any(change.harmful for change in changes):
        return Finding(Verdict.TROUBLE, f"{message}\n{OF_JOBS}", advice)
    if any(change.action not in topics.STANDING for change in changes):
        return Finding(Verdict.WARN, message, f"{advice} `bridge run` creates those that it writes.")
    return Finding(Verdict.OK, message or "match the settings")


def check_replicas(settings: Settings) -> Finding:
    """Whether each partition has a leader and the replicas that it should have."""
    client, declared = clients.admin(settings.kafka), topics.declare(settings)
    found = admin.metadata(client, admin.USER_SECONDS)
    present = [topic for topic in declared.all() if topic.name in found.topics]
    partitions = {topic.name: found.topics[topic.name].partitions.values() for topic in present}
    wanted = settings.topics.replication_factor or min(3, len(found.brokers))
    try:
        least = topics.min_insync_replicas(client, present)
    except TopologyError as error:  # `topics` tells what the lack of this right means
        return Finding(Verdict.SKIPPED, str(error))
    return assess_replicas(partitions, least, wanted, set(found.brokers))


def assess_replicas(
    partitions: Mapping[str, Iterable[PartitionMetadata]],
    least: Mapping[str, int],
    wanted: int,
    brokers: Collection[int],
) -> Finding:
    """Whether partitions can be written, and survive the loss of a broker.

    `partitions` and `least`, the `min.insync.replicas`, are by topic. `wanted` is how many replicas a topic
    should have, `brokers` are those that answer.
    """
    refusing, lagging, few = [], [], []
    for topic, found in partitions.items():
        for partition in found:
            place = f"{topic} partition {partition.id}"
            copies, in_sync = len(partition.replicas), len(partition.isrs)
            enough = min(least[topic], copies)  # as brokers count
            behind = _named(set(partition.replicas) - set(partition.isrs), brokers)
            if partition.leader < 0:
                leaders = _named(partition.isrs or partition.replicas, brokers)
                refusing.append(f"{place} has no leader: only broker {leaders} can lead it")
            elif in_sync < enough:
                refusing.append(f"{place} takes no writes: {in_sync} of {enough} in sync, not {behind}")
            elif behind:
                lagging.append(f"{place}: not in sync: {behind}")
            if copies < wanted:
                few.append(f"{place}: {plural(copies, 'replica')}, should have {wanted}")
    advice = []
    if refusing or lagging:
        advice.append("Bring the named brokers back; what they lack is copied by itself.")
    if few:
        advice.append(
            "Add replicas with `kafka-reassign-partitions.sh`; topics.replication_factor says how many a new "
            "topic gets."
        )
    lines = [*_first(refusing), *_first(lagging), *_first(few)]
    if not lines:
        return Finding(Verdict.OK, f"{wanted} of each partition, in sync" if partitions else "no topic yet")
    return Finding(Verdict.TROUBLE if refusing else Verdict.WARN, "\n".join(lines), "\n".join(advice))


def _named(ids: Iterable[int], brokers: Collection[int]) -> str:
    return ", ".join(f"{n}" if n in brokers else f"{n} (does not answer)" for n in sorted(ids))


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - MOST_PARTITIONS
    return [*lines[:MOST_PARTITIONS], *([f"and {more} more partitions"] if more > 0 else [])]


def check_published(settings: Settings) -> Finding:
    """Whether the last bets can be read, as `bridge run` reads what is published at its start."""
    declared = topics.declare(settings)
    with Registry(settings.registry) as registry:
        reader = PublishedReader(settings, declared, registry.codec("settled-bet"))
        known, foreign = reader.check_last(LAST_BETS)
    message = f"the last bets of {declared.bets.name} can be read: {known:,}" if known else "no bets yet"
    if not foreign.count:
        return Finding(Verdict.OK, message)
    advice = '"Foreign records" in docs/operations.md says who skips them.'
    return Finding(Verdict.WARN, f"{message}; {foreign.count:,} foreign: {foreign.first}", advice)


def check_rights(settings: Settings) -> Finding:
    """Whether the principal has the rights on topics and groups that `bridge run` and the jobs need."""
    client, declared = clients.admin(settings.kafka), topics.declare(settings)
    present = admin.metadata(client, admin.USER_SECONDS).topics
    unseen = [topic.name for topic in declared.of_feed() if topic.name not in present]
    allowed = admin.allowed_on(client, [topic.name for topic in declared.all() if topic.name in present])
    spare = {topic.name: TOPIC_RIGHTS for topic in declared.of_jobs()}
    jobs = JOBS if spare.keys() & allowed.keys() else ()
    spare[declared.gaps.name] = READ  # to show former gaps
    needed = [Needed(name, TOPIC_RIGHTS, found, spare.get(name, NONE)) for name, found in allowed.items()]
    reader = f"{settings.topics.prefix}.reader"
    groups = [(group_of(settings), GROUP_RIGHTS, NONE), (reader, READER_RIGHTS, NONE)]
    groups += [(group_of_job(settings, job), GROUP_RIGHTS, GROUP_RIGHTS) for job in jobs]
    for group, required, not_needed in groups:
        try:
            found = admin.operations(_group(client, group))
        except TopologyError:  # not even to be described
            if not not_needed:
                raise
            found = frozenset()
        needed.append(Needed(f"the group {group}", required, found, not_needed))
    judged = assess_rights(needed, unseen, has_members=True)
    if judged.outcome is Verdict.FAIL or not batch_writer.try_open(settings, lambda: ask_members(settings)):
        return judged
    return assess_rights(needed, unseen, has_members=False)


def assess_rights(needed: Collection[Needed], unseen: Sequence[str] = (), *, has_members: bool) -> Finding:
    """Whether the allowed operations suffice. `unseen` are topics that are missing or hidden."""
    if lacking := [resource for resource in needed if resource.missing]:
        message = "\n".join(f"{r.name}: missing {', '.join(sorted(r.missing))}" for r in lacking)
        advice = 'Grant it: "Rights" in docs/kafka.md lists what is needed, with the commands.'
        is_spare = all(resource.missing <= resource.spare for resource in lacking)
        outcome = Verdict.TROUBLE if is_spare else Verdict.FAIL
        return Finding(outcome, message, advice)
    unchecked = ["Write on the transactional id, while the group has members"] if has_members else []
    if unseen:
        unchecked.append(f"topics that are missing or hidden: {', '.join(unseen)}")
    rest = f"\nnot checked: {'; '.join(unchecked)}" if unchecked else ""
    if any(resource.allowed is None for resource in needed):
        return Finding(Verdict.WARN, f"the cluster does not report all of them{rest}")
    names = ", ".join(resource.name for resource in needed)
    return Finding(Verdict.OK, f"all required rights granted on {names}{rest}")


def ask_members(settings: Settings) -> Group:
    """Return the members of the owner group. Raises KafkaUnavailable if not all brokers answer."""
    name = group_of(settings)
    # Not by describing it, during which an outage ends the process (decision 0005).
    found = look(clients.admin(settings.kafka), name, topics.declare(settings).checkpoints.name)
    if found is None:
        raise unanswered(f"listing the members of {name}", outage_of(settings.kafka))
    return found


def check_leadership(settings: Settings) -> Finding:
    """Whether a bridge owns the feed, and nothing else is in the owner group."""
    name, group = group_of(settings), ask_members(settings)
    if not group.members:  # Kafka lists none of a group of the newer protocol
        found = _group(clients.admin(settings.kafka), name).members
        group = Group(tuple(Member(m.member_id, m.client_id, m.host.lstrip("/"), False) for m in found))
    return assess_leadership(name, group)


def assess_leadership(name: str, group: Group) -> Finding:
    """Whether a member of the owner group of that name owns the feed."""
    members = len(group.members)
    if not members:
        advice = "Nobody owns the feed: start `bridge run` once no check fails (✗)."
        return Finding(Verdict.WARN, f"{name} has no members", advice)
    if strangers := [member for member in group.members if not is_owner_id(member.name)]:
        names = ", ".join(f"{member.name} from {member.host}" for member in strangers)
        return Finding(
            Verdict.TROUBLE,
            f"{name} has members that are no bridges: {names}",
            "Give them another group.id: they take the feed from the bridges, or have Kafka refuse these.",
        )
    if group.protocol not in ("", clients.ASSIGNOR):
        return Finding(
            Verdict.TROUBLE,
            f"the members of {name} use {group.protocol}, not {clients.ASSIGNOR}: Kafka refuses bridges",
            "Stop those that are no bridges, or give them another group.id.",
        )
    if not group.owner_hosts:
        return Finding(
            Verdict.WARN,
            f"{name} has {members} members, none of which owns the feed",
            "Run this again: an assignment takes seconds. If nothing changes, check the logs of the bridges.",
        )
    return Finding(
        Verdict.OK, f"owned from {', '.join(group.owner_hosts)}, {plural(group.standbys, 'standby')}"
    )


def check_transactions(settings: Settings) -> Finding:
    """Whether a transaction stays open for some seconds. Raises as `explained`."""
    watch = TransactionWatch(
        settings, [topic.name for topic in topics.declare(settings).of_feed()], clock.now
    )
    client = clients.admin(settings.kafka)
    look = watch.look(client)
    for _ in range(LOOKS):
        time.sleep(LOOK_SECONDS)
        if look.unknown:
            client = clients.admin(settings.kafka)
        look = watch.look(client)
        if not look.open and not look.unknown:
            break
    return assess_transactions(settings.kafka, look, clock.now().wall)


def assess_transactions(settings: KafkaSettings, look: Look, now: float) -> Finding:
    """Whether a transaction hides records from readers and from the next owner, at `now`, Unix seconds."""
    if not look.open and not look.unknown:
        return Finding(Verdict.OK, "no transaction stays open")
    lines = [
        f"{transaction}: open for {format_duration(max(0.0, now - transaction.began))} by its first record"
        for transaction in look.open
    ]
    lines += dict.fromkeys(look.unknown.values())
    if not look.open:
        return Finding(Verdict.TROUBLE, "\n".join(lines))
    steps = [
        "Run this again in a minute: transactions of bridges, even of dead ones, have ended by then.",
        "If one has not, find its producer; `ProducerId` is in the row with that offset:",
        *(show_producer(settings, transaction.place) for transaction in look.open),
        'Continue as in "A transaction hangs" in docs/operations.md.',
        "Never abort a transaction of a running bridge: bets would be lost.",
    ]
    return Finding(Verdict.TROUBLE, "\n".join(lines), "\n".join(steps))


@coordinated
def _group(client: AdminClient, name: str) -> Any:
    """Describe a group, even one that nobody has joined yet. Raises as `explained`."""
    with explained(f"describing the group {name}", client, f"Describe the group {name}"):
        futures = client.describe_consumer_groups(
            [name], include_authorized_operations=True, request_timeout=GROUP_SECONDS
        )
        return admin.result_of(futures[name])


def check_registry(settings: Settings) -> Finding:
    """Whether the registry has our schemas, or would take them. Raises as `Registry.register`."""
    prefix = settings.topics.prefix
    with Registry(settings.registry) as registry:
        try:
            return assess_schemas(registry.compatibility(prefix))
        except RegistryUnavailable:
            raise
        except TopologyError as error:
            judged = assess_schemas(registry.compatibility(prefix, OF_OWNER))
            trouble = Finding(Verdict.TROUBLE, f"{error}\n{OF_JOBS}")
            return judged if judged.outcome is Verdict.FAIL else trouble


def assess_schemas(compatibility: Mapping[str, Compatibility]) -> Finding:
    """Whether the registry has our schemas, or would take them.

    One that is refused ends `bridge run` only if the snapshot jobs do not register it.
    """
    others = {name: how for name, how in compatibility.items() if how is not Compatibility.REGISTERED}
    if refused := {name: ADVICE[how] for name, how in others.items() if how in ADVICE}:
        outcome = Verdict.TROUBLE if all(n.endswith(SUBJECTS_OF_JOBS) for n in refused) else Verdict.FAIL
        message = "\n".join(f"{n}: {how.value}" for n, how in others.items())
        return Finding(outcome, message, "\n".join(dict.fromkeys(refused.values())))
    if not others:
        return Finding(Verdict.OK, f"the registry answers, and has all {len(compatibility)} schemas")
    missing = f"{len(others)} schemas are" if len(others) > 1 else "1 schema is"
    lines = [f"the registry answers; {missing} not registered yet:"]
    for name, how in others.items():
        version = "" if how is Compatibility.NEW else f"{how.value}; "
        registers = (
            "the snapshot jobs register" if name.endswith(SUBJECTS_OF_JOBS) else "`bridge run` registers"
        )
        lines.append(f"{name}: {version}{registers} it")
    unknown = Compatibility.UNKNOWN in others.values()
    return Finding(Verdict.WARN if unknown else Verdict.OK, "\n".join(lines))
