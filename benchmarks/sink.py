"""What the contenders written here share: Kafka's settings, as durable as the bridge's, and the schema id."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

BATCH = 5_000
"""Records in a transaction, as `BRIDGE_BATCH__MAX_RECORDS` by default."""
AGE_SECONDS = 0.02
"""How old a transaction gets when it is not full, as `BRIDGE_BATCH__MAX_AGE_MS`."""
CALL_SECONDS = 30.0
_SCHEMA = "settled-bet.avsc"


def feed_url() -> str:
    """The feed, as the interface names it."""
    return f"{os.environ['BRIDGE_FEED__BASE_URL']}/feed/settlement/v4?revision=1"


CONNECTING: dict[str, Any] = {"compression": None, "max_size": None, "proxy": None, "ping_interval": None}
"""How websockets connects to a feed of `benchmarks.server`, which reads nothing while it sends: no pings."""


def topic(name: str) -> str:
    """A topic by its name without the prefix."""
    return f"{os.environ['BRIDGE_TOPICS__PREFIX']}.{name}"


def schema() -> dict[str, Any]:
    """The schema of settled bets, as its file has it."""
    read: dict[str, Any] = json.loads((files("bridge") / "schemas" / _SCHEMA).read_text("utf-8"))
    return read


def header() -> bytes:
    """The first five bytes of every record in wire format; registers the schema where it is new."""
    with SchemaRegistryClient({"url": os.environ["BRIDGE_REGISTRY__URL"]}) as registry:
        number: int = registry.register_schema(f"{topic('bets')}-value", Schema(json.dumps(schema()), "AVRO"))
    return b"\0" + number.to_bytes(4, "big")


def properties(bootstrap_servers: str, transactional_id: str, **more: Any) -> dict[str, Any]:
    """Of a transactional producer: idempotent, all replicas, partitions as Java does."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "transactional.id": transactional_id,
        "acks": "all",
        "partitioner": "murmur2_random",
        "linger.ms": 2,
        "queue.buffering.max.kbytes": 131_072,
        "log_level": 0,
        **more,
    }


LIVE: dict[str, Any] = {"linger.ms": 0, "retry.backoff.ms": 5}
"""What makes a transactional producer quick while little comes: the bridge's own, found by searching."""


def transactional(**more: Any) -> Producer:
    """A producer that is ready for its first transaction."""
    servers = os.environ["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"]
    producer = Producer(properties(servers, topic("bench"), **more))
    producer.init_transactions(CALL_SECONDS)
    return producer


def produce(producer: Producer, name: str, key: bytes, value: bytes) -> None:
    """Hand over a record, and wait while the client's queue is full."""
    while True:
        try:
            producer.produce(name, value, key)
            return
        except BufferError:
            producer.poll(0.05)
