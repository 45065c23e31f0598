"""Where contenders meet: one Kafka and one registry for a whole run, topics of their own for each.

All of them write to topics that `bridge topics apply` has made. When everything of a contender is
committed is read off from outside, for all of them alike: by the last stable offsets of the topic of
bets, which move when a transaction is committed.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from confluent_kafka import Consumer, IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.process import PATIENCE, ROOT, BenchmarkFailed, Program, python, running, usage
from bridge.kafka import admin
from bridge.sandbox import cluster as dev

PARTITIONS = 6
_POLL_SECONDS = 0.04
_LIVE_AFTER_PINGS_SECONDS = 1.0
"""No transaction takes so long: when nothing has been committed for that time, it may be all."""
_LONGEST_LIVE_AFTER_PINGS_SECONDS = 60.0
"""So long without any commit means that none will come."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A look at a contender: when (monotonic seconds), what is committed, what it has used so far."""

    at: float
    committed: int
    cpu: float
    rss: float
    peak: float


@dataclass
class Lane:
    """The topics of one contender in one round, under a prefix of their own."""

    arena: Arena
    prefix: str
    directory: Path
    partitions: int

    @property
    def bets(self) -> str:
        """The topic that counts."""
        return f"{self.prefix}.bets"

    def environment(self, **settings: object) -> dict[str, str]:
        """What `bridge run` is told; the other contenders read the same names. `FEED__START="5m"`."""
        return {
            "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": self.arena.cluster.bootstrap_servers,
            "BRIDGE_REGISTRY__URL": self.arena.cluster.registry_url,
            "BRIDGE_TOPICS__PREFIX": self.prefix,
            "BRIDGE_TOPICS__PARTITIONS": str(self.partitions),
            "BRIDGE_FEED__START": "71h",
            "BRIDGE_FEED__PROXY": "none",
            "BRIDGE_WEB__PORT": "0",
            # A round may be one of many, and none has to wait for the limits of a provider that has none.
            "BRIDGE_LIMITS__LARGE_CONNECTIONS": "1000",
            "BRIDGE_LIMITS__PROPER_CONNECTIONS": "1000",
            **{f"BRIDGE_{name}": str(value) for name, value in settings.items()},
        }

    @contextmanager
    def feed(self, *arguments: object) -> Iterator[tuple[Program, str]]:
        """A server of messages, and its address."""
        with running("feed", python("benchmarks.server", *arguments), {}, self.directory) as server:
            yield server, f"ws://127.0.0.1:{server.told('listening')}"

    def committed(self) -> int:
        """The sum of the last stable offsets: records and the markers of transactions."""
        return self.arena.stable(self.bets)

    def watch(self, program: Program, records: int, look: Callable[[Sample], None]) -> Sample:
        """Look at a contender until so many records are committed; returns the look that saw the last.

        Raises BenchmarkFailed when it ends before, or does not get there.
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
            if (
                quiet > _LIVE_AFTER_PINGS_SECONDS
                and last.committed >= records
                and (found := self.count()) >= records
            ):
                break
            if quiet > _LONGEST_LIVE_AFTER_PINGS_SECONDS:
                raise BenchmarkFailed(f"{program.name}: {self.count()} of {records}\n{program.log_tail()}")
        if found != records:
            raise BenchmarkFailed(f"{program.name} has published {found} records of {records} messages")
        return last

    def count(self) -> int:
        """How many records a `read_committed` reader finds in the topic of bets."""
        return sum(1 for _ in self.arena.read(self.bets))

    def counters(self) -> dict[str, int]:
        """Those of the bridge's committed checkpoint."""
        shown: dict[str, int] = json.loads(self.command("checkpoint", "show", "--json"))["counters"]
        return shown

    def command(self, *arguments: str) -> str:
        """What a command of the bridge prints. Raises BenchmarkFailed when it fails."""
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
    def lane(self, partitions: int = PARTITIONS) -> Iterator[Lane]:
        """Topics as the bridge makes them, until the end of the block."""
        prefix = f"bench{next(self._numbers)}"
        directory = self.directory / prefix
        directory.mkdir()
        lane = Lane(self, prefix, directory, partitions)
        before = self._topics()
        lane.command("topics", "apply")
        lane.command("schemas", "register")
        try:
            yield lane
        finally:
            for future in self._admin.delete_topics(sorted(self._topics() - before)).values():
                future.result()

    def stable(self, topic: str) -> int:
        """The sum of a topic's last stable offsets."""
        asked = dict.fromkeys(self._partitions(topic), admin.LATEST)
        found = self._admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
        return sum(future.result().offset for future in found.values())

    def read(self, topic: str) -> Iterator[bytes]:
        """The keys of all records that are committed by now."""
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
                for message in consumer.consume(5000, timeout=1):
                    error = message.error()
                    if error is None:
                        key = message.key()
                        assert isinstance(key, bytes)
                        yield key
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
def opened(directory: Path, progress: Callable[[str], None]) -> Iterator[Arena]:
    """An arena in an empty directory. Raises DevError when Kafka or the registry does not start."""
    with dev.start(directory / "cluster", kafka_port=0, registry_port=0, progress=progress) as cluster:
        yield Arena(cluster, directory)
