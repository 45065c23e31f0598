"""The bridge as a user of Quix Streams would write it: a `Source` and its Avro serializer.

Runs in the environment of `benchmarks/requirements.txt`. A Source writes at least once: Quix Streams
has transactions for what a consumer reads, not for what a Source produces.
"""

from __future__ import annotations

import os

from confluent_kafka.serialization import MessageField, SerializationContext
from quixstreams import Application
from quixstreams.models.serializers.avro import AvroSerializer
from quixstreams.models.serializers.schema_registry import SchemaRegistryClientConfig
from quixstreams.sources import Source
from websockets.sync.client import connect

from benchmarks import sink
from benchmarks.models import Message


class SettlementFeed(Source):  # type: ignore[misc]  # untyped here: it is installed elsewhere
    """The provider's feed."""

    def run(self) -> None:
        """Called by Quix Streams in another process; a serializer with a registry cannot be sent there."""
        registry = SchemaRegistryClientConfig(url=os.environ["BRIDGE_REGISTRY__URL"])
        avro = AvroSerializer(sink.schema(), schema_registry_client_config=registry)
        context = SerializationContext(self.producer_topic.name, MessageField.VALUE)
        with connect(sink.feed_url(), **sink.CONNECTING) as connection:
            for body in connection:
                bet = Message.model_validate_json(body).data
                if bet is not None:
                    self.produce(key=bet.betId, value=avro(bet.model_dump(), context))


def main() -> None:
    app = Application(
        os.environ["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"],
        auto_create_topics=False,
        producer_extra_config={"enable.idempotence": True, "acks": "all", "partitioner": "murmur2_random"},
        loglevel="WARNING",
    )
    topic = app.topic(sink.topic("bets"), key_serializer="str", value_serializer="bytes")
    app.add_source(SettlementFeed("settlement-feed"), topic)
    app.run()


if __name__ == "__main__":
    main()
