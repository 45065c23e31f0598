"""The settings of the embedded brokers and registry."""

from __future__ import annotations

import base64

from bridge_sandbox.cluster import servers
from bridge_sandbox.cluster.ports import Listener

LISTENERS = [Listener(9092, 20001), Listener(9093, 20002), Listener(9094, 20003)]


def test_a_broker_listens_on_its_own_ports_on_loopback_only() -> None:
    """Nothing of an embedded broker is reachable from another machine.

    Its paths are relative: Kafka reads the file as Latin 1 and splits log.dirs at commas.
    """
    lines = servers.server_properties(2, LISTENERS).splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert (found["log.dirs"], found["auto.create.topics.enable"]) == ("data", "false")
    assert found["node.id"] == "2"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:20002"


def test_the_registry_listens_on_loopback_only_and_keeps_its_schemas() -> None:
    found = servers.registry_environment(8080)
    assert found["QUARKUS_HTTP_HOST"] == found["QUARKUS_MANAGEMENT_HOST"] == "127.0.0.1"
    assert found["QUARKUS_MANAGEMENT_PORT"] == "0"
    assert found["APICURIO_DATASOURCE_URL"].startswith("jdbc:h2:file:./")
    assert "WRITE_DELAY=0" in found["APICURIO_DATASOURCE_URL"]


def test_a_cluster_id_never_looks_like_an_option() -> None:
    for made in (servers.new_cluster_id() for _ in range(2_000)):
        assert len(base64.urlsafe_b64decode(made + "==")) == 16
        assert not made.startswith("-")
