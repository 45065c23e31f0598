"""A broker with access control lists, for the tests that share it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge_sandbox import cluster
from tests.brokers import broker_with, creating_topics
from tests.harness import Bridge, Place
from tests.integration.rights import SOON_SECONDS

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    """A broker with access control lists; resources without one are free to all."""

    def change(properties: str) -> str:
        return "\n".join(
            [
                creating_topics(properties),
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found=true",
                "",
            ]
        )

    with broker_with(tmp_path_factory.mktemp("strict"), change) as running:
        yield running


@pytest.fixture
def guarded(strict: cluster.Cluster, tmp_path: Path) -> Iterator[Place]:
    """Topics of this test on that broker."""
    bridges: list[Bridge] = []
    yield Place(strict, f"r{next(_numbers)}", tmp_path, bridges, patience=SOON_SECONDS)
    for bridge in bridges:
        bridge.kill()
