"""Kafka and the registry together: started at once, ready together, stopped together."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from bridge.errors import DevError
from bridge.sandbox.cluster import broker as kafka
from bridge.sandbox.cluster import registry, state
from bridge.sandbox.cluster.downloads import Artifacts
from bridge.sandbox.cluster.files import Progress, silent, write_atomically
from bridge.sandbox.cluster.ports import Listener
from bridge.sandbox.cluster.process import Server, stop_all

START_SECONDS = 90.0
"""Time limit of a start, without the download."""
_POLL_SECONDS = 0.1
_BIND_FAILURES = ("Address already in use", "seems to be in use by another process")
"""Messages of Kafka and Quarkus when another process took the port before they bound it."""


class PortTaken(DevError):
    """Another process took a port first; an attempt with other ports may succeed."""


class Cluster:
    """Kafka and a registry that belong to this process. Brokers are numbered from 1.

    A context manager. The methods that break things are for tests of failures.
    """

    bootstrap_servers: str
    registry_url: str

    def __init__(
        self, data: Path, artifacts: Artifacts, listeners: list[Listener], registry_port: int
    ) -> None:
        self.bootstrap_servers = kafka.bootstrap_servers(listeners)
        self.registry_url = registry.url(registry_port)
        self._data = data
        self._artifacts = artifacts
        self._listeners = listeners
        self._registry_port = registry_port
        self._cluster_id = _cluster_id(data, len(listeners))
        java, count = artifacts.java, len(listeners)
        self._brokers = [
            self._server(f"kafka-{node}", kafka.broker_command(java, artifacts.kafka_class_path, count))
            for node in range(1, count + 1)
        ]
        self._registry = self._server(
            "registry",
            registry.command(java, artifacts.registry_jar),
            registry.environment(registry_port),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_alive(self) -> bool:
        """Whether every server runs."""
        return all(server.is_alive() for server in self._servers)

    def stop_broker(self, node: int, *, kill: bool = False) -> None:
        """Stop one broker, gracefully or with SIGKILL, and wait until it is gone."""
        self._brokers[node - 1].stop(kill=kill)

    def start_broker(self, node: int) -> None:
        """Start a stopped broker on its data and ports; returns when the cluster lists it."""
        server, listener = self._brokers[node - 1], self._listeners[node - 1]
        probe = kafka.Probe(kafka.bootstrap_servers([listener]))
        server.start()
        self._wait([(server, lambda: node in probe.brokers(self._cluster_id))])
        self._save()

    def pause_broker(self, node: int) -> None:
        """SIGSTOP: the broker keeps its connections and answers nothing."""
        self._brokers[node - 1].pause()

    def resume_broker(self, node: int) -> None:
        """SIGCONT."""
        self._brokers[node - 1].resume()

    def stop_registry(self, *, kill: bool = False) -> None:
        """Stop the registry and wait until it is gone."""
        self._registry.stop(kill=kill)

    def start_registry(self) -> None:
        """Start a stopped registry on its data and port; returns when it answers."""
        self._registry.start()
        self._wait([(self._registry, self._registry_answers)])
        self._save()

    def mend(self) -> None:
        """Start again whatever is stopped or paused."""
        for node, broker in enumerate(self._brokers, 1):
            broker.resume()
            if not broker.is_alive():
                self.start_broker(node)
        if not self._registry.is_alive():
            self.start_registry()

    def close(self) -> None:
        """Stop everything and keep the data."""
        stop_all([server.identity for server in self._servers if server.identity])
        for server in self._servers:
            server.reap()
        # After `down` elsewhere, the state may be that of the next cluster in the same directory.
        if state.load(self._data) == self._state():
            state.forget(self._data)

    def start(self, progress: Progress) -> Self:
        """Start everything; returns when all of it answers. Raises DevError, and leaves nothing behind."""
        database = self._registry.directory / registry.DATABASE
        is_new = not database.exists()
        try:
            for server in self._servers:
                server.log.unlink(missing_ok=True)
            self._registry.start()
            self._format()
            for broker in self._brokers:
                broker.start()
            probe = kafka.Probe(self.bootstrap_servers)
            nodes = set(range(1, len(self._brokers) + 1))
            everywhere = [
                (broker, lambda: probe.brokers(self._cluster_id) == nodes) for broker in self._brokers
            ]
            self._wait([*everywhere, (self._registry, self._registry_answers)], progress)
            self._save()
        except BaseException:
            self.close()
            if is_new:  # a registry that was stopped while it created its tables does not start on them
                database.unlink(missing_ok=True)
            raise
        return self

    def detach(self) -> state.State:
        """Let the cluster outlive this process, until `down` on its directory."""
        for server in self._servers:
            server.detach()
        return self._state()

    @property
    def _servers(self) -> list[Server]:
        return [*self._brokers, self._registry]

    def _server(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> Server:
        directory, log = self._data / name, self._data / f"{name}.log"
        temporary = directory / "tmp"  # native libraries and caches go here instead of staying in /tmp
        temporary.mkdir(parents=True, exist_ok=True)
        command = [command[0], "-Djava.io.tmpdir=tmp", *command[1:]]
        return Server(name, command, directory, log, environment or {})

    def _format(self) -> None:
        """Format brokers that have no data yet, all at once."""
        artifacts, fresh = self._artifacts, list[Server]()
        command = kafka.format_command(artifacts.java, artifacts.kafka_class_path, self._cluster_id)
        for node, broker in enumerate(self._brokers, 1):
            properties = kafka.server_properties(node, self._listeners)
            write_atomically(broker.directory / kafka.PROPERTIES, properties)
            if not (broker.directory / kafka.FORMATTED).is_file():
                fresh.append(Server(f"{broker.name} (format)", command, broker.directory, broker.log))
        try:
            for server in fresh:
                server.start()
            for server in fresh:
                if not server.wait(START_SECONDS):
                    raise _failure(server, f"did not end within {START_SECONDS:g} s")
                if not (server.directory / kafka.FORMATTED).is_file():
                    raise _failure(server, f"left no {kafka.FORMATTED} behind")
        finally:
            for server in fresh:
                server.stop(kill=True)

    def _wait(self, servers: list[tuple[Server, Callable[[], bool]]], progress: Progress = silent) -> None:
        began = time.monotonic()
        pending = servers
        while pending:
            for server, _ in servers:
                if not server.is_alive():
                    if server.has_logged(*_BIND_FAILURES):
                        raise PortTaken(str(_failure(server, "found its port taken")))
                    raise _failure(server, "ended while it was starting")
            ready = [server for server, answers in pending if answers()]
            for server in ready:
                progress(f"{server.name} answers")
            pending = [(server, answers) for server, answers in pending if server not in ready]
            if pending and time.monotonic() - began > START_SECONDS:
                raise _failure(pending[0][0], f"did not answer within {START_SECONDS:g} s")
            time.sleep(_POLL_SECONDS if pending else 0)

    def _registry_answers(self) -> bool:
        return registry.answers(self._registry_port)

    def _state(self) -> state.State:
        members = [
            state.Member(server.name, server.identity, server.log)
            for server in self._servers
            if server.identity
        ]
        return state.State(self.bootstrap_servers, self.registry_url, tuple(members))

    def _save(self) -> None:
        state.save(self._data, self._state())


def _cluster_id(data: Path, brokers: int) -> str:
    """The id under which the data was formatted. Raises DevError when it is of another number of brokers."""
    file = data / "cluster-id"
    if not file.is_file():
        write_atomically(file, f"{kafka.new_cluster_id()} {brokers}\n")
    cluster_id, count = file.read_text("utf-8").split()
    if int(count) != brokers:
        raise DevError(
            f"the data in {data} is of a cluster of {count}, not {brokers}. "
            f"Start it with --brokers {count}, name another directory by --data, or delete this one."
        )
    return cluster_id


def _failure(server: Server, what: str) -> DevError:
    lines = server.log_tail().replace("\n", "\n    ")
    return DevError(f"{server.name} {what}. The end of its log, {server.log}:\n    {lines}")
