"""Kafka acknowledges a commit and never writes its markers (decision 0036).

`python -m tests.faults.skipped_markers` starts three brokers and shows it: a partition has no leader while
the coordinator completes a transaction, which then stays open in that partition.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bridge.kafka import admin
from bridge_sandbox.cluster import Cluster, start

TOPIC, BROKER = "t", "kafka-3"
NONE = -1
"""The leader of a partition whose replicas are all away."""
SECONDS = 60.0


def await_leader(client: AdminClient, wanted: set[int], topic: str = TOPIC) -> None:
    """Wait until the topic's only partition is led by one of these."""
    deadline = time.monotonic() + SECONDS

    def leader() -> int | None:
        found = client.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        return found[0].leader if found else None  # a broker that has just started may know no partition

    while leader() not in wanted:
        assert time.monotonic() < deadline, "the leader has not changed"
        time.sleep(0.2)


def committed(cluster: Cluster) -> tuple[int, int]:
    """Commit a record while its partition has no leader.

    Returns the high watermark and the last stable offset once the partition has its leader again.
    """
    servers = cluster.bootstrap_servers
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    topic = NewTopic(TOPIC, 1, replica_assignment=[[3]], config={"min.insync.replicas": "1"})
    client.create_topics([topic])[TOPIC].result(SECONDS)
    await_leader(client, {3})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(TOPIC, b"one")
    assert producer.flush(SECONDS) == 0
    cluster.servers[BROKER].stop(kill=True)
    await_leader(client, {NONE})
    producer.commit_transaction(SECONDS)  # raises unless it is acknowledged
    cluster.restart(BROKER)
    await_leader(client, {3})
    time.sleep(10)  # far more than the markers of a sound cluster take
    [high_watermark] = admin.end_offsets(client, TOPIC, 1)
    [last_stable] = admin.end_offsets(client, TOPIC, 1, visible=True)
    return high_watermark, last_stable


def main() -> None:
    """Show it."""
    with (
        tempfile.TemporaryDirectory() as data,
        start(Path(data), brokers=3, kafka_port=0, registry_port=0) as cluster,
    ):
        high_watermark, last_stable = committed(cluster)
        print("the commit was acknowledged")
        print(f"high watermark {high_watermark}, last stable offset {last_stable}")
        lines = [
            line for log in Path(data).glob("kafka-*.log") for line in log.read_text("utf-8").splitlines()
        ]
        print(*(line for line in lines if "likely deleted already" in line), sep="\n")
        sys.exit(last_stable == high_watermark)


if __name__ == "__main__":
    main()
