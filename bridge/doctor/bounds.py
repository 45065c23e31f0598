"""Compares our time-outs and the size of the owner group with what the brokers allow.

Outside of them Kafka refuses the member, or the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from bridge.config import Settings
from bridge.doctor.finding import Finding, Verdict
from bridge.doctor.kafka_checks import ask_members
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import explained

LEAST_SESSION, LONGEST_SESSION = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
LONGEST_TRANSACTION, LARGEST_GROUP = "transaction.max.timeout.ms", "group.max.size"
COPIES = "transaction.state.log.replication.factor"


def check_bounds(settings: Settings) -> Finding:
    """Whether the brokers allow our time-outs, transactions, and a further member of the owner group."""
    client = clients.admin(settings.kafka)
    seen = admin.metadata(client, admin.USER_SECONDS)
    try:
        found = [_of_broker(client, broker) for broker in seen.brokers]
    except TopologyError as error:  # nothing else needs this right
        return Finding(Verdict.SKIPPED, str(error))
    given = settings.kafka.public_properties()
    return assess_bounds(
        round(clients.session_seconds(settings.kafka) * 1000),
        int(given.get("transaction.timeout.ms", clients.TRANSACTION_MS)),
        len(ask_members(settings).members),
        found,
        is_first=clients.TRANSACTIONS not in seen.topics,
    )


def assess_bounds(
    session: int, transaction: int, members: int, brokers: Sequence[Mapping[str, str]], *, is_first: bool
) -> Finding:
    """Whether all brokers, by their settings, allow these time-outs (ms), and one member more.

    Any of them may be the coordinator. `is_first` says that there was no transaction yet.
    """
    least, longest = _bound(brokers, LEAST_SESSION, max), _bound(brokers, LONGEST_SESSION)
    lasting, largest = _bound(brokers, LONGEST_TRANSACTION), _bound(brokers, LARGEST_GROUP)
    if least is None or longest is None or lasting is None or largest is None:
        return Finding(Verdict.SKIPPED, "the brokers do not show their bounds")
    if transaction > lasting:
        text = f"kafka.transaction_timeout_ms = {transaction} is more than {LONGEST_TRANSACTION} = {lasting}"
        return Finding(Verdict.FAIL, text, "Lower the one, or have the brokers allow more.")
    if is_first and (copies := _bound(brokers, COPIES) or 0) > len(brokers):
        text = f"no transaction can begin: the brokers are {len(brokers)}, and {COPIES} = {copies}"
        return Finding(Verdict.TROUBLE, text, "Start more brokers, or lower it for all of them.")
    if not least <= session <= longest:
        return Finding(
            Verdict.TROUBLE,
            f"kafka.session_timeout_ms = {session}: the brokers take {least} to {longest} "
            f"({LEAST_SESSION}, {LONGEST_SESSION}), and no bridge into the owner group",
            "Set one that they take.",
        )
    if members >= largest:
        text = f"the owner group is full: {members} of {largest} members ({LARGEST_GROUP})"
        return Finding(Verdict.WARN, text, "A further bridge is refused.")
    return Finding(Verdict.OK, f"a session of {session} ms and transactions of {transaction} ms are allowed")


def _bound(
    brokers: Sequence[Mapping[str, str]], name: str, tightest: Callable[..., int | None] = min
) -> int | None:
    """Return the bound of all brokers; None if they hide it, as some clusters do."""
    return tightest(
        (int(broker[name]) for broker in brokers if broker.get(name, "").isdecimal()), default=None
    )


def _of_broker(client: AdminClient, broker: int) -> dict[str, str]:
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    with explained("reading the brokers' settings", client, "DescribeConfigs the cluster"):
        [future] = client.describe_configs([resource], request_timeout=admin.USER_SECONDS).values()
        return {name: str(entry.value) for name, entry in admin.result_of(future).items()}
