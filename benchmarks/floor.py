"""The floor: the bridge that a competent engineer writes in an afternoon, exactly once, with fastavro.

`async for` over a websockets connection, pydantic models, `model_dump`, fastavro's writer. A second
task puts what there is after 20 ms, 5,000 records at most, into a transaction with a checkpoint, and
commits it on a thread while the first goes on converting. It has no deduplicator, no limit and no dead
letter: it does less than the bridge.
"""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Producer
from fastavro import parse_schema, schemaless_writer
from websockets.asyncio.client import connect

from benchmarks import sink
from benchmarks.models import Message


class Record(NamedTuple):
    """A bet on its way to Kafka."""

    key: bytes
    value: bytes
    settled_at: float


async def convert(records: asyncio.Queue[Record]) -> None:
    """Read the feed to its end."""
    schema, header = parse_schema(sink.schema()), sink.header()
    async with connect(sink.feed_url(), **sink.CONNECTING) as connection:
        async for body in connection:
            bet = Message.model_validate_json(body).data
            if bet is not None:
                out = io.BytesIO()
                out.write(header)
                schemaless_writer(out, schema, bet.model_dump())
                await records.put(Record(bet.betId.encode(), out.getvalue(), bet.settlementTime.timestamp()))


async def commit(records: asyncio.Queue[Record], producer: Producer) -> None:
    """Write what comes, a transaction after the other, each with the position that it reaches."""
    bets, checkpoints = sink.topic("bets"), sink.topic("checkpoints")
    revision = 0.0
    while True:
        batch = [await records.get()]
        await asyncio.sleep(sink.AGE_SECONDS)
        with suppress(asyncio.QueueEmpty):
            while len(batch) < sink.BATCH:
                batch.append(records.get_nowait())
        producer.begin_transaction()
        for record in batch:
            sink.produce(producer, bets, record.key, record.value)
        revision = max(revision, *(record.settled_at for record in batch), 0.0)
        sink.produce(producer, checkpoints, b"floor", json.dumps({"revision": revision}).encode())
        await asyncio.to_thread(producer.commit_transaction, sink.CALL_SECONDS)


async def main() -> None:
    records: asyncio.Queue[Record] = asyncio.Queue(2 * sink.BATCH)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(commit(records, sink.transactional()))
        tasks.create_task(convert(records))


if __name__ == "__main__":
    asyncio.run(main())
