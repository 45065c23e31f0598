"""The brokers and the registry: properties, command lines, and when each is ready."""

from __future__ import annotations

import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from http.client import HTTPException

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bridge_sandbox.cluster.downloads import Artifacts
from bridge_sandbox.cluster.ports import HOST, Listener

JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
PROPERTIES = "server.properties"
LOG_DIR = "data"
"""Relative to the broker's directory, in which it runs, so that no comma or umlaut in a path needs care."""
FORMATTED = f"{LOG_DIR}/meta.properties"
REGISTRY_DATABASE = "schemas.mv.db"
"""File of the schemas, in the registry's directory."""


def new_cluster_id() -> str:
    """Make an id as Kafka does: 16 random bytes in URL-safe base 64 without padding.

    It begins with a letter, because Kafka's tools would take a dash for an option.
    """
    return "A" + secrets.token_urlsafe(16)[1:]


def bootstrap_servers(listeners: Sequence[Listener]) -> str:
    """As clients take it: `host:port,…`."""
    return ",".join(f"{HOST}:{listener.client}" for listener in listeners)


def server_properties(node: int, listeners: Sequence[Listener]) -> str:
    """The settings of broker `node` (from 1) of as many as there are listeners; each is a controller too."""
    own = listeners[node - 1]
    replicas = min(len(listeners), 3)
    in_sync = 2 if replicas == 3 else 1
    voters = ",".join(f"{i}@{HOST}:{listener.controller}" for i, listener in enumerate(listeners, 1))
    properties: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": node,
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{HOST}:{own.client},CONTROLLER://{HOST}:{own.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{own.client}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": LOG_DIR,
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        # A broker that was killed may register again only when its old session has run out; one that a busy
        # machine has kept waiting for a few seconds must not lose it.
        "broker.session.timeout.ms": 6000,
        "broker.heartbeat.interval.ms": 1000,
        # By default an idle controller writes a record every half second.
        "metadata.max.idle.interval.ms": 5000,
        # By default what a dead transaction hides stays hidden for up to 10 s after its time-out.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        # 128 MB of heap by default, for topics larger than anything here.
        "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
    }
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.num.partitions"] = 4
        properties[f"{topic}.replication.factor"] = replicas
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        properties[f"{topic}.min.isr"] = in_sync
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def format_command(artifacts: Artifacts, cluster_id: str) -> list[str]:
    """Prepares an empty broker directory."""
    options = ["format", "--cluster-id", cluster_id, "--config", PROPERTIES, "--ignore-formatted"]
    return [*_java(replace(artifacts, is_recording=False), "128m"), "kafka.tools.StorageTool", *options]


def broker_command(artifacts: Artifacts, brokers: int) -> list[str]:
    """Runs a broker in its directory; several share what memory a laptop has."""
    return [*_java(artifacts, "512m" if brokers == 1 else "256m"), "kafka.Kafka", PROPERTIES]


def _java(artifacts: Artifacts, heap: str) -> list[str]:
    logging = "-Dorg.slf4j.simpleLogger"
    return [
        str(artifacts.java),
        f"-Xmx{heap}",
        *JVM_FLAGS,
        *artifacts.aot_flags("kafka"),
        "--enable-native-access=ALL-UNNAMED",
        "--sun-misc-unsafe-memory-access=allow",
        f"{logging}.showDateTime=true",
        f"{logging}.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
        "-cp",
        os.pathsep.join(map(str, artifacts.kafka_class_path)),
    ]


class Probe:
    """Asks a cluster who it is. One client for many questions, since a new one each time costs more."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._admin: AdminClient | None = None

    def brokers(self, cluster_id: str, timeout: float = 1.0) -> set[int]:
        """Node ids that the cluster lists; none when it does not answer, or another one does."""
        self._admin = self._admin or self._client()
        try:
            metadata = self._admin.list_topics(timeout=timeout)
        except KafkaException:
            self._admin = None  # a starting broker may have told it of no brokers, which it never gets over
            return set()
        # A broker that lost the race for its port is on its way down, and someone else answers.
        return set(metadata.brokers) if metadata.cluster_id == cluster_id else set()

    def _client(self) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": self._servers,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,  # refused connections are what one expects of a broker that is starting
            }
        )


def registry_url(port: int) -> str:
    """Address of the registry's Confluent-compatible API."""
    return f"http://{HOST}:{port}/apis/ccompat/v7"


def registry_command(artifacts: Artifacts) -> list[str]:
    """Runs the registry in its directory."""
    flags = (*JVM_FLAGS, *artifacts.aot_flags("registry"))
    return [str(artifacts.java), "-Xmx256m", *flags, "-jar", str(artifacts.registry_jar)]


def registry_environment(port: int) -> dict[str, str]:
    """The registry's settings. It keeps the schemas in its directory, because records keep their ids."""
    return {
        "APICURIO_STORAGE_KIND": "sql",
        # By default H2 writes up to half a second late: an id that is in Kafka would be lost in a kill.
        "APICURIO_DATASOURCE_URL": "jdbc:h2:file:./schemas;WRITE_DELAY=0",
        "APICURIO_DATASOURCE_JDBC_INITIAL_SIZE": "1",
        "APICURIO_DATASOURCE_JDBC_MIN_SIZE": "1",
        "APICURIO_DATASOURCE_JDBC_MAX_SIZE": "10",
        "QUARKUS_HTTP_HOST": HOST,
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
        # By default on port 9000 of every interface, where a second registry could not start.
        "QUARKUS_MANAGEMENT_HOST": HOST,
        "QUARKUS_MANAGEMENT_PORT": "0",
    }


def registry_answers(port: int, timeout: float = 1.0) -> bool:
    """Whether the registry lists its subjects."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback needs no proxy
    try:
        with opener.open(f"{registry_url(port)}/subjects", timeout=timeout) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, HTTPException, OSError):
        return False
