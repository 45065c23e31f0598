"""One Kafka and one registry for all contenders of a run, with separate topics for each.

All contenders write to topics that `bridge topics apply` has created. The last stable offsets of the topic of
bets, which move with each commit, show from outside when everything is committed, for all in the same way.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.process import PATIENCE, ROOT, BenchmarkFailed, Program, python, running, usage
from bridge.kafka import admin
from bridge_sandbox import cluster as dev
from bridge_sandbox.cluster.process import Server

PARTITIONS = 6
_POLL_SECONDS = 0.04
_QUIET_SECONDS = 0.5
"""After this time without a commit the records are counted: they may be complete."""
_STUCK_SECONDS = 60.0
"""After this time without a commit, none will follow."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A contender at one time: monotonic seconds, offsets committed, and CPU and memory used so far."""

    at: float
    committed: int
    cpu: float
    rss: float
    peak: float


@dataclass
class Lane:
    """The topics of one contender in one round, under a separate prefix."""

    arena: Arena
    prefix: str
    directory: Path
    partitions: int
    settings: dict[str, str]
    """Settings of the bridge beyond those of every lane, as in `environment`."""

    @property
    def bets(self) -> str:
        """The topic of bets."""
        return f"{self.prefix}.bets"

    def environment(self, **settings: object) -> dict[str, str]:
        """Settings of `bridge run`, which the other contenders read too. `FEED__START="5m"` changes one."""
        return {
            "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": self.arena.cluster.bootstrap_servers,
            "BRIDGE_REGISTRY__URL": self.arena.cluster.registry_url,
            "BRIDGE_TOPICS__PREFIX": self.prefix,
            "BRIDGE_TOPICS__PARTITIONS": str(self.partitions),
            "BRIDGE_FEED__START": "71h",
            "BRIDGE_FEED__PROXY": "none",
            "BRIDGE_WEB__PORT": "0",
            # The server of messages has no limits, so no round has to wait for them.
            "BRIDGE_LIMITS__LARGE_CONNECTIONS": "1000",
            "BRIDGE_LIMITS__PROPER_CONNECTIONS": "1000",
            **{f"BRIDGE_{name}": str(value) for name, value in (self.settings | settings).items()},
        }

    @contextmanager
    def feed(self, *arguments: object) -> Iterator[tuple[Program, str]]:
        """Start a server of messages; yields it and its address."""
        with running("feed", python("benchmarks.server", *arguments), {}, self.directory) as server:
            yield server, f"ws://127.0.0.1:{server.told('listening')}"

    @contextmanager
    def names(self, *options: object) -> Iterator[tuple[Program, dict[str, str]]]:
        """Start a provider of names; yields it, and the settings of a job that asks it."""
        token = self.directory / "provider.token"
        command = python("bridge", "simulate", "--port", 0, "--api-token-file", token, *options)
        with running("provider", command, {}, self.directory) as provider:
            provider.wait_until(lambda: "provider at " in provider.text(), "does not listen")
            url = provider.text().split("provider at ")[1].split()[0]
            asking = {"API__REQUESTS_PER_SECOND": 1000, "API__TIMEOUT_SECONDS": 600, "API__PROXY": "none"}
            yield provider, self.environment(API__BASE_URL=url, API__TOKEN_FILE=token, **asking)

    def committed(self) -> int:
        """Return the sum of the last stable offsets, which counts records and transaction markers."""
        return self.arena.stable(self.bets)

    def watch(self, program: Program, records: int, look: Callable[[Sample], None]) -> Sample:
        """Take samples of a contender until this many records are committed; returns the sample of the last.

        Raises BenchmarkFailed if it ends before, or publishes fewer or more.
        """
        last = self._sample(program, 0)
        while True:
            time.sleep(_POLL_SECONDS)
            sample = self._sample(program, self.committed())
            look(sample)
            if sample.committed > last.committed:
                last = sample
                continue
            quiet = sample.at - last.at
            if quiet > _QUIET_SECONDS and last.committed >= records and (found := self.count()) >= records:
                break
            if quiet > _STUCK_SECONDS:
                raise BenchmarkFailed(f"{program.name}: {self.count()} of {records}\n{program.log_tail()}")
        if found != records:
            raise BenchmarkFailed(f"{program.name} has published {found} records of {records} messages")
        return last

    def count(self) -> int:
        """Return the number of records that a `read_committed` reader finds in the topic of bets."""
        return sum(1 for _ in self.arena.read(self.bets))

    def counters(self) -> dict[str, int]:
        """Return the counters of the bridge's committed checkpoint."""
        shown: dict[str, int] = json.loads(self.command("checkpoint", "show", "--json"))["counters"]
        return shown

    def command(self, *arguments: str) -> str:
        """Run a command of the bridge and return its output. Raises BenchmarkFailed if it fails."""
        done = subprocess.run(
            python("bridge", *arguments),
            env=self.environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise BenchmarkFailed(f"bridge {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _sample(self, program: Program, committed: int) -> Sample:
        used = usage(program.pid)
        return Sample(time.monotonic(), committed, used.cpu, used.rss, used.peak)


@dataclass
class Arena:
    """A Kafka and a registry that last for all rounds."""

    cluster: dev.Cluster
    directory: Path
    _admin: AdminClient = field(init=False)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _known: dict[str, list[TopicPartition]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})

    @contextmanager
    def lane(self, partitions: int = PARTITIONS, **settings: str) -> Iterator[Lane]:
        """Create topics as the bridge needs them, and delete them at the end of the block."""
        prefix = f"bench{next(self._numbers)}"
        directory = self.directory / prefix
        directory.mkdir()
        lane = Lane(self, prefix, directory, partitions, settings)
        before = self._topics()
        with ThreadPoolExecutor() as pool:  # both take a second, mostly to start
            applied = pool.submit(lane.command, "topics", "apply")
            lane.command("schemas", "register")
            applied.result()
        try:
            yield lane
        finally:
            for future in self._admin.delete_topics(sorted(self._topics() - before)).values():
                future.result()

    def brokers(self) -> list[Server]:
        """Return the processes of the brokers."""
        return [server for name, server in self.cluster.servers.items() if name != "registry"]

    def broker_cpu(self) -> float:
        """Return the CPU seconds that all brokers have used."""
        return sum(usage(server.identity.pid).cpu for server in self.brokers() if server.identity)

    def create(self, topic: NewTopic) -> None:
        """Create a topic beside the bridge's; a lane deletes it at its end."""
        for future in self._admin.create_topics([topic]).values():
            future.result()

    def stable(self, topic: str) -> int:
        """Return the sum of a topic's last stable offsets."""
        asked = dict.fromkeys(self._partitions(topic), admin.LATEST)
        found = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
        return sum(future.result().offset for future in found.values())

    def read(self, topic: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and value of all records that are committed."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": "bench",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.max.bytes": 16 * 1024 * 1024,
                "queued.max.messages.kbytes": 16 * 1024,
                "log_level": 0,
            }
        )
        partitions = self._partitions(topic)
        consumer.assign([TopicPartition(topic, p.partition, 0) for p in partitions])
        left = len(partitions)
        try:
            while left:
                for message in consumer.consume(5000, timeout=0.1):
                    error = message.error()
                    if error is None:
                        key, value = message.key(), message.value()
                        assert isinstance(key, bytes)
                        assert isinstance(value, bytes)
                        yield key, value
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left -= 1
        finally:
            consumer.close()

    def _topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=10).topics)

    def _partitions(self, topic: str) -> list[TopicPartition]:
        if topic not in self._known:
            found = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
            self._known[topic] = [TopicPartition(topic, p) for p in found]
        return self._known[topic]


@contextmanager
def opened(directory: Path, progress: Callable[[str], None], brokers: int = 1) -> Iterator[Arena]:
    """Start an arena in an empty directory. Raises DevError if Kafka or the registry does not start."""
    with dev.start(
        directory / "cluster", brokers=brokers, kafka_port=0, registry_port=0, progress=progress
    ) as cluster:
        yield Arena(cluster, directory)
