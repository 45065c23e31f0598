"""aiokafka with fastavro."""

import asyncio
import io
import json
import os
import sys
from functools import cache
from urllib.request import urlopen

import fastavro
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from fastavro.read import LOGICAL_READERS

SERVERS = os.environ["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"]


# page
LOGICAL_READERS["long-timestamp-micros"] = lambda micros, *_: micros  # without: no year before 1


@cache
def schema(number):
    with urlopen(f"{os.environ['BRIDGE_REGISTRY__URL']}/schemas/ids/{number}") as answer:
        return fastavro.parse_schema(json.loads(json.load(answer)["schema"]))


def decode(value):
    return value and fastavro.schemaless_reader(io.BytesIO(value[5:]), schema(int.from_bytes(value[1:5])))


async def read():
    consumer = AIOKafkaConsumer(
        "settlement.bets",
        bootstrap_servers=SERVERS,
        group_id="payouts",
        auto_offset_reset="earliest",
        isolation_level="read_committed",  # without: aborted bets, too
    )
    await consumer.start()
    async for record in consumer:
        bet = decode(record.value)
        print(json.dumps({"key": record.key.decode(), "value": bet}, default=str), flush=True)


# /page
async def produce(keys):
    async with AIOKafkaProducer(bootstrap_servers=SERVERS) as producer:
        for key in keys:
            await producer.send_and_wait("keys", key=key.encode())


asyncio.run(produce(sys.argv[1:]) if sys.argv[1:] else read())
