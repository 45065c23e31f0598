"""Shared by tests on real servers: a bridge as a process, and a reader of the topics."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count, groupby
from pathlib import Path
from typing import Any

import httpx2
from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from confluent_kafka.schema_registry import SchemaRegistryClient

from bridge_sandbox import cluster as dev
from bridge_sandbox.demo.verify import Tally, WriterSchema
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.processes import Forked, Process

PATIENCE = 180.0
"""Seconds after which something that should come about is taken not to."""
END_SECONDS = 60.0
"""From SIGTERM to the end of a bridge at most, on a busy machine."""
STALL_SECONDS = 20.0
"""After that long without an answer a client is replaced: it may have lost its brokers (decision 0009)."""
SKIPPED_SECONDS = 20.0
"""How long to wait for bets once the broker has ended a transaction without its markers."""
_SKIPPED = re.compile(
    r"for partitions \w*[(\[](.*)[)\]] while trying to send transaction markers .* likely deleted already"
)
"""What a broker's log says then, with the partitions."""
IN_VAIN = "not within "
"""How the failure of a wait begins."""


class Bridge:
    """A bridge command as a process, which dies with the test run."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process, self.log = process, log
        self._address: str | None = None
        self._lines: list[dict[str, Any]] = []
        self._read = 0
        """Bytes of the log that are in them."""
        self._reading = threading.Lock()

    def lines(self) -> list[dict[str, Any]]:
        """Its complete log lines: a reader can see the beginning of one that is being written."""
        with self._reading, self.log.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                if line.startswith(b"{"):
                    self._lines.append(json.loads(line))
            return self._lines.copy()

    def states(self) -> list[str]:
        """The states it has been in, in order, without repetitions for another reason."""
        return [state for state, _ in groupby(line["state"] for line in self.lines() if "state" in line)]

    async def reaches(self, state: str, times: int = 1) -> None:
        """Wait until it has been in a state, so often."""
        await until(lambda: self.states().count(state) >= times, f"{state}, {times} times", so_far=self.text)

    def dies_of_sigterm(self) -> bool:
        """Whether SIGTERM ends it at once: before it listens to signals, and behind its last line."""
        events = {line["event"] for line in self.lines()}
        return "starting" not in events or "stopped" in events

    def text(self) -> str:
        """Its complete stderr."""
        return self.log.read_text()

    def output(self) -> str:
        """Its complete stdout."""
        return _output(self.log).read_text()

    def address(self) -> str | None:
        """The address of its web port, once logged."""
        if self._address is None:
            served = (line for line in self.lines() if line["event"] == "health and metrics")
            self._address = next((line["address"] for line in served), None)
        return self._address

    async def get(self, path: str, seconds: float = PATIENCE) -> httpx2.Response:
        """Get a path from its web port, which has so many seconds to answer."""
        await until(lambda: self.address() is not None, "its address")
        async with httpx2.AsyncClient(trust_env=False, timeout=seconds) as client:
            return await client.get(f"{self._address}{path}")

    async def is_healthy(self, seconds: float) -> bool:
        """Whether /healthz answers within so many seconds; not before it has logged its address."""
        if self.address() is None:
            return False
        try:
            return (await self.get("/healthz", seconds)).status_code == HTTPStatus.OK
        except httpx2.HTTPError:
            return False

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, even while it is stopped."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    async def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit code. Raises TimeoutExpired, with its stderr."""
        try:
            return await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired as late:
            late.add_note(self.text())
            raise

    async def end(self) -> int:
        """SIGTERM; returns its exit code."""
        self.signal(signal.SIGTERM)
        return await self.wait(END_SECONDS)


@dataclass
class Place:
    """Topics under a unique prefix on a shared cluster."""

    cluster: dev.Cluster
    prefix: str
    directory: Path
    bridges: list[Bridge] = field(default_factory=list)
    start: Callable[[Sequence[str], Mapping[str, str], Path, Path], Process] = Forked
    """How a command becomes a process."""
    patience: float = PATIENCE
    """Seconds after which a command that is run to its end is taken to hang."""
    _numbers: Iterator[int] = field(default_factory=count)

    def below(self, name: str) -> Place:
        """Topics of their own whose prefix begins with this one's; its owner ends their bridges, too."""
        (directory := self.directory / f"of-{name}").mkdir()
        prefix = f"{self.prefix}.{name}"
        return Place(self.cluster, prefix, directory, self.bridges, patience=self.patience)

    def environment(self, **settings: str) -> dict[str, str]:
        """Settings as variables: `FEED__START="5m"`."""
        given = {f"BRIDGE_{name}": value for name, value in settings.items()}
        return {
            "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": self.cluster.bootstrap_servers,
            "BRIDGE_REGISTRY__URL": self.cluster.registry_url,
            "BRIDGE_TOPICS__PREFIX": self.prefix,
            "BRIDGE_KAFKA__HEARTBEAT_INTERVAL_MS": "500",
            "BRIDGE_KAFKA__SESSION_TIMEOUT_MS": "3000",
            "BRIDGE_FEED__START": "10m",
            "BRIDGE_WEB__PORT": "0",
            # One machine, one clock: what other processes have asked need not count for longer.
            "BRIDGE_FEED__MAX_CLOCK_SKEW_SECONDS": "4",
            **given,
        }

    def bridge(self, *arguments: str, **settings: str) -> Bridge:
        """Start a command; `bridge run` without arguments."""
        return self._start(("bridge", *(arguments or ("run",))), settings)

    async def live(self, provider: Simulator, **settings: str) -> Bridge:
        """Start `bridge run`, and wait until it is live."""
        bridge = self.bridge(FEED__BASE_URL=provider.url, **settings)
        await bridge.reaches("Live")
        return bridge

    def watched(self, turns: Path, **settings: str) -> Bridge:
        """Start `bridge run`, which writes its long turns to the file (see `tests.held`)."""
        return self._start(("tests.held", str(turns), "run"), settings)

    def freezing(self, patience: float, **settings: str) -> Bridge:
        """Start `bridge run` whose event loop stands still from SIGUSR1 on (see `tests.freezing`)."""
        return self._start(("tests.freezing", str(patience), "run"), settings)

    def signing(self, folder: Path, *arguments: str, **settings: str) -> Bridge:
        """Start a command whose tokens for Amazon MSK are those of `tests.signing`."""
        return self._start(("tests.signing", str(folder), *arguments), settings)

    def _start(self, command: tuple[str, ...], settings: Mapping[str, str]) -> Bridge:
        log = self.directory / f"bridge-{next(self._numbers)}.log"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BRIDGE_")}
        process = self.start(command, inherited | self.environment(**settings), _output(log), log)
        started = Bridge(process, log)
        self.bridges.append(started)
        return started

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. Raises TimeoutExpired."""
        bridge = self.bridge(*arguments, **settings)
        code = bridge.process.wait(self.patience)
        return subprocess.CompletedProcess(arguments, code, bridge.output(), bridge.text())

    async def ran(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, while a provider in this process answers. Raises TimeoutExpired."""
        return await asyncio.to_thread(self.run, *arguments, **settings)

    def admin(self) -> AdminClient:
        """An administration client of the cluster."""
        return AdminClient(self._properties())

    def make_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Make a topic of this place; return its whole name."""
        client, topic = self.admin(), f"{self.prefix}.{name}"  # a client must outlive its answers
        client.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))])[topic].result(30)
        return topic

    def delete_topic(self, name: str) -> str:
        """Delete a topic; return its whole name once no broker has it."""
        client, topic = self.admin(), f"{self.prefix}.{name}"
        client.delete_topics([topic])[topic].result(30)
        while topic in client.list_topics(timeout=10).topics:
            time.sleep(0.05)
        return topic

    def configure(self, name: str, **config: str) -> None:
        """Set properties of a topic; their names have underscores for dots."""
        given = {name.replace("_", "."): value for name, value in config.items()}
        client, topic = self.admin(), f"{self.prefix}.{name}"
        entries = [ConfigEntry(*one, incremental_operation=AlterConfigOpType.SET) for one in given.items()]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        client.incremental_alter_configs([resource])[resource].result(30)

    def delete_records(self, name: str, before: int = OFFSET_END, partitions: int | None = None) -> None:
        """Delete the first records of a topic, in its first partitions; by default all in all of them."""
        client, topic = self.admin(), f"{self.prefix}.{name}"
        count = partitions or len(client.list_topics(topic, timeout=10).topics[topic].partitions)
        places = [TopicPartition(topic, partition, before) for partition in range(count)]
        for deleted in client.delete_records(places).values():
            deleted.result(30)

    def producer(self, **properties: object) -> Producer:
        """A producer that chooses partitions as the bridge does."""
        given = {name.replace("_", "."): value for name, value in properties.items()}
        return Producer({**self._properties(), "partitioner": "murmur2_random", **given})

    def write(
        self, name: str, value: bytes | None, key: str | bytes, partition: int = -1, **more: Any
    ) -> None:
        """Write a record to a topic of this place."""
        producer = self.producer()
        producer.produce(f"{self.prefix}.{name}", value, key, partition, **more)
        assert producer.flush(30) == 0

    def open_transaction(self, name: str, **properties: object) -> Producer:
        """A producer with this name behind the prefix, and with an open transaction."""
        producer = self.producer(transactional_id=f"{self.prefix}.{name}", **properties)
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def _properties(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0}

    def read(
        self, topic: str, *, isolation: str = "read_committed", start: Mapping[int, int] | None = None
    ) -> list[Message]:
        """All visible records of a topic, in the form of `messages`."""
        return list(self.messages(topic, isolation=isolation, start=start))

    def messages(
        self,
        topic: str,
        *,
        isolation: str = "read_committed",
        start: Mapping[int, int] | None = None,
        ends: Mapping[int, int] | None = None,
    ) -> Iterator[Message]:
        """Each record of a topic, partition by partition; none when it is not there.

        From the offsets in `start` on; below those in `ends`, which it waits for, or as far as can be seen.
        """
        name, next_ = f"{self.prefix}.{topic}", dict(start or {})
        consumer = self.consumer(isolation)
        deadline, trouble, heard_at = time.monotonic() + PATIENCE, None, time.monotonic()
        try:
            while True:
                try:
                    topics = consumer.list_topics(timeout=10).topics
                    break
                except KafkaException:
                    assert time.monotonic() < deadline, f"{name}: no broker answers"
                    consumer.close()
                    consumer = self.consumer(isolation)
            open_ = set(topics[name].partitions) if name in topics else set()
            consumer.assign([TopicPartition(name, p, next_.get(p, 0)) for p in open_])
            while open_:
                assert time.monotonic() < deadline, f"{name} {open_} cannot be read to the end: {trouble}"
                if time.monotonic() > heard_at + STALL_SECONDS:
                    consumer.close()
                    consumer, heard_at = self.consumer(isolation), time.monotonic()
                    consumer.assign([TopicPartition(name, p, next_.get(p, 0)) for p in open_])
                # It waits for as many as it is asked for, also where the last ones are here already.
                for message in consumer.consume(1000, timeout=0.02):
                    heard_at = time.monotonic()
                    error, partition = message.error(), message.partition() or 0
                    offset = message.offset() or 0
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        trouble = error  # it may pass
                        continue
                    end = None if ends is None else ends[partition]
                    if error is None and (end is None or offset < end):
                        next_[partition] = offset + 1
                        yield message
                    if error is not None if end is None else offset >= end:
                        open_.discard(partition)
        finally:
            consumer.close()

    def consumer(self, isolation: str = "read_committed", **properties: object) -> Consumer:
        """A consumer that commits nothing, with these properties besides."""
        given = {name.replace("_", "."): value for name, value in properties.items()}
        return Consumer(
            {
                **self._properties(),
                "group.id": "test",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # where the first records were deleted
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,  # for so long the broker keeps the end of a partition to itself
                **given,
            }
        )

    def markers_skipped(self) -> set[tuple[str, int]]:
        """Where brokers have ended a transaction of this place without its markers: topics and partitions.

        Kafka 4.3.0 takes a partition that has no leader at that moment for deleted (decision 0036). The
        transaction counts as complete and stays open in its log: what comes behind it is hidden from every
        `read_committed` reader.
        """
        logs = [server.log for server in self.cluster.servers.values() if server.name.startswith("kafka")]
        found = (names for log in logs for names in _SKIPPED.findall(log.read_text(errors="replace")))
        places = (place.rpartition("-") for names in found for place in re.findall(r"[\w.-]+", names))
        return {(topic, int(number)) for topic, _, number in places if topic.startswith(f"{self.prefix}.")}

    def checkpoint(self) -> dict[str, Any]:
        """The output of `bridge checkpoint show --json`."""
        shown = self.run("checkpoint", "show", "--json")
        assert shown.returncode == 0, shown.stderr
        found: dict[str, Any] = json.loads(shown.stdout)
        return found

    def balanced_counters(self) -> dict[str, int]:
        """The committed counters; asserts that each message, redriven or not, is counted once."""
        counters: dict[str, int] = self.checkpoint()["counters"]
        ends = ("published", "duplicates", "stale", "deadLettered", "pings", "empty")
        assert counters["received"] + counters["redriven"] == sum(counters[name] for name in ends)
        return counters

    async def settled(self, provider: Simulator, bridge: Bridge) -> Tally:
        """End the stream, wait until everything is published, then compare it with the truth."""
        provider.stop_publishing()
        audit = Audit(self, provider)
        began = time.monotonic()
        while (tally := await asyncio.to_thread(audit.go_on)).missing:
            assert bridge.process.poll() is None, bridge.text()
            waited = time.monotonic() - began
            in_vain = waited > PATIENCE or (waited > SKIPPED_SECONDS and self.markers_skipped())
            told = f"{IN_VAIN}{waited:.0f} s: {tally.missing} of {tally.sent} bets"
            assert not in_vain, f"{told}\n{bridge.text()[-3000:]}"
            await asyncio.sleep(0.3)  # the broker and the bridge need the machine as well
        # What is doubled may still be on its way.
        await asyncio.sleep(0.5)
        return await asyncio.to_thread(Audit(self, provider).go_on)  # also what lies behind what was read


class Audit:
    """Compares the bets that a reader sees with those the provider published, field by field."""

    def __init__(self, place: Place, provider: Simulator) -> None:
        self._place, self._provider = place, provider
        self._truth = provider.truth()
        self._tally = Tally(self._fresh)
        self._reached: dict[int, int] = {}
        self._schemas: dict[int, WriterSchema] = {}

    def go_on(self) -> Tally:
        """Read the records added since the last call."""
        for message in self._place.read("bets", start=self._reached):
            value, partition, offset = message.value(), message.partition(), message.offset()
            assert value is not None
            assert partition is not None
            assert offset is not None
            self._reached[partition] = offset + 1
            schema = self._schema(int.from_bytes(value[1:5], "big"))
            datum = schema.read(value[5:])
            assert message.key() == datum["betId"].encode()
            self._tally.arrived((datum["betId"], datum["settlementVersion"]), datum, schema)
        self._tally.catch_up()
        return self._tally

    def _fresh(self) -> Iterator[tuple[float, bytes]]:
        for message in self._truth.until(self._provider.now()):
            if message.bet_id is not None:
                yield message.at, message.body

    def _schema(self, schema_id: int) -> WriterSchema:
        if schema_id not in self._schemas:
            with SchemaRegistryClient({"url": self._place.cluster.registry_url}) as registry:
                self._schemas[schema_id] = WriterSchema(registry.get_schema(schema_id).schema_str or "")
        return self._schemas[schema_id]


def simulate(**settings: Any) -> Simulator:
    """A simulated provider on a free port, with these settings."""
    return Simulator(SimulatorSettings.model_validate({"port": 0, "rate": 20, **settings}))


async def finished(run: Bridge) -> tuple[dict[str, Any], float]:
    """The output of a command, and its peak memory in megabytes.

    `getrusage` would count what its parent held when it was forked.
    """
    most = 0.0

    def has_ended() -> bool:
        nonlocal most
        status = Path(f"/proc/{run.process.pid}/status").read_text()
        if found := re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE):  # none once it has begun to end
            most = int(found[1]) / 1024
        return run.process.poll() is not None

    await until(has_ended, "the end of the run", 240)
    assert run.process.returncode == 0, run.text()
    return json.loads(run.output()), most


async def until(
    condition: Callable[[], bool],
    what: str,
    seconds: float = PATIENCE,
    so_far: Callable[[], str] = str,
    every: float = 0.1,
) -> None:
    """Wait for a condition; fails the test after the time limit, with `so_far` in the message.

    `every` is the time between two looks: what a look takes is taken from the bridge.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{IN_VAIN}{seconds:g} s: {what}\n{so_far()}"
        await asyncio.sleep(every)


def assert_exact(tally: Tally) -> None:
    """Assert that no bet was lost, duplicated or changed."""
    assert tally.sent > 0
    found = (tally.missing, tally.duplicates, tally.wrong)
    assert found == (0, 0, []), f"of {tally.sent} bets missing, duplicated and wrong: {found}"


def _output(log: Path) -> Path:
    return log.with_suffix(".out")
