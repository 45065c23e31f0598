"""A broker with other settings than those of the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge_sandbox import cluster
from bridge_sandbox.cluster import downloads, servers
from bridge_sandbox.cluster.ports import Listener


@contextmanager
def broker_with(
    directory: Path, change: Callable[[str], str] = str, version: str = ""
) -> Iterator[cluster.Cluster]:
    """Run a broker and a registry in the block; `change` turns the broker's properties into others.

    A broker of another version is started without an AOT cache, since that of one start would pay for none.
    """
    ordinary = servers.server_properties

    def properties(node: int, listeners: Sequence[Listener]) -> str:
        return change(ordinary(node, listeners))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "server_properties", properties)
        if version:
            patch.setattr(downloads, "KAFKA", kafka(version))
            patch.setattr("bridge_sandbox.cluster.cluster.prepare", downloads.obtain)
        running = cluster.start(directory, kafka_port=0, registry_port=0)
    with running:
        yield running
        running.close(grace=0)


def kafka(version: str) -> tuple[str, str]:
    """The coordinates of a broker of this version, and of its logging."""
    return f"org.apache.kafka:kafka_2.13:{version}", downloads.KAFKA[1]


def creating_topics(properties: str) -> str:
    """Have brokers create the topics that clients ask for, as Kafka's do by default."""
    assert "auto.create.topics.enable=false" in properties
    return properties.replace("auto.create.topics.enable=false", "auto.create.topics.enable=true")
