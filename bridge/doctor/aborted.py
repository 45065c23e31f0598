"""Tries one aborted record: some brokers take transactions, and show readers what was aborted."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from confluent_kafka import KafkaException, Message
from confluent_kafka.admin import AdminClient

from bridge.config import Settings
from bridge.doctor.finding import Finding, Verdict
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.blocking import destroy_in_background
from bridge.kafka.errors import explained
from bridge.kafka.reader import TopicScan
from bridge.records import topics

CALL_SECONDS = 8.0
"""Time-out of each call of the producer."""
KEPT = {"retention.ms": "3600000"}
"""Of a topic that may not be deleted."""


def check_aborted(settings: Settings) -> Finding:
    """Whether readers of committed records see an aborted one, in a topic made for that and deleted again."""
    client, stem = clients.admin(settings.kafka), f"{settings.topics.prefix}.doctor."
    there = admin.metadata(client, admin.USER_SECONDS).topics
    if left := sorted(name for name in there if name.startswith(stem)):
        why = "another doctor's, or left by one that was interrupted or may not delete it"
        return Finding(Verdict.SKIPPED, f"not tried: {left[0]} is there, {why}")
    topic = topics.DeclaredTopic(name := f"{stem}{uuid4().hex[:8]}", 1, KEPT)
    seen = list[Message]()
    try:
        create = topics.Change(topic, topics.Action.CREATE, "", KEPT)
        topics.apply(client, [create], replication_factor=settings.topics.replication_factor)
        try:
            _abort_a_record(settings, client, name)
            TopicScan(name, seen.append).read(settings)
        finally:
            with suppress(KafkaException, TimeoutError):  # without the right to
                admin.result_of(client.delete_topics([name])[name])
    except TopologyError as error:
        return Finding(Verdict.SKIPPED, f"not tried: {error}")
    if not seen:
        return Finding(Verdict.OK, "an aborted record is hidden from readers of committed ones")
    return Finding(
        Verdict.TROUBLE,
        f"readers of committed records see what was aborted, here in {name}: bets would be doubled",
        "Use another cluster: this one takes transactions, and does not keep what they promise.",
    )


def _abort_a_record(settings: Settings, client: AdminClient, topic: str) -> None:
    """Write a record and abort its transaction. Raises as `explained`."""
    producer = clients.producer(
        settings.kafka, transactional_id=topic, max_record_bytes=topics.max_record_bytes(settings.feed)
    )
    rights = f"Write the topic or the transactional id {topic}"
    try:
        with explained("trying an aborted record", client, rights):
            clients.warm_up(producer)
            producer.init_transactions(CALL_SECONDS)
            producer.begin_transaction()
            failed = list[KafkaException]()
            producer.produce(
                topic,
                b"aborted",
                on_delivery=lambda error, _: failed.append(KafkaException(error)) if error else None,
            )
            if producer.flush(CALL_SECONDS):
                raise TimeoutError
            for error in failed:
                raise error
            producer.abort_transaction(CALL_SECONDS)
    finally:
        destroy_in_background(producer)
