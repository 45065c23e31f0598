"""One right on Kafka that is denied, and what a program must say then."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.harness import IN_VAIN, PATIENCE, Place

SOON_SECONDS = 30.0
"""From the moment a right is needed to the end of the program at most, on a busy machine."""
EVERYBODY = "User:ANONYMOUS"
TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE = AclOperation.READ, AclOperation.WRITE
DESCRIBE, CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS
_WORDS = {
    TOPIC: "topic",
    GROUP: "group",
    ID: "transactional id",
    READ: "Read",
    WRITE: "Write",
    DESCRIBE: "Describe",
    CONFIGS: "DescribeConfigs",
}


class Right(NamedTuple):
    """A right on what has this name behind the prefix."""

    operation: AclOperation
    kind: ResourceType
    name: str

    def words(self, prefix: str) -> str:
        """As an error names it."""
        return f"{_WORDS[self.operation]} the {_WORDS[self.kind]} {prefix}.{self.name}"


def rule(place: Place, right: Right, permission: AclPermissionType, user: str = EVERYBODY) -> AclBinding:
    """An access control list of a single resource of the place."""
    name = f"{place.prefix}.{right.name}"
    literal = ResourcePatternType.LITERAL
    return AclBinding(right.kind, name, literal, user, "*", right.operation, permission)


def add(place: Place, rules: Sequence[AclBinding]) -> None:
    """Have the broker heed these."""
    client = place.admin()  # which must outlive its answers
    for added in client.create_acls(list(rules)).values():
        added.result(20)
    _await(client, rules[-1], there=True)


def _await(client: AdminClient, last: AclBinding, *, there: bool) -> None:
    """Wait until the broker knows of a change, and so of those before it: the controller has answered."""
    deadline = time.monotonic() + PATIENCE
    while bool(client.describe_acls(_only(last)).result(20)) != there:
        assert time.monotonic() < deadline, f"{IN_VAIN}{PATIENCE:g} s: {last}"
        time.sleep(0.02)


def _only(one: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        one.restype,
        one.name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )


@contextmanager
def denied(place: Place, *rights: Right) -> Iterator[None]:
    """Deny everybody these rights; all others on the resources stay."""
    rules = [
        one
        for right in dict.fromkeys(rights)
        for one in (
            rule(place, right._replace(operation=AclOperation.ALL), AclPermissionType.ALLOW),
            rule(place, right, AclPermissionType.DENY),
        )
    ]
    add(place, rules)
    try:
        yield
    finally:
        client = place.admin()
        for removed in client.delete_acls([_only(one) for one in rules]).values():
            removed.result(20)
        _await(client, rules[-1], there=False)


def assert_names(text: str, right: str) -> None:
    """Assert that an error names a right, perhaps among others: Kafka does not say which topic it means.

    A consumer that lacks Describe lacks Read, too, which has it.
    """
    what, _, resource = right.rpartition(" ")
    named = text.partition("no right to ")[2].partition("; grant it")[0].split(" or to ")
    told = what, what.replace("Describe", "Read")
    assert [one for one in named if one.startswith(told) and resource in one.split()], text
    assert "Traceback" not in text
