"""Checks of Kafka and of the registry. They change nothing and join no group."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, TopicCollection
from confluent_kafka.admin import AdminClient, ResourceType

from bridge import clock
from bridge.config import Settings
from bridge.doctor.finding import Finding, Outcome
from bridge.formatting import format_duration, plural
from bridge.kafka import admin, clients, rights, topics
from bridge.kafka.election import group_of
from bridge.kafka.errors import KafkaUnavailable, explained
from bridge.kafka.group import Group, Member
from bridge.kafka.open_transactions import Look, TransactionWatch, show_producer
from bridge.kafka.registry import Standing

COORDINATOR_SECONDS = 5.0
"""A cluster creates its coordinators' topic at the first request for one."""
RETRY_SECONDS = 0.25
LOOKS = 3
LOOK_SECONDS = 2.0
"""Between looks for open transactions. A live bridge ends each of its own before the last one."""
TOPIC_RIGHTS = frozenset(operation.name for operation in rights.NEEDED[ResourceType.TOPIC])
GROUP_RIGHTS = frozenset(operation.name for operation in rights.NEEDED[ResourceType.GROUP])
SUBJECTS_OF_JOBS = ("translations-value", "currencies-value", "snapshots-value")
"""Subjects that the snapshot jobs register, without the prefix; `bridge run` registers the others."""


def check_brokers(settings: Settings) -> Finding:
    """Whether a broker answers."""
    found = admin.metadata(clients.admin(settings.kafka), admin.LOOK_SECONDS)
    count = plural(len(found.brokers), "broker")
    return Finding(Outcome.OK, f"{count}, controller: broker {found.controller_id}")


def assess_topics(changes: list[topics.Change]) -> Finding:
    """Whether the topics match the settings, by the changes that would make them so."""
    message = "\n".join(f"{c.topic.name}: {c.action.value}: {c.detail}" for c in changes)
    if any(change.harmful for change in changes):
        return Finding(Outcome.FAIL, message, "Run `bridge topics apply`, or choose another topics.prefix.")
    if any(change.action is not topics.Action.LEAVE for change in changes):
        return Finding(Outcome.WARN, message, "Run `bridge topics apply`; `bridge run` creates missing ones.")
    return Finding(Outcome.OK, message or "match the settings")


def check_rights(settings: Settings) -> Finding:
    """Whether the principal has the rights on topics and group that the bridge needs."""
    client = clients.admin(settings.kafka)
    present = admin.metadata(client, admin.LOOK_SECONDS).topics
    allowed: dict[str, frozenset[str] | None] = {}
    if names := [topic.name for topic in topics.declare(settings).all() if topic.name in present]:
        needed = f"Describe the topics {', '.join(names)}"
        with explained("asking for the rights on the topics", client, needed):
            futures = client.describe_topics(
                TopicCollection(names), include_authorized_operations=True, request_timeout=admin.LOOK_SECONDS
            )
            allowed = {name: _operations(admin.result_of(future)) for name, future in futures.items()}
    return assess_rights(allowed, _operations(_group(client, group_of(settings))))


def _operations(description: Any) -> frozenset[str] | None:
    operations = description.authorized_operations
    return None if operations is None else frozenset(operation.name for operation in operations)


def assess_rights(on_topics: Mapping[str, frozenset[str] | None], on_group: frozenset[str] | None) -> Finding:
    """Whether the allowed operations suffice; None if the cluster does not report them."""
    needed = [(name, TOPIC_RIGHTS, allowed) for name, allowed in on_topics.items()]
    needed.append(("the owner group", GROUP_RIGHTS, on_group))
    known = [(name, asked, allowed) for name, asked, allowed in needed if allowed is not None]
    if missing := [
        f"{name}: {', '.join(sorted(asked - allowed))} is not allowed"
        for name, asked, allowed in known
        if asked - allowed
    ]:
        advice = 'Grant it: "Rights" in docs/kafka.md lists what is needed, with the commands.'
        return Finding(Outcome.FAIL, "\n".join(missing), advice)
    unchecked = "not checked: Write on the transactional id, which would fence the owner; Create"
    if len(known) < len(needed):
        return Finding(Outcome.WARN, f"the cluster does not report all of them\n{unchecked}")
    return Finding(
        Outcome.OK, f"all required rights granted on {', '.join(name for name, *_ in needed)}\n{unchecked}"
    )


def ask_members(settings: Settings) -> Group:
    """Return the members of the owner group. Raises as `explained`."""
    described = _group(clients.admin(settings.kafka), group_of(settings))
    checkpoints = topics.declare(settings).checkpoints.name
    return Group(
        tuple(
            Member(m.member_id, m.client_id, m.host.lstrip("/"), checkpoints in _assigned(m))
            for m in described.members
        ),
        described.state is ConsumerGroupState.PREPARING_REBALANCING,
    )


def _assigned(member: Any) -> set[str]:
    return (
        {partition.topic for partition in member.assignment.topic_partitions} if member.assignment else set()
    )


def assess_leadership(name: str, group: Group) -> Finding:
    """Whether a member of the owner group of that name owns the feed."""
    members = len(group.members)
    if not members:
        return Finding(Outcome.WARN, f"{name} has no members", "Start `bridge run`: nobody owns the feed.")
    if not group.owners:
        return Finding(
            Outcome.WARN,
            f"{name} has {members} members, none of which owns the feed",
            "Repeat: an assignment takes seconds. If it stays so, look at the logs of the bridges.",
        )
    return Finding(Outcome.OK, f"owned from {', '.join(group.owners)}, {plural(group.standbys, 'standby')}")


def find_open_transactions(settings: Settings) -> Look:
    """Look for the transactions that stay open for some seconds. Raises as `explained`."""
    watch = TransactionWatch(
        settings, [topic.name for topic in topics.declare(settings).of_feed()], clock.now
    )
    look = watch.look()
    for _ in range(LOOKS):
        time.sleep(LOOK_SECONDS)
        look = watch.look()
        if not look.open and not look.unknown:
            break
    return look


def assess_transactions(settings: Settings, look: Look, now: float) -> Finding:
    """Whether a transaction hides records from readers and from the next owner, at `now`, Unix seconds."""
    if not look.open and not look.unknown:
        return Finding(Outcome.OK, "none stays open")
    lines = [
        f"{transaction}: open for {format_duration(max(0.0, now - transaction.began))} by its first record"
        for transaction in look.open
    ]
    lines += dict.fromkeys(look.unknown.values())
    if not look.open:
        return Finding(Outcome.FAIL, "\n".join(lines))
    steps = [
        "Repeat in a minute: what a bridge has open, or one that died, has ended by then.",
        "Find the producer of one that has not; `ProducerId` is in the row with that offset:",
        *(show_producer(settings.kafka, transaction.place) for transaction in look.open),
        'Go on as in "A transaction hangs" in docs/operations.md.',
        "Never abort one of a bridge that runs: bets would be lost.",
    ]
    return Finding(Outcome.FAIL, "\n".join(lines), "\n".join(steps))


def _group(client: AdminClient, name: str) -> Any:
    """Describe a group, even one that nobody has joined yet. Raises as `explained`."""
    deadline = clock.now().monotonic + COORDINATOR_SECONDS
    while True:
        try:
            with explained(f"describing the group {name}", client, f"Describe the group {name}"):
                futures = client.describe_consumer_groups(
                    [name], include_authorized_operations=True, request_timeout=admin.LOOK_SECONDS
                )
                return admin.result_of(futures[name])
        except KafkaUnavailable:
            if clock.now().monotonic > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def assess_schemas(standings: Mapping[str, Standing]) -> Finding:
    """Whether the registry has our schemas, or would take them."""
    others = {name: how for name, how in standings.items() if how is not Standing.REGISTERED}
    if Standing.INCOMPATIBLE in others.values():
        advice = "Upgrade the bridge if it is older than the running one, or choose another topics.prefix."
        return Finding(Outcome.FAIL, "\n".join(f"{n}: {how.value}" for n, how in others.items()), advice)
    if not others:
        return Finding(Outcome.OK, f"the registry answers, and has all {len(standings)} schemas")
    missing = f"{len(others)} schemas are" if len(others) > 1 else "1 schema is"
    lines = [f"the registry answers; {missing} not registered yet:"]
    for name, how in others.items():
        version = "" if how is Standing.NEW else f"{how.value}; "
        registers = (
            "the snapshot jobs register" if name.endswith(SUBJECTS_OF_JOBS) else "`bridge run` registers"
        )
        lines.append(f"{name}: {version}{registers} it")
    return Finding(Outcome.OK, "\n".join(lines))
