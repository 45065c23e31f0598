"""Faults after which a name means something else, or less: topics, their partitions, schema ids; and a quota.

What they do is done by an operator, or by the tool of one: it is tried again until the brokers take it.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, ClassVar, Self, TypeVar
from urllib.request import Request, urlopen

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from bridge_sandbox.cluster.servers import REGISTRY_DATABASE
from tests.harness import until
from tests.judge.run import TOPICS
from tests.judge.topics import Record, Topics
from tests.storm.cluster import REGISTRY
from tests.storm.faults import Fault
from tests.storm.scene import OWNER, Scene

T = TypeVar("T")
_KAFKA_SECONDS = 10
_TOOL_SECONDS, _COPY_SECONDS = 60, 180
_LEAST, _MOST = 20_000, 500_000
"""Bytes a second, of each broker: the least is less than what the provider sends."""
_READ_SECONDS = 12.0
"""By then bridges that were started have read the topics."""
_MIRROR = "mirror"
"""The client.id of what copies topics."""
_FORGOTTEN_SECONDS = 40.0
"""After so long no limit of the provider counts any more what a lost topic of checkpoints knew."""


@dataclass(frozen=True)
class Quota(Fault):
    """Each broker takes so many bytes a second from a client, no more, while it catches up with a surge."""

    bytes_per_second: int
    weight = 2
    most: ClassVar[int] = 3
    shortest, longest = 5.0, 45.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(round(_LEAST * math.pow(_MOST / _LEAST, random.random())))

    async def begin(self, scene: Scene, key: str) -> bool:
        scene.quotas[key] = self.bytes_per_second
        await _set_quota(scene)
        await scene.control("surge", seconds=1)
        await asyncio.sleep(1)
        await scene.control("drop")
        return True

    async def end(self, scene: Scene, key: str) -> None:
        del scene.quotas[key]
        await _set_quota(scene)


async def _set_quota(scene: Scene) -> None:
    """Let the lowest quota of all that last hold, for every client but a mirror."""
    name, tool = "producer_byte_rate", [*scene.configs_tool, "--bootstrap-server", scene.bootstrap_servers]
    alter = [*tool, "--alter", "--entity-type", "clients"]
    async with scene.quota_is_set:
        lowest = f"{name}={min(scene.quotas.values(), default=0)}"
        what = ["--add-config", lowest] if scene.quotas else ["--delete-config", name]
        for whom in (
            ["--entity-name", _MIRROR, "--add-config", f"{name}={10**9}"],
            ["--entity-default", *what],
        ):
            await _patiently(scene, partial(_run, [*alter, *whom]))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TOOL_SECONDS)
    if done.returncode:
        raise KafkaException(f"{done.stdout}{done.stderr}"[-500:])


@dataclass(frozen=True)
class PartitionsAdded(Fault):
    """The topic of bets gets more partitions, and then another owner."""

    count: int
    most: ClassVar[int] = 1
    shortest, longest = 1.0, 10.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.randint(1, 6))

    async def begin(self, scene: Scene, key: str) -> bool:
        name = f"{scene.prefix}.bets"

        def add() -> None:
            client = _client(scene)
            before = len(client.list_topics(name, _KAFKA_SECONDS).topics[name].partitions)
            scene.partitions.setdefault("bets", before)
            client.create_partitions([NewPartitions(name, before + self.count)])[name].result(_KAFKA_SECONDS)

        await _patiently(scene, add)
        scene.bridges[scene.hit(OWNER, key)].take_down(key, kill=False)
        return True

    async def end(self, scene: Scene, key: str) -> None:
        scene.bridges[scene.hit(OWNER, key)].let_up(key)


@dataclass(frozen=True)
class TopicAnew(Fault):
    """A topic is deleted and made anew, with its settings, as a tool does that keeps it by a manifest."""

    topic: str
    is_live: bool
    """Whether the bridges run meanwhile."""
    most: ClassVar[int] = 1
    shortest, longest = 0.0, 0.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.choice(("bets", *TOPICS)), random.random() < 0.5)

    async def begin(self, scene: Scene, key: str) -> bool:
        if self.topic == "checkpoints":  # docs/operations.md: before the last bet, and after half an hour
            scene.start = f"{math.ceil(time.time() - scene.began)}s"
        scene.busy.add(key)
        if not self.is_live:
            await all_down(scene, key)
        if self.topic == "gaps":
            scene.gaps += await asyncio.to_thread(scene.read_gaps)
        async with scene.topics_are_made:
            await _patiently(scene, lambda: make_anew(scene, self.topic))
        if not self.is_live and self.topic == "checkpoints":
            await asyncio.sleep(_FORGOTTEN_SECONDS)
        scene.busy.discard(key)
        let_up(scene, key)
        return True


@dataclass(frozen=True)
class LaggingMirror(Fault):
    """All go on with a copy of the topics, in which the last bets are missing.

    The copy has their names, as on another cluster: keys, values, headers, partitions and timestamps are the
    same, offsets are not, and what was a transaction is one no more.
    """

    lag: float
    """Seconds."""
    most: ClassVar[int] = 1
    shortest, longest = 0.0, 0.0

    @classmethod
    def draw(cls, random: Random, bridges: list[str]) -> Self:
        return cls(random.uniform(2, 30))

    async def begin(self, scene: Scene, key: str) -> bool:
        scene.busy.add(key)
        await all_down(scene, key)
        async with scene.topics_are_made:
            for topic in TOPICS:
                records = await _patiently(scene, partial(self._read, scene, topic))
                await _patiently(scene, partial(self._write, scene, topic, records))
        scene.busy.discard(key)
        let_up(scene, key)
        return True

    def _read(self, scene: Scene, topic: str) -> list[Record]:
        """Return what the mirror has."""
        source = Topics(scene.bootstrap_servers, scene.prefix)
        ends = source.ends(topic)
        if any(it.stable < it.high for it in ends.values()):
            raise KafkaException("a transaction is open")
        records = [record for p, it in ends.items() for record in source.read(topic, p, 0, it.stable)]
        if topic == "bets" and records:
            newest = max(it.timestamp for it in records)
            records = [it for it in records if it.timestamp < newest - self.lag]
            scene.note("mirror", topic, until=newest - self.lag)
        return records

    def _write(self, scene: Scene, topic: str, records: list[Record]) -> None:
        """Replace a topic by a copy, and what a former try has copied."""
        make_anew(scene, topic, 1 + max((it.partition for it in records), default=0))
        scene.is_copied = True
        _write(scene, topic, records)


@dataclass(frozen=True)
class IdGivenAway(Fault):
    """The registry is another one, where the id of the bets is another schema's; all start again."""

    most: ClassVar[int] = 1
    shortest, longest = 10.0, 30.0

    async def begin(self, scene: Scene, key: str) -> bool:
        held, bets = scene.servers[REGISTRY], f"{scene.prefix}.bets-value"
        known = await _patiently(
            scene, lambda: [_ask(scene, f"/subjects/{it}/versions/latest") for it in _ask(scene, "/subjects")]
        )
        for bridge in scene.bridges.values():
            bridge.may_end(key, 6)
        await held.take_down(key, kill=True)
        held.file(REGISTRY_DATABASE).rename(held.file("kept.db"))
        held.let_up(key)

        def give_away() -> bool:
            """Return whether the others have their ids: a registration whose answer is lost uses one up."""
            for it in sorted(known, key=lambda it: it["id"]):  # in the order in which ids are given
                other = it["subject"] == bets
                schema = (
                    json.dumps({"type": "record", "name": "Other", "fields": []}) if other else it["schema"]
                )
                subject = "other-value" if other else it["subject"]
                given = _ask(scene, f"/subjects/{subject}/versions", {"schema": schema})["id"]
                if given != it["id"]:
                    return False
            return True

        if not await _patiently(scene, give_away):
            return False
        await all_down(scene, key)
        let_up(scene, key)
        await asyncio.sleep(_READ_SECONDS)
        return True

    async def end(self, scene: Scene, key: str) -> None:
        held = scene.servers[REGISTRY]
        await held.take_down(key, kill=True)
        held.file("kept.db").replace(held.file(REGISTRY_DATABASE))
        held.let_up(key)
        await _patiently(scene, lambda: _ask(scene, "/subjects"))
        for bridge in scene.bridges.values():
            bridge.may_end(key)


async def all_down(scene: Scene, key: str) -> None:
    """End all bridges, and keep them down."""
    for bridge in scene.bridges.values():
        bridge.take_down(key, kill=False)
    await until(lambda: all(it.bridge is None for it in scene.bridges.values()), "the end of the bridges")


def let_up(scene: Scene, key: str) -> None:
    """End that."""
    for bridge in scene.bridges.values():
        bridge.let_up(key)


def make_anew(scene: Scene, topic: str, least: int = 1) -> None:
    """Delete a topic and create it, with the partitions that it was made with, or at least so many.

    Raises KafkaException.
    """
    name, client = f"{scene.prefix}.{topic}", _client(scene)
    if name not in scene.manifests:
        found = client.list_topics(name, _KAFKA_SECONDS).topics[name]
        resource = ConfigResource(ResourceType.TOPIC, name)
        entries = client.describe_configs([resource])[resource].result(_KAFKA_SECONDS).values()
        own = {it.name: it.value for it in entries if it.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
        count = scene.partitions.get(topic, len(found.partitions))
        scene.manifests[name] = NewTopic(name, count, 3, config=own)
    manifest = scene.manifests[name]
    manifest.num_partitions = max(manifest.num_partitions, least)
    for bridge in scene.bridges.values():
        bridge.may_end(topic, 6)
    _until_done(lambda: client.delete_topics([name])[name].result(_KAFKA_SECONDS), "UNKNOWN_TOPIC_OR_PART")
    _until_done(lambda: client.create_topics([manifest])[name].result(_KAFKA_SECONDS))
    scene.made_anew[topic] = time.time()


def _until_done(call: Callable[[], Any], done: str = "") -> None:
    """Call until it succeeds, or fails with the error that says that it has. Raises KafkaException."""
    deadline = time.monotonic() + _TOOL_SECONDS
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if error.args[0].name() == done:
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # a topic goes away some time after it was deleted


def _write(scene: Scene, topic: str, records: list[Record]) -> None:
    """Write a copy of records, each in a batch of its own: its time is then that of its commit."""
    settings = {"bootstrap.servers": scene.bootstrap_servers, "log_level": 0, "client.id": _MIRROR}
    producer = Producer({**settings, "batch.num.messages": 1, "acks": "all", "enable.idempotence": True})
    failed: list[object] = []
    for it in records:
        while True:
            try:
                producer.produce(
                    f"{scene.prefix}.{topic}",
                    it.value,
                    it.key,
                    it.partition,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                    timestamp=round(it.timestamp * 1000),
                    headers=list(it.headers.items()),
                )
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(_COPY_SECONDS) or failed:
        raise KafkaException(failed[0] if failed else "not delivered")


def _client(scene: Scene) -> AdminClient:
    return AdminClient({"bootstrap.servers": scene.bootstrap_servers, "log_level": 0})


def _ask(scene: Scene, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{scene.registry_url}{path}", data, {"Content-Type": "application/json"})
    with closing(urlopen(request, timeout=_KAFKA_SECONDS)) as answer:
        return json.load(answer)


async def _patiently(scene: Scene, call: Callable[[], T]) -> T:
    """Call in a thread until Kafka or the registry takes it."""
    while True:
        try:
            return await asyncio.to_thread(call)
        except (KafkaException, OSError, subprocess.TimeoutExpired) as error:
            scene.note("to be tried again", reason=str(error))
            await asyncio.sleep(1)
