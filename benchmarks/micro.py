"""Each step of the path alone, so that a regression names its step, beside something that does the same.

The figures are CPU time of this process, in microseconds a message.
"""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson
from confluent_kafka import Producer
from fastavro import parse_schema, schemaless_writer
from websockets.asyncio.client import connect

from benchmarks import sink
from benchmarks.arena import Arena, Lane
from benchmarks.figures import figure
from benchmarks.messages import Block
from benchmarks.models import Message
from benchmarks.rounds import Line, Options, Result, divided, measured
from bridge import clock
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, KafkaSettings
from bridge.dedup.deduplicator import Deduplicator, fingerprint
from bridge.feed import client, protocol
from bridge.kafka import clients
from bridge.messages.converter import Converter
from bridge.messages.model import SettledBetModel
from bridge.messages.parser import MessageParser
from bridge.messages.transcoder_plan import make_transcoder

MESSAGES = 50_000
PASSES = 20
"""How often a step without I/O is applied to 1,000 messages."""

Known = dict[bytes, tuple[int, bytes]]
Step = Callable[[], float]
"""Runs once and returns the CPU time of a message, in microseconds."""
Ways = dict[str, Step]
"""A step as the bridge does it, and as something else does it."""


class Record(NamedTuple):
    """The record of a message."""

    key: bytes
    version: int
    value: bytes


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each step."""
    with arena.lane() as lane, lane.feed("--messages", MESSAGES) as (_, url):
        parser, codec = MessageParser(), Codec(load("settled-bet"), READ_ONLY)
        bodies = Block().bodies()
        bets = [bet for body in bodies if (bet := parser.parse(body).bet) is not None]
        records = [Record(bet["betId"].encode(), bet["settlementVersion"], codec.encode(bet)) for bet in bets]
        steps: dict[str, Ways] = {
            **_converting(bodies, bets, parser, codec),
            "deduplicate": {
                "bridge": partial(_passes, partial(_deduplicated, Deduplicator(), records)),
                "dict": partial(_passes, partial(_remembered, {}, records)),
            },
            "receive": _receiving(url),
            "produce": _producing(lane, [record.value for record in records]),
        }
        found = {
            step: measured(step, list(ways), options.rounds, partial(_once, ways))
            for step, ways in steps.items()
        }
    for step, costs in found.items():
        yield {
            "bench": "micro",
            "step": step,
            "rounds": options.rounds,
            **{f"{name}_us": figure(cost["us"] for cost in costs[name]).as_json() for name in costs},
            **{
                f"ratio_{name}": divided(costs[name], costs["bridge"], "us")
                for name in costs
                if name != "bridge"
            },
        }


def _once(ways: Ways, name: str) -> Result:
    return {"us": ways[name]()}


def _converting(
    bodies: list[bytes], bets: list[SettledBetModel], parser: MessageParser, codec: Codec
) -> dict[str, Ways]:
    """Return the steps from bytes to bytes: the parts, and the whole."""
    schema = parse_schema(sink.schema())
    convert = Converter(parser, codec, make_transcoder(codec, parser.zeros)).convert
    by_pydantic = Converter(parser, codec).convert
    dumps = [model.data.model_dump() for model in map(Message.model_validate_json, bodies) if model.data]
    unknown = Block(unknown_field=True).bodies()
    return {
        "parse": {"bridge": each(bodies, orjson.loads), "json": each(bodies, json.loads)},
        "validate": {
            "bridge": each(bodies, parser.parse),
            "pydantic": each(bodies, lambda body: Message.model_validate_json(body).model_dump()),
        },
        "encode": {
            "bridge": each(bets, codec.encode),
            "fastavro": each(dumps, lambda datum: schemaless_writer(io.BytesIO(), schema, datum)),
        },
        "convert": {
            "bridge": each(bodies, convert),
            "pydantic": each(bodies, by_pydantic),
            "floor": each(bodies, lambda body: _floor(body, schema)),
        },
        "convert, unknown field": {
            "bridge": each(unknown, convert),
            "pydantic": each(unknown, by_pydantic),
        },
    }


def each(inputs: Sequence[Any], call: Callable[[Any], object]) -> Step:
    """Return a step that calls a function with each of the inputs."""

    def once(_: int) -> int:
        for value in inputs:
            call(value)
        return len(inputs)

    return partial(_passes, once)


def _passes(once: Callable[[int], int]) -> float:
    began, done = time.process_time(), 0
    for number in range(PASSES):
        done += once(number)
    return (time.process_time() - began) * 1e6 / done


def _floor(body: bytes, schema: Any) -> bytes:
    """Convert as `benchmarks.floor` does."""
    bet, out = Message.model_validate_json(body).data, io.BytesIO()
    assert bet is not None
    schemaless_writer(out, schema, bet.model_dump())
    return out.getvalue()


def _deduplicated(deduplicator: Deduplicator, records: list[Record], number: int) -> int:
    """Judge and publish bets that the deduplicator does not know: each pass has other betIds."""
    prefix, now = b"%d-%d-" % (time.monotonic_ns(), number), time.time()
    for key, version, value in records:
        content = fingerprint(value)
        deduplicator.judge(prefix + key, version, content, lambda _: None, replaying=True)
        deduplicator.publish(prefix + key, version, content, now)
    return len(records)


def _remembered(known: Known, records: list[Record], number: int) -> int:
    """Remember version and hash in a dict."""
    prefix = b"%d-%d-" % (time.monotonic_ns(), number)
    for key, version, value in records:
        content = fingerprint(value)
        if prefix + key not in known:
            known[prefix + key] = version, content
    return len(records)


def _receiving(url: str) -> Ways:
    """Return the ways to receive, on a real socket from a server in another process."""
    settings = FeedSettings(base_url=url, proxy="none")
    return {"bridge": lambda: asyncio.run(_receive(settings)), "recv": lambda: asyncio.run(_recv(url))}


def _producing(lane: Lane, values: list[bytes]) -> Ways:
    """Return the ways to produce, to a real broker and with the commits."""
    servers = lane.arena.cluster.bootstrap_servers
    settings = KafkaSettings.model_validate({"bootstrap_servers": servers})
    producers = {
        "bridge": clients.producer(
            settings, transactional_id=f"{lane.prefix}.ours", max_record_bytes=1 << 20
        ),
        "bare": Producer(sink.properties(servers, f"{lane.prefix}.bare")),
    }
    for producer in producers.values():
        producer.init_transactions(sink.CALL_SECONDS)
    return {name: partial(_produced, producer, lane.bets, values) for name, producer in producers.items()}


async def _receive(settings: FeedSettings) -> float:
    awake = asyncio.Event()
    connection = await client.connect(settings, protocol.request(settings, 1), awake.set, clock.now)
    began, left = time.process_time(), MESSAGES
    while left > 0:
        await awake.wait()
        awake.clear()
        while left > 0 and (taken := connection.receive_many(1000)):
            left -= len(taken)
    used = time.process_time() - began
    await connection.disconnect()
    return used * 1e6 / MESSAGES


async def _recv(url: str) -> float:
    async with connect(f"{url}/", **sink.CONNECTING) as connection:
        began = time.process_time()
        for _ in range(MESSAGES):
            await connection.recv()
        used = time.process_time() - began
    return used * 1e6 / MESSAGES


def _produced(producer: Producer, topic: str, values: list[bytes]) -> float:
    began = time.process_time()
    for begin in range(0, MESSAGES, sink.BATCH):
        producer.begin_transaction()
        for number in range(begin, begin + sink.BATCH):
            sink.produce(producer, topic, b"%036d" % number, values[number % len(values)])
        producer.commit_transaction(sink.CALL_SECONDS)
    return (time.process_time() - began) * 1e6 / MESSAGES
