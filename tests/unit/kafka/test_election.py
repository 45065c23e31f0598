"""What a look at the owner group makes of Kafka's answer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bridge.kafka.election import as_group
from bridge.kafka.group import Group, Member

# As a broker gave them. What an assignor adds behind the partitions names the topic, too.
ASSIGNED = b"\0\0\0\0\0\1\0\3one\0\0\0\1\0\0\0\0\0\0\0\x15\0\0\0\1\0\3one\0\0\0\1\0\0\0\0\0\0\0\1"
NOTHING = b"\0\0\0\0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("state", "joining"),
    [("Stable", False), ("PreparingRebalance", True), ("CompletingRebalance", False), ("Empty", False)],
)
def test_a_group_is_read_as_a_broker_describes_it(state: str, joining: bool) -> None:
    """With who holds the partition; one that has only just joined has no assignment at all."""
    members = [
        SimpleNamespace(id=name, client_id=name.upper(), client_host="/10.0.0.1", assignment=assignment)
        for name, assignment in (("a", ASSIGNED), ("b", NOTHING), ("c", b""))
    ]
    assert as_group(SimpleNamespace(state=state, members=members), "one") == Group(
        (
            Member("a", "A", "10.0.0.1", True),
            Member("b", "B", "10.0.0.1", False),
            Member("c", "C", "10.0.0.1", False),
        ),
        joining,
    )
