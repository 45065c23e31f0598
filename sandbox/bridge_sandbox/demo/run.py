"""The demo: embedded Kafka and registry, the simulated provider, the bridge as a separate process.

A `read_committed` consumer compares what arrives with what was sent. At the end the provider stops
publishing, the messages in flight arrive, and the figures are printed.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient

from bridge.errors import BridgeError
from bridge_sandbox.cluster import Cluster, start_now, ticking
from bridge_sandbox.cluster.process import Server
from bridge_sandbox.demo.display import Board, say
from bridge_sandbox.demo.verify import Tally, WriterSchema
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes

PREFIX = "demo"
PARTITIONS = 6
EVENTS = 60
"""Few enough for all names to be published within seconds, on a busy machine too."""
REQUESTS = 200
"""Requests a second for names."""
KILLED_SCALE = 100.0
"""With kills, time in the limits runs this many times faster, for the provider and the bridge."""
SETTLE_SECONDS = 60.0
"""Limit for the messages in flight to arrive after the end."""
START_SECONDS = 60.0
TICK_SECONDS = 0.05


def run(
    simulated: SimulatorSettings,
    seconds: float,
    kills: int,
    pythons: Sequence[str] = (sys.executable,),
    kafka_port: int | None = None,
    registry_port: int | None = None,
) -> dict[str, int | None]:
    """Run the demo for `seconds`; infinity runs until Ctrl-C. Returns the figures of its last line.

    The bridges of `pythons` take turns at each kill. Raises DevError when Kafka does not start, BridgeError
    when the bridge does not.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # from here on it cleans up, as Ctrl-C does
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-demo-") as name:
        directory = Path(name)
        with start_now(
            directory, kafka_port=kafka_port, registry_port=registry_port, progress=say
        ) as cluster:
            try:
                return asyncio.run(_demonstrate(simulated, seconds, kills, pythons, cluster, directory))
            finally:
                # Again, because the event loop has removed its own handler.
                signal.signal(signal.SIGTERM, signal.default_int_handler)


async def _demonstrate(
    simulated: SimulatorSettings,
    seconds: float,
    kills: int,
    pythons: Sequence[str],
    cluster: Cluster,
    directory: Path,
) -> dict[str, int | None]:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    choices = {
        "limits_scale": KILLED_SCALE if kills else 1.0,
        "sizes": Sizes(events=EVENTS),
        "api": RestPolicy(rate=2 * REQUESTS, burst=REQUESTS),
    }
    async with Simulator(simulated.model_copy(update=choices)) as provider:
        say(f"provider at {provider.url}, Kafka at {cluster.bootstrap_servers}")
        truth = provider.truth()
        board = Board(tally := Tally(lambda: ((m.at, m.body) for m in truth.until(provider.now()))))
        bridges, names = _servers(cluster, provider, directory, pythons)
        bridge = bridges[0]
        with closing(TopicReader(cluster, board)) as reader:
            try:
                bridge.start()
                names.start()
                with ticking(say):
                    await reader.begin(bridge, names)
                with board.shown():
                    bridge = await _play(seconds, kills, stop, bridges, names, reader)
                    provider.stop_publishing()
                    tally.catch_up()
                    # On a slow machine the first names may take longer than a short demo.
                    await _watch(reader, lambda: not tally.missing and board.has_names(), SETTLE_SECONDS)
            finally:
                await asyncio.to_thread(names.stop)
                await asyncio.to_thread(bridge.stop)
            await _watch(reader, lambda: board.state == "Stopped", 2.0)
    for problem in tally.wrong[:20]:
        say(f"wrong: {problem}")
    if breaches := len(provider.breaches):
        say(f"limits of the provider broken: {breaches}")
    return {
        "sent": tally.sent,
        "received": board.received,
        "published": tally.published,
        "duplicates": tally.duplicates,
        "lost": tally.missing + len(tally.wrong),
        "deadlettered": board.deadlettered,
        "names": len(board.names),
        "revision": board.revision,
    }


async def _play(
    seconds: float,
    kills: int,
    stop: asyncio.Event,
    bridges: Sequence[Server],
    names: Server,
    reader: TopicReader,
) -> Server:
    """Run for `seconds` and kill the bridge `kills` times at even intervals. Returns the one that runs."""
    bridge = bridges[0]

    def ended() -> bool:
        for server in (bridge, names):
            if not server.is_alive():
                raise BridgeError(f"{server.name} ended unexpectedly:\n{server.log_tail()}")
        return stop.is_set()

    for stretch in range(kills + 1):
        if stretch and not stop.is_set():
            await asyncio.to_thread(bridge.stop, kill=True)
            bridge = bridges[stretch % len(bridges)]
            bridge.start()
            reader.board.kills += 1
        await _watch(reader, ended, seconds / (kills + 1))
    return bridge


async def _watch(reader: TopicReader, done: Callable[[], bool], seconds: float) -> None:
    """Read the topics and show what came until `done`, for at most `seconds`."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        await asyncio.to_thread(reader.poll)
        reader.board.tick()
        await asyncio.sleep(TICK_SECONDS)


def _servers(
    cluster: Cluster, provider: Simulator, directory: Path, pythons: Sequence[str]
) -> tuple[list[Server], Server]:
    """The bridge of each Python, and the job that publishes translations again and again, with new names."""
    token = directory / "token"
    scale = provider.settings.limits_scale
    token.write_text(provider.rest.tokens.mint(provider.clock()), "utf-8")
    environment = {
        "BRIDGE_FEED__BASE_URL": provider.url,
        # The provider publishes from its first moment on, before the bridge can connect.
        "BRIDGE_FEED__START": "5m",
        "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "BRIDGE_REGISTRY__URL": cluster.registry_url,
        "BRIDGE_TOPICS__PREFIX": PREFIX,
        "BRIDGE_TOPICS__PARTITIONS": str(PARTITIONS),
        "BRIDGE_LIMITS__SCALE": str(scale),
        "BRIDGE_API__BASE_URL": provider.url,
        "BRIDGE_API__TOKEN_FILE": str(token),
        "BRIDGE_API__REQUESTS_PER_SECOND": str(REQUESTS),
        "BRIDGE_API__LANGUAGES": orjson.dumps(provider.rest.policy.languages).decode(),
        "BRIDGE_WEB__PORT": "0",
    }
    if scale > 1:
        # On one machine with one clock, the recovery of a killed bridge needs no larger margin.
        environment["BRIDGE_FEED__MAX_CLOCK_SKEW_SECONDS"] = "1.5"
        # A killed owner keeps its place in the group for one session.
        environment["BRIDGE_KAFKA__SESSION_TIMEOUT_MS"] = "2000"
        environment["BRIDGE_KAFKA__HEARTBEAT_INTERVAL_MS"] = "500"

    def server(command: str, *options: str, python: str = sys.executable) -> Server:
        line = [python, "-m", "bridge", command, *options]
        return Server(f"bridge {command}", line, directory, directory / f"{command}.log", environment)

    return [server("run", python=python) for python in pythons], server("translations", "--every", "2s")


class TopicReader:
    """Reads the topics with `read_committed`, as any consumer would, and updates the board."""

    def __init__(self, cluster: Cluster, board: Board) -> None:
        self.board = board
        self._registry = SchemaRegistryClient({"url": cluster.registry_url})
        self._parsed = cache(WriterSchema)
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
        """Wait for the servers to create the topics, then read all of them from the beginning."""
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
        """Read the records that have become visible."""
        for message in self._consumer.consume(num_messages=1000, timeout=0.05):
            error = message.error()
            if error is None:
                self._take(message)
            elif error.code() != KafkaError._PARTITION_EOF and error.fatal():
                raise BridgeError(f"the demo's consumer failed: {error.str()}")
        self.board.tally.catch_up()

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
            if message.value() is not None:  # not the mark of a redrive
                self.board.deadlettered += 1
                self.board.tally.dead_letter(value)
            return
        schema, datum = self._decode(value)
        if topic.endswith(".checkpoints"):
            self.board.state, self.board.revision = datum["state"], datum["revision"]
            counters = datum["counters"]
            self.board.received = counters["received"] - counters["pings"] - counters["empty"]
        else:
            at = self.board.tally.arrived((datum["betId"], datum["settlementVersion"]), datum, schema)
            self.board.lag = None if at is None else time.time() - at
            self.board.bets.append(datum)

    def _decode(self, value: bytes) -> tuple[WriterSchema, dict[str, Any]]:
        registered = self._registry.get_schema(int.from_bytes(value[1:5], "big"))
        schema = self._parsed(registered.schema_str or "")
        return schema, schema.read(value[5:])
