"""What the doctor looks at in Kafka and in the registry. It changes nothing and joins nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, TopicCollection
from confluent_kafka.admin import AdminClient

from bridge import clock
from bridge.avro.registry import Registry, Standing
from bridge.config import Settings
from bridge.doctor.finding import Finding, Outcome
from bridge.kafka import admin, clients, topics
from bridge.kafka.election import group_of
from bridge.kafka.errors import KafkaUnavailable, explained
from bridge.kafka.group import Group, Member

ASK_SECONDS = 5.0
COORDINATOR_SECONDS = 5.0
"""A cluster makes the topic of its coordinators when the first of them is asked for."""
RETRY_SECONDS = 0.25
TOPIC_RIGHTS = frozenset({"READ", "WRITE", "DESCRIBE_CONFIGS"})
GROUP_RIGHTS = frozenset({"READ"})


def brokers_answer(settings: Settings) -> Finding:
    """Whether a broker answers, and how many there are."""
    with explained(f"asking {settings.kafka.bootstrap_servers}"):
        found = clients.admin(settings.kafka).list_topics(timeout=ASK_SECONDS)
    count = len(found.brokers)
    return Finding(
        Outcome.OK, f"{count} broker{'' if count == 1 else 's'}, the controller is {found.controller_id}"
    )


def topics_match(settings: Settings) -> Finding:
    """Whether the topics are as they are declared."""
    return judged_topics(topics.plan(clients.admin(settings.kafka), topics.declare(settings)))


def judged_topics(changes: list[topics.Change]) -> Finding:
    """What is to be said of the differences between what is declared and what is there."""
    seen = "\n".join(f"{c.topic.name}: {c.action.value}: {c.detail}" for c in changes)
    mended = [c for c in changes if c.action is not topics.Action.LEAVE]
    if any(change.harmful for change in changes):
        return Finding(Outcome.FAIL, seen, "Run `bridge topics apply`, or choose another topics.prefix.")
    if mended:
        return Finding(Outcome.WARN, seen, "Run `bridge topics apply`; `bridge run` creates missing ones.")
    return Finding(Outcome.OK, seen or "as they are declared")


def rights_suffice(settings: Settings) -> Finding:
    """Whether the principal may do to topics and groups what the bridge does."""
    client = clients.admin(settings.kafka)
    with explained("listing the topics"):
        present = client.list_topics(timeout=ASK_SECONDS).topics
    allowed: dict[str, frozenset[str] | None] = {}
    if names := [topic.name for topic in topics.declare(settings).all() if topic.name in present]:
        with explained("asking for the rights on the topics"):
            futures = client.describe_topics(
                TopicCollection(names), include_authorized_operations=True, request_timeout=ASK_SECONDS
            )
            allowed = {name: _operations(admin.result_of(future)) for name, future in futures.items()}
    return judged_rights(allowed, _operations(_group(client, group_of(settings))))


def _operations(description: Any) -> frozenset[str] | None:
    operations = description.authorized_operations
    return None if operations is None else frozenset(operation.name for operation in operations)


def judged_rights(on_topics: Mapping[str, frozenset[str] | None], on_group: frozenset[str] | None) -> Finding:
    """What is to be said of the operations allowed on each topic that is there, and on the group.

    None is what a cluster says that keeps it to itself.
    """
    wanted = [(name, TOPIC_RIGHTS, allowed) for name, allowed in on_topics.items()]
    wanted.append(("the leadership group", GROUP_RIGHTS, on_group))
    told = [(name, rights, allowed) for name, rights, allowed in wanted if allowed is not None]
    if lacking := [
        f"{name}: {', '.join(sorted(rights - allowed))} is not allowed"
        for name, rights, allowed in told
        if rights - allowed
    ]:
        advice = 'Grant it: "Rights" in docs/kafka.md lists what is needed, with the commands.'
        return Finding(Outcome.FAIL, "\n".join(lacking), advice)
    untold = "not asked: Write on the transactional id, which would fence the owner; Create"
    if len(told) < len(wanted):
        return Finding(Outcome.WARN, f"the cluster does not tell all of them\n{untold}")
    return Finding(Outcome.OK, f"enough on {', '.join(name for name, *_ in wanted)}\n{untold}")


def owner_known(settings: Settings) -> Finding:
    """Who owns the feed, and how many stand by."""
    found = ask_members(settings)
    return judged_owners(group_of(settings), found.owners, len(found.members))


def ask_members(settings: Settings) -> Group:
    """Who is in the leadership group. Raises as `kafka.explained`."""
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


def judged_owners(group: str, owners: list[str], members: int) -> Finding:
    """What is to be said of a leadership group: the hosts of members that own the feed, and all members."""
    if not members:
        return Finding(Outcome.WARN, f"{group} has no members", "Start `bridge run`: nobody owns the feed.")
    if not owners:
        return Finding(
            Outcome.WARN,
            f"{group} has {members} members, none of which owns the feed",
            "Ask again: an assignment takes seconds. If it stays so, look at the log of the bridges.",
        )
    return Finding(Outcome.OK, f"owned from {', '.join(owners)}, {members - len(owners)} standing by")


def _group(client: AdminClient, group: str) -> Any:
    """The description of a group, also of one that nobody has joined yet. Raises as `kafka.explained`."""
    deadline = clock.now().monotonic + COORDINATOR_SECONDS
    while True:
        try:
            with explained(f"describing the group {group}"):
                asked = client.describe_consumer_groups(
                    [group], include_authorized_operations=True, request_timeout=ASK_SECONDS
                )
                return admin.result_of(asked[group])
        except KafkaUnavailable:
            if clock.now().monotonic > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def schemas_stand(settings: Settings) -> Finding:
    """Whether the registry answers, and has our schemas or would take them."""
    return judged_standings(Registry(settings.registry).standings(settings.topics.prefix))


def judged_standings(standings: Mapping[str, Standing]) -> Finding:
    """What is to be said of the subjects in a registry."""
    odd = "\n".join(
        f"{name}: {how.value}" for name, how in standings.items() if how is not Standing.REGISTERED
    )
    if Standing.INCOMPATIBLE in standings.values():
        advice = "Upgrade the bridge where it is older than what runs, or choose another topics.prefix."
        return Finding(Outcome.FAIL, odd, advice)
    if odd:
        return Finding(Outcome.OK, f"it answers; `bridge run` registers\n{odd}")
    return Finding(Outcome.OK, f"it answers, and has all {len(standings)} schemas")
