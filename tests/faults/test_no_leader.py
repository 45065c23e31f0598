"""A partition without a leader: what Kafka acknowledged stays (decision 0036), and the doctor names it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bridge.config import KafkaSettings, Settings, TopicsSettings
from bridge.kafka import admin
from bridge.kafka.batch import Batch, Record
from bridge.ownership.batch_writer import BatchWriter
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge_sandbox import cluster as dev
from tests.faults.skipped_markers import BROKER, NONE, await_leader
from tests.harness import Place
from tests.unit.kafka.fake_producer import Owner

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("three brokers")]

BETS, CHECKPOINTS = "p.bets", "p.checkpoints"
SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dev.Cluster]:
    """Three brokers; one of them alone has the bets."""
    with dev.start(tmp_path_factory.mktemp("three"), brokers=3, kafka_port=0, registry_port=0) as running:
        client = AdminClient({"bootstrap.servers": running.bootstrap_servers, "log_level": 0})
        topics = [
            NewTopic(BETS, 1, replica_assignment=[[3]], config={"min.insync.replicas": "1"}),
            NewTopic(CHECKPOINTS, 1, 3),
        ]
        for made in client.create_topics(topics).values():
            made.result(SECONDS)
        yield running


class Member(Owner):
    """An owner of the feed that does something before each commit, once all records are delivered."""

    def __init__(self, cluster: dev.Cluster) -> None:
        super().__init__()
        self.before: list[Callable[[], None]] = []
        properties = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "owner", "log_level": 0}
        self._consumer = Consumer(properties)

    def offsets(self) -> tuple[list[Any], Any]:
        if self.before:
            self.before.pop(0)()
        return [], self._consumer.consumer_group_metadata()


def visible(place: Place, topic: str) -> list[bytes]:
    """What readers see, to the last stable offset."""
    return [message.value() or b"" for message in place.read(topic.removeprefix("p."))]


def fails() -> None:
    """Kafka wants the transaction to be aborted."""
    raise KafkaException(KafkaError(KafkaError._STATE, "on purpose", txn_requires_abort=True))


def batch(*values: bytes) -> Batch:
    made = Batch()
    for value in values:
        made.add(Record(BETS, b"bet", value, 1_790_000_000_000, [("a", b"header")]))
    return made


@pytest.mark.parametrize("is_known", [True, False])
def test_what_was_acknowledged_is_written_again_if_an_abort_discards_it(
    cluster: dev.Cluster, tmp_path: Path, is_known: bool
) -> None:
    place = Place(cluster, "p", tmp_path)
    before = visible(place, BETS)
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=cluster.bootstrap_servers), topics=TopicsSettings(prefix="p")
    )
    client, member = place.admin(), Member(cluster)
    committed = lambda *_, **__: next(reversed(visible(place, CHECKPOINTS)), None)  # noqa: E731
    guard = LostRecordGuard(settings, [BETS] if is_known else [])
    writer = BatchWriter(settings, member, committed, lambda _: None, guard)  # type: ignore[arg-type]
    number = 10 * is_known

    def commit(*values: bytes) -> None:
        nonlocal number
        number += 1
        checkpoint = Record(CHECKPOINTS, b"f", b"checkpoint %d" % number, 1_790_000_000_000, partition=0)
        writer.run(lambda: writer.commit(batch(*values), lambda _: checkpoint, check_generation=True)).result(
            SECONDS
        )

    def lose_the_leader() -> None:
        cluster.servers[BROKER].stop(kill=True)
        await_leader(client, {NONE}, BETS)

    try:
        writer.run(writer.open).result(SECONDS)
        commit(b"first")
        guard.note_stable({BETS: admin.end_offsets(client, BETS, 1, visible=True)})
        commit(b"second")
        member.before = [lose_the_leader]
        commit(b"third, acknowledged", b"fourth, acknowledged")
        cluster.restart(BROKER)
        await_leader(client, {3}, BETS)
        assert visible(place, BETS) == [*before, b"first", b"second"]
        member.before = [fails]
        commit(b"fifth")
    finally:
        writer.close()
    kept = [b"third, acknowledged", b"fourth, acknowledged"] if is_known else []
    assert visible(place, BETS) == [*before, b"first", b"second", *kept, b"fifth"]


def test_the_doctor_names_the_partition_and_who_can_lead_it(cluster: dev.Cluster, tmp_path: Path) -> None:
    place = Place(cluster, "p", tmp_path)
    client = place.admin()
    await_leader(client, {3}, BETS)
    cluster.servers[BROKER].stop(kill=True)
    try:
        await_leader(client, {NONE}, BETS)
        found = {one["check"]: one for one in json.loads(place.run("doctor", "--json").stdout)}
    finally:
        cluster.restart(BROKER)
    assert found["topics"]["outcome"] != "ok"
    assert found["replicas"]["outcome"] == "trouble", found["replicas"]
    assert "p.bets partition 0 has no leader: only broker 3 (does not answer)" in found["replicas"]["message"]
