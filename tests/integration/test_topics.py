"""Topics on a real Kafka: which one is meant by a name, and how they have to be set."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bridge import kafka
from tests.harness import Place


def make(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)


def test_a_topic_that_is_made_anew_has_another_id(place: Place) -> None:
    """And none while it is not there; no broker is no answer."""
    admin, topic = place.admin(), f"{place.prefix}.anew"
    assert kafka.topic_id(admin, topic) is None
    make(admin, topic)
    first = kafka.topic_id(admin, topic)
    assert first
    assert kafka.topic_id(admin, topic) == first
    admin.delete_topics([topic])[topic].result(30)
    assert kafka.topic_id(admin, topic) is None
    make(admin, topic)
    assert kafka.topic_id(admin, topic) not in (first, None)
    with pytest.raises(kafka.KafkaUnavailable, match=f"^looking for {topic}: no broker answered"):
        kafka.topic_id(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}), topic)
