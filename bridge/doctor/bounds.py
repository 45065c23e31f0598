"""Compares our time-outs and the size of the owner group with what the brokers allow.

Outside of them Kafka refuses the member, or the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from bridge.config import Settings
from bridge.doctor.finding import Finding, Outcome
from bridge.doctor.kafka_checks import ask_members
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import explained

LEAST_SESSION, LONGEST_SESSION = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
LONGEST_TRANSACTION, LARGEST_GROUP = "transaction.max.timeout.ms", "group.max.size"


def check_bounds(settings: Settings) -> Finding:
    """Whether the brokers allow our time-outs, and a further member of the owner group."""
    client = clients.admin(settings.kafka)
    brokers = admin.metadata(client, admin.USER_SECONDS).brokers
    try:
        found = [_of_broker(client, broker) for broker in brokers]
    except TopologyError as error:  # nothing else needs this right
        return Finding(Outcome.SKIPPED, str(error))
    given = settings.kafka.public_properties()
    return assess_bounds(
        round(clients.session_seconds(settings.kafka) * 1000),
        int(given.get("transaction.timeout.ms", clients.TRANSACTION_MS)),
        len(ask_members(settings).members),
        found,
    )


def assess_bounds(
    session: int, transaction: int, members: int, brokers: Iterable[Mapping[str, str]]
) -> Finding:
    """Whether all brokers, by their settings, allow these time-outs (ms), and one member more.

    Any of them may be the coordinator.
    """
    least, longest, lasting, largest = set[int](), set[int](), set[int](), set[int]()
    bounds = {
        LEAST_SESSION: least,
        LONGEST_SESSION: longest,
        LONGEST_TRANSACTION: lasting,
        LARGEST_GROUP: largest,
    }
    for broker in brokers:
        for name, values in bounds.items():
            if broker.get(name, "").isdecimal():  # some clusters hide their settings
                values.add(int(broker[name]))
    if not all(bounds.values()):
        return Finding(Outcome.SKIPPED, "the brokers do not show their bounds")
    if transaction > min(lasting):
        most = f"{LONGEST_TRANSACTION} = {min(lasting)}"
        text = f"kafka.transaction_timeout_ms = {transaction} is more than {most}"
        return Finding(Outcome.FAIL, text, "Lower the one, or have the brokers allow more.")
    if not max(least) <= session <= min(longest):
        return Finding(
            Outcome.TROUBLE,
            f"kafka.session_timeout_ms = {session}: the brokers take {max(least)} to {min(longest)} "
            f"({LEAST_SESSION}, {LONGEST_SESSION}), and no bridge into the owner group",
            "Set one that they take.",
        )
    if members >= min(largest):
        text = f"the owner group is full: {members} of {min(largest)} members ({LARGEST_GROUP})"
        return Finding(Outcome.WARN, text, "A further bridge is refused.")
    return Finding(Outcome.OK, f"a session of {session} ms and transactions of {transaction} ms are allowed")


def _of_broker(client: AdminClient, broker: int) -> dict[str, str]:
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    with explained("reading the brokers' settings", client, "DescribeConfigs the cluster"):
        [future] = client.describe_configs([resource], request_timeout=admin.USER_SECONDS).values()
        return {name: str(entry.value) for name, entry in admin.result_of(future).items()}
