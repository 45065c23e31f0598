"""What becomes of a topic while it is read, by what brokers answer."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from bridge.clock import Instant
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.topic_watch import LOOK_SECONDS, TopicWatch

CLIENT: Any = None


class Broker:
    """Answers, or does not; each question is asked later than the last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked, self.answers = 0.0, 0, True
        monkeypatch.setattr(admin, "topic_id", self._topic_id)
        monkeypatch.setattr(admin, "partition_count", lambda *_: 1)

    def clock(self) -> Instant:
        return Instant(self.now, self.now)

    def _topic_id(self, *_: Any) -> str:
        self.asked += 1
        self.now += 3.0
        if not self.answers:
            raise KafkaUnavailable("on purpose")
        return "an id"


def test_a_broker_that_answers_nothing_matters_only_where_nothing_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, watch = Broker(monkeypatch), TopicWatch(follows=False)
    watch.begin(CLIENT, "t", broker.clock)
    broker.answers = False
    for offset in (1, 2):
        broker.now += LOOK_SECONDS
        assert watch.changed(CLIENT, "t", [TopicPartition("t", 0, offset)], broker.clock) is None
    broker.now += LOOK_SECONDS
    with pytest.raises(KafkaUnavailable):
        watch.changed(CLIENT, "t", [TopicPartition("t", 0, 2)], broker.clock)
    # A client that is new reads for a while before it is asked again.
    assert watch.changed(CLIENT, "t", [TopicPartition("t", 0, 2)], broker.clock) is None
    assert broker.asked == 4
