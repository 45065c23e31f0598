"""The embedded Kafka and registry, started for real."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.errors import DevError
from bridge_sandbox.cluster import State, down, load, ports, start, start_now, up
from bridge_sandbox.cluster.downloads import cache_directory, obtain
from bridge_sandbox.cluster.files import silent
from tests.processes import send
from tests.unit.sandbox.cluster.test_process import eventually, open_to_others

pytestmark = pytest.mark.long


def create_topic(servers: str, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("bets", 1, replicas)])["bets"].result(20)


def produce(servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume(servers: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def kafka_answers(servers: str, seconds: float) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=seconds))
    except KafkaException:
        return False


def register(registry_url: str, subject: str) -> int:
    """By the client that users have: it asks again where a starved server answers 500 once."""
    schema = Schema('{"type": "record", "name": "R", "fields": []}', "AVRO")
    with SchemaRegistryClient({"url": registry_url}) as client:
        return int(client.register_schema(subject, schema))


def pids(data: Path) -> list[int]:
    return [member.identity.pid for member in load(data).members]


@contextmanager
def quick_rival() -> Iterator[None]:
    """The default port looks free, and is taken by the time a server binds it."""
    really_free = ports.is_free
    with socket.create_server((ports.HOST, 0)) as rival, pytest.MonkeyPatch.context() as patch:
        port = rival.getsockname()[1]
        looks = iter([True])
        for name in ("KAFKA_PORT", "REGISTRY_PORT"):
            patch.setattr(ports, name, port)
        patch.setattr(ports, "is_free", lambda p: next(looks, False) if p == port else really_free(p))
        yield


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A directory with a space, a comma and an umlaut, in which nothing runs afterwards."""
    directory = tmp_path / "dätä, of dev"
    yield directory
    down(directory)


def test_an_owned_cluster_serves_through_faults_and_is_gone_when_closed(data: Path) -> None:
    lines = list[str]()
    with (
        quick_rival(),
        start(data, registry_port=0, progress=lines.append) as cluster,
    ):
        assert any("took a port" in line for line in lines)
        assert all(".aot\n" in Path(f"/proc/{pid}/maps").read_text() for pid in pids(data))
        servers, url = cluster.bootstrap_servers, cluster.registry_url
        create_topic(servers)
        produce(servers, "bets", b"first")
        schema_id = register(url, "bets-value")

        cluster.servers["kafka-1"].stop(kill=True)
        cluster.servers["registry"].stop(kill=True)
        assert load(data).now() == "stopped"
        cluster.restart("kafka-1")
        cluster.restart("registry")
        assert (cluster.bootstrap_servers, cluster.registry_url) == (servers, url)

        # The lock is empty. Vert.x gives its cache rights of its own, where nobody else can enter.
        names = {Path(path).name for path in open_to_others(data)} - {"lock", "vertx-cache"}
        assert (data.stat().st_mode & 0o777, names) == (0o700, set())
        produce(servers, "bets", b"second")
        assert consume(servers, "bets", 2) == [b"first", b"second"]
        assert register(url, "bets-value") == schema_id

        send(cluster.servers["kafka-1"], signal.SIGSTOP)
        assert not kafka_answers(servers, 1)
        send(cluster.servers["kafka-1"], signal.SIGCONT)
        assert kafka_answers(servers, 20)

        with pytest.raises(DevError, match=r"already running in "):
            start(data)
        started = pids(data)
        assert cluster.is_alive()
    assert not any(psutil.pid_exists(pid) for pid in started)
    assert load(data).now() == "stopped"


def test_a_first_cluster_starts_at_once_and_records_the_caches_of_the_next(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    obtain(silent)
    (cache := tmp_path / "settlement-bridge").mkdir()
    for found in cache_directory().iterdir():
        if not found.name.startswith("aot"):
            (cache / found.name).symlink_to(found)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, is_recorded in (("first", False), ("second", True)):
        lines = list[str]()
        with start_now(data / name, kafka_port=0, registry_port=0, progress=lines.append):
            maps = [Path(f"/proc/{pid}/maps").read_text() for pid in pids(data / name)]
        assert ([".aot\n" in text for text in maps], len(maps)) == ([is_recorded] * 2, 2)
        assert any(line.startswith("preparing the servers") for line in lines) != is_recorded


def test_a_cluster_that_was_put_up_stays_until_down_and_keeps_what_it_knows(data: Path) -> None:
    lines = list[str]()
    states = list[State]()

    def put_up() -> None:
        states.append(up(data, kafka_port=0, progress=lines.append))

    with quick_rival():
        threads = [threading.Thread(target=put_up) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    first, second = states
    assert first == second
    assert any("took a port" in line for line in lines)
    assert any("waiting for another start" in line for line in lines)
    assert any("already running" in line for line in lines)

    create_topic(first.bootstrap_servers)
    produce(first.bootstrap_servers, "bets", b"kept")
    schema_id = register(first.registry_url, "bets-value")
    seen = load(data)
    assert seen.now() == "running"
    assert [member.name for member in seen.members] == ["kafka-1", "registry"]
    assert all((member.memory() or 0) > 50_000_000 for member in seen.members)

    psutil.Process(seen.members[1].identity.pid).kill()
    assert eventually(lambda: load(data).now() == "partial", seconds=5)
    again = up(data, registry_port=0, progress=lines.append)
    assert any("had died" in line for line in lines)
    assert again.bootstrap_servers == first.bootstrap_servers
    assert lines[-1].endswith(f"correct your settings: {first.registry_url} → {again.registry_url}")
    assert consume(again.bootstrap_servers, "bets", 1) == [b"kept"]
    assert register(again.registry_url, "bets-value") == schema_id

    running = pids(data)
    assert down(data) is True
    assert not any(psutil.pid_exists(pid) for pid in running)
    assert down(data) is False


def test_a_broken_start_shows_the_end_of_the_log_and_leaves_nothing(data: Path) -> None:
    (data / "kafka-1" / "data").mkdir(parents=True)
    (data / "kafka-1" / "data" / "meta.properties").write_text("version=1\nnode.id=77\ncluster.id=x\n")
    with pytest.raises(DevError) as raised:
        start(data, kafka_port=0, registry_port=0)
    text = str(raised.value)
    assert text.startswith("kafka-1 ended while it was starting.")
    assert str(data / "kafka-1.log") in text
    assert "meta.properties" in text
    assert len(text.splitlines()) <= 21
    assert not [
        process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(data / "registry")
    ]


def test_three_brokers_go_on_without_one(data: Path) -> None:
    with start(data, brokers=3, kafka_port=0, registry_port=0) as cluster:
        servers = cluster.bootstrap_servers
        assert len(set(servers.split(","))) == 3
        create_topic(servers, replicas=3)
        produce(servers, "bets", b"with three")
        cluster.servers["kafka-2"].stop(kill=True)
        produce(servers, "bets", b"with two")
        assert consume(servers, "bets", 2) == [b"with three", b"with two"]
    with pytest.raises(DevError, match="belongs to a cluster of 3, not 1"):
        start(data)
