"""The settings of the embedded brokers and registry."""

from __future__ import annotations

import base64

import pytest

from bridge_sandbox.cluster import servers
from bridge_sandbox.cluster.ports import Listener

LISTENERS = [Listener(9092, 20001), Listener(9093, 20002), Listener(9094, 20003)]


def properties(node: int, brokers: int) -> dict[str, str]:
    lines = servers.server_properties(node, LISTENERS[:brokers]).splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2")])
def test_internal_topics_are_as_safe_as_the_cluster_allows(brokers: int, replicas: str, in_sync: str) -> None:
    found = properties(1, brokers)
    assert found["offsets.topic.replication.factor"] == replicas
    assert found["transaction.state.log.replication.factor"] == replicas
    assert found["transaction.state.log.min.isr"] == in_sync


def test_every_broker_names_every_controller() -> None:
    voters = "1@127.0.0.1:20001,2@127.0.0.1:20002,3@127.0.0.1:20003"
    assert [properties(node, 3)["controller.quorum.voters"] for node in (1, 2, 3)] == [voters] * 3


def test_a_broker_listens_on_its_own_ports_on_loopback_only() -> None:
    """Nothing of an embedded broker is reachable from another machine.

    Its paths are relative: Kafka reads the file as Latin 1 and splits log.dirs at commas.
    """
    found = properties(2, 3)
    assert (found["log.dirs"], found["auto.create.topics.enable"]) == ("data", "false")
    assert found["node.id"] == "2"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:20002"


def test_what_has_timed_out_is_ended_soon() -> None:
    found = properties(1, 1)
    assert int(found["transaction.abort.timed.out.transaction.cleanup.interval.ms"]) <= 1_000
    assert 5 * int(found["broker.heartbeat.interval.ms"]) < int(found["broker.session.timeout.ms"]) < 10_000


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
