"""confluent-kafka, its AvroDeserializer on fastavro."""

# page
import json
import os
import sys

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from fastavro.read import LOGICAL_READERS

LOGICAL_READERS["long-timestamp-micros"] = lambda micros, *_: micros  # without: no year before 1
servers = {"bootstrap.servers": os.environ["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"]}
decode = AvroDeserializer(SchemaRegistryClient({"url": os.environ["BRIDGE_REGISTRY__URL"]}))
# /page
from confluent_kafka import Producer  # noqa: E402  # not needed by who only reads

if keys := sys.argv[1:]:
    settings = {
        "partitioner": "murmur2_random",  # without: CRC32
    }
    producer = Producer(servers | settings)
    for key in keys:
        producer.produce("keys", key=key)
    producer.flush()
    sys.exit()
# page
consumer = Consumer(servers | {"group.id": "payouts", "auto.offset.reset": "earliest"})
consumer.subscribe(["settlement.bets"])
try:
    while True:
        record = consumer.poll(1.0)
        if record is not None and record.error():
            print(record.error(), file=sys.stderr)
        elif record is not None:
            bet = decode(record.value(), SerializationContext(record.topic(), MessageField.VALUE))
            print(json.dumps({"key": record.key().decode(), "value": bet}, default=str), flush=True)
except KeyboardInterrupt:
    consumer.close()
# /page
