"""The demo: embedded Kafka and registry, the simulated provider, the bridge as a process of its own.

A `read_committed` consumer reads what arrives and holds it against what was sent. At the end the
provider stops publishing, what is under way arrives, and the count is drawn.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient

from bridge.errors import BridgeError
from bridge.sandbox import cluster as dev
from bridge.sandbox.cluster.process import Server
from bridge.sandbox.demo.display import Board, Display
from bridge.sandbox.demo.tally import Tally
from bridge.sandbox.demo.verify import WriterSchema
from bridge.sandbox.provider.rest.settings import RestPolicy
from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from bridge.sandbox.provider.world.entities import Sizes

PREFIX = "demo"
PARTITIONS = 6
EVENTS = 300
"""Fewer than a provider has, so that all of them are named within seconds."""
REQUESTS = 200
"""A second, for names."""
KILLED_SCALE = 100.0
"""With kills, time in the provider's limits runs so many times faster, on both sides alike."""
SETTLE_SECONDS = 60.0
"""How long after the end what is under way may take to arrive."""
START_SECONDS = 60.0
TICK_SECONDS = 0.05


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `seconds=None` goes on until Ctrl-C."""

    seconds: float | None = None
    kills: int = 0
    rate: float = 200.0
    seed: int = 1
    odd: float = 0.0
    """Share of messages that hardly anybody expects: `SimulatorSettings.odd`."""
    kafka_port: int | None = None
    registry_port: int | None = None
    provider_port: int = 8900


def run(options: Options) -> dict[str, int | None]:
    """Run the demo; returns the figures of its last line.

    Raises DevError when Kafka does not start, BridgeError when the bridge does not.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up, as Ctrl-C does, from here on
    board = Board()
    display = Display(board)
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-demo-") as directory:
        cluster = dev.start(
            Path(directory),
            kafka_port=options.kafka_port,
            registry_port=options.registry_port,
            progress=display.say,
        )
        with cluster:
            try:
                return asyncio.run(_demonstrate(options, cluster, Path(directory), board, display))
            finally:
                # Once more: the event loop has put its own away.
                signal.signal(signal.SIGTERM, signal.default_int_handler)


async def _demonstrate(
    options: Options, cluster: dev.Cluster, directory: Path, board: Board, display: Display
) -> dict[str, int | None]:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    scale = KILLED_SCALE if options.kills else 1.0
    simulated = SimulatorSettings(
        port=options.provider_port,
        seed=options.seed,
        rate=options.rate,
        odd=options.odd,
        limits_scale=scale,
        sizes=Sizes(events=EVENTS),
        api=RestPolicy(rate=2 * REQUESTS, burst=REQUESTS),
    )
    async with Simulator(simulated) as provider:
        display.say(f"provider at {provider.url}, Kafka at {cluster.bootstrap_servers}")
        bridge = _bridge(cluster, provider.url, directory, scale)
        names = _names(cluster, provider, directory)
        tally = Tally(_fresh(provider))
        reader = Reader(cluster, tally, board)
        bridge.start()
        names.start()
        try:
            await reader.begin(bridge, names)
            with display:
                await _play(options, stop, bridge, names, reader, display)
                provider.stop_publishing()
                tally.catch_up()
                # On a slow machine the first names may need longer than a short demo lasts.
                await _until(lambda: not tally.missing and bool(board.names), reader, display, SETTLE_SECONDS)
        finally:
            await asyncio.to_thread(names.stop)
            await asyncio.to_thread(bridge.stop)
        await _until(lambda: board.state == "Stopped", reader, display, 2.0)
        reader.close()
    for problem in tally.wrong[:20]:
        display.say(f"wrong: {problem}")
    if breaches := len(provider.breaches):
        display.say(f"limits of the provider broken: {breaches}")
    return {
        "sent": tally.sent,
        "received": reader.received,
        "published": tally.published,
        "duplicates": tally.duplicates,
        "lost": tally.missing + len(tally.wrong),
        "deadlettered": board.deadlettered,
        "names": len(board.names),
        "revision": board.revision,
    }


async def _play(
    options: Options, stop: asyncio.Event, bridge: Server, names: Server, reader: Reader, display: Display
) -> None:
    """Let it run for the time asked for, and kill the bridge now and then if that was asked for."""
    began = time.monotonic()
    duration = options.seconds if options.seconds is not None else float("inf")
    kills = [duration * (n + 1) / (options.kills + 1) for n in range(options.kills)]
    while not stop.is_set() and time.monotonic() - began < duration:
        if kills and time.monotonic() - began >= kills[0]:
            kills.pop(0)
            await asyncio.to_thread(bridge.stop, kill=True)
            bridge.start()
            reader.board.kills += 1
        for server in (bridge, names):
            if not server.is_alive():
                raise BridgeError(f"{server.name} has ended by itself:\n{server.log_tail()}")
        await _tick(reader, display)


async def _until(done: Callable[[], bool], reader: Reader, display: Display, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        await _tick(reader, display)


async def _tick(reader: Reader, display: Display) -> None:
    await asyncio.to_thread(reader.poll)
    display.tick()
    await asyncio.sleep(TICK_SECONDS)


def _fresh(provider: Simulator) -> Callable[[], Iterator[Any]]:
    truth = provider.truth()

    def fresh() -> Iterator[Any]:
        while truth.due <= provider.now():
            yield truth.take()

    return fresh


def _bridge(cluster: dev.Cluster, provider_url: str, directory: Path, scale: float) -> Server:
    environment = {
        "BRIDGE_FEED__BASE_URL": provider_url,
        # The provider publishes from its first moment on, which is before the bridge can dial.
        "BRIDGE_FEED__START": "5m",
        "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "BRIDGE_REGISTRY__URL": cluster.registry_url,
        "BRIDGE_TOPICS__PREFIX": PREFIX,
        "BRIDGE_TOPICS__PARTITIONS": str(PARTITIONS),
        "BRIDGE_LIMITS__SCALE": str(scale),
        "BRIDGE_WEB__PORT": "0",
    }
    if scale > 1:
        # One machine, one clock: what the killed one has asked need not count for longer.
        environment["BRIDGE_FEED__MAX_CLOCK_SKEW_SECONDS"] = "1.5"
        # A killed owner keeps its place in the group for one session.
        environment["BRIDGE_KAFKA__SESSION_TIMEOUT_MS"] = "2000"
        environment["BRIDGE_KAFKA__HEARTBEAT_INTERVAL_MS"] = "500"
    command = [sys.executable, "-m", "bridge", "run"]
    return Server("bridge run", command, directory, directory / "bridge.log", environment)


def _names(cluster: dev.Cluster, provider: Simulator, directory: Path) -> Server:
    """The job that publishes the translations, again and again: bets go on mentioning what is new."""
    token = directory / "token"
    token.write_text(provider.rest.tokens.mint(provider.clock()), "utf-8")
    environment = {
        "BRIDGE_API__BASE_URL": provider.url,
        "BRIDGE_API__TOKEN_FILE": str(token),
        "BRIDGE_API__REQUESTS_PER_SECOND": str(REQUESTS),
        "BRIDGE_API__LANGUAGES": orjson.dumps(provider.rest.policy.languages).decode(),
        "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "BRIDGE_REGISTRY__URL": cluster.registry_url,
        "BRIDGE_TOPICS__PREFIX": PREFIX,
        "BRIDGE_TOPICS__PARTITIONS": str(PARTITIONS),
        "BRIDGE_WEB__PORT": "0",
    }
    command = [sys.executable, "-m", "bridge", "translations", "--every", "2s"]
    return Server("bridge translations", command, directory, directory / "translations.log", environment)


class Reader:
    """Reads the topics as any consumer would, `read_committed`, and feeds tally and board."""

    def __init__(self, cluster: dev.Cluster, tally: Tally, board: Board) -> None:
        self.board = board
        self.received = 0
        self._tally = tally
        self._registry = SchemaRegistryClient({"url": cluster.registry_url})
        self._schemas: dict[int, WriterSchema] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "demo",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            },
            logger=logging.getLogger("librdkafka"),
        )

    async def begin(self, *servers: Server) -> None:
        """Wait for the servers to create the topics, then read them all from their beginning."""
        deadline = time.monotonic() + START_SECONDS
        wanted = {f"{PREFIX}.{name}" for name in ("bets", "checkpoints", "deadletters", "translations")}
        while True:
            topics = (await asyncio.to_thread(self._consumer.list_topics, timeout=5)).topics
            if wanted <= topics.keys():
                break
            for server in servers:
                if not server.is_alive() or time.monotonic() > deadline:
                    raise BridgeError(f"{server.name} did not start:\n{server.log_tail()}")
            await asyncio.sleep(TICK_SECONDS)
        self._consumer.assign(
            [TopicPartition(name, p, 0) for name in sorted(wanted) for p in topics[name].partitions]
        )

    def poll(self) -> None:
        """Take what has become visible."""
        for message in self._consumer.consume(num_messages=1000, timeout=0.05):
            error = message.error()
            if error is None:
                self._take(message)
            elif error.code() != KafkaError._PARTITION_EOF and error.fatal():
                raise BridgeError(f"the demo's reader failed: {error.str()}")
        self._tally.catch_up()
        self.board.sent, self.board.published = self._tally.sent, self._tally.published
        self.board.duplicates, self.board.wrong = self._tally.duplicates, len(self._tally.wrong)

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()
        self._registry.close()

    def _take(self, message: Message) -> None:
        topic, value = message.topic() or "", message.value() or b""
        if topic.endswith(".translations"):
            key = (message.key() or b"").decode()
            self.board.names.take(key, self._decode(value)[1] if value else None)
            return
        if topic.endswith(".deadletters"):
            self.board.deadlettered += 1
            self._tally.buried(value)
            return
        schema, datum = self._decode(value)
        if topic.endswith(".checkpoints"):
            self.board.state, self.board.revision = datum["state"], datum["revision"]
            counters = datum["counters"]
            self.received = counters["received"] - counters["pings"] - counters["empty"]
        else:
            at = self._tally.arrived((datum["betId"], datum["settlementVersion"]), datum, schema)
            self.board.arrived(datum, None if at is None else time.time() - at)

    def _decode(self, value: bytes) -> tuple[WriterSchema, dict[str, Any]]:
        schema_id = int.from_bytes(value[1:5], "big")
        if schema_id not in self._schemas:
            text = self._registry.get_schema(schema_id).schema_str or ""
            self._schemas[schema_id] = WriterSchema(text)
        schema = self._schemas[schema_id]
        return schema, schema.read(value[5:])
