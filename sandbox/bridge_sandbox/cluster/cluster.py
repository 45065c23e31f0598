"""Kafka and the registry of a directory: started together, by one process at a time, and stopped together."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypedDict, Unpack

from bridge.errors import DevError, SettingsError
from bridge.formatting import format_duration
from bridge_sandbox.cluster import ports, servers, state
from bridge_sandbox.cluster.downloads import Artifacts, obtain
from bridge_sandbox.cluster.files import Progress, lock, make_private, silent, ticking, write_atomically
from bridge_sandbox.cluster.ports import Listener
from bridge_sandbox.cluster.process import STOP_SECONDS, Server, stop_all

PORT_ATTEMPTS = 3
START_SECONDS = 90.0
"""Time limit of a start, without the download."""
RECORD_SECONDS = 120.0
"""Time limit for a JVM that writes its AOT cache when it ends."""
_POLL_SECONDS = 0.1
_BIND_FAILURES = ("Address already in use", "seems to be in use by another process")
"""Messages of Kafka and Quarkus when another process took the port before they bound it."""


class PortTaken(DevError):
    """Another process took a port first; an attempt with other ports may succeed."""


class Wanted(TypedDict, total=False):
    """A cluster to start. 0 is any free port; a default that is taken is replaced by a free one."""

    brokers: int
    """1 by default."""
    kafka_port: int | None
    """The first broker's, by default that of the last start, or 9092; the others have the next ones."""
    registry_port: int | None
    """By default that of the last start, or 8080."""


class Cluster:
    """Kafka and a registry that belong to this process. A context manager."""

    def __init__(
        self, data: Path, artifacts: Artifacts, listeners: list[Listener], registry_port: int
    ) -> None:
        self.bootstrap_servers = servers.bootstrap_servers(listeners)
        self.registry_url = servers.registry_url(registry_port)
        self._data = data
        self._artifacts = artifacts
        self._listeners = {f"kafka-{node}": listener for node, listener in enumerate(listeners, 1)}
        self._registry_port = registry_port
        self._cluster_id = _cluster_id(data, len(listeners))
        self.servers = {
            name: self._server(name, servers.broker_command(artifacts, len(listeners)))
            for name in self._listeners
        }
        """The brokers `kafka-1`, `kafka-2`, …, and the `registry`. Tests stop and pause them."""
        self.servers["registry"] = self._server(
            "registry", servers.registry_command(artifacts), servers.registry_environment(registry_port)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_alive(self) -> bool:
        """Whether every server runs."""
        return all(server.is_alive() for server in self.servers.values())

    def restart(self, name: str) -> None:
        """Start a stopped server on its data and ports; returns when it answers."""
        self.servers[name].start()
        self._wait([name])
        self._save()

    def close(self, grace: float = STOP_SECONDS) -> None:
        """Stop everything and keep the data. Servers still there after `grace` seconds are killed."""
        stop_all([server.identity for server in self.servers.values() if server.identity], grace)
        for server in self.servers.values():
            server.reap()
        # After `down` elsewhere, the state may be that of the next cluster in the same directory.
        if state.load(self._data) == self._state():
            state.stopped(self._data)

    def start(self, progress: Progress) -> Self:
        """Start everything; returns when all of it answers. Raises DevError, and leaves nothing behind."""
        database = self.servers["registry"].directory / servers.REGISTRY_DATABASE
        is_new = not database.exists()
        try:
            for server in self.servers.values():
                server.log.unlink(missing_ok=True)
            self.servers["registry"].start()
            self._format()
            for name in self._listeners:
                self.servers[name].start()
            self._wait(list(self.servers), progress)
            self._save()
        except BaseException:
            self.close()
            if is_new:  # a registry that was stopped while it created its tables does not start on them
                database.unlink(missing_ok=True)
            raise
        return self

    def detach(self) -> state.State:
        """Let the cluster outlive this process, until `down` on its directory."""
        for server in self.servers.values():
            server.detach()
        return self._state()

    def properties(self, node: int) -> str:
        """Return the settings of a broker, as lines of a properties file."""
        return servers.server_properties(node, list(self._listeners.values()))

    def _server(self, name: str, command: list[str], environment: dict[str, str] | None = None) -> Server:
        directory, log = self._data / name, self._data / f"{name}.log"
        temporary = directory / "tmp"  # native libraries and caches go here instead of staying in /tmp
        make_private(directory)
        make_private(temporary)
        command = [command[0], "-Djava.io.tmpdir=tmp", *command[1:]]
        return Server(name, command, directory, log, environment or {})

    def _format(self) -> None:
        """Format brokers that have no data yet, all at once."""
        fresh = list[Server]()
        command = servers.format_command(self._artifacts, self._cluster_id)
        for node, name in enumerate(self._listeners, 1):
            broker = self.servers[name]
            write_atomically(broker.directory / servers.PROPERTIES, self.properties(node))
            if not (broker.directory / servers.FORMATTED).is_file():
                fresh.append(Server(f"{broker.name} (format)", command, broker.directory, broker.log))
        try:
            for server in fresh:
                server.start()
            for server in fresh:
                if not server.wait(START_SECONDS):
                    raise _failure(server, f"did not end within {format_duration(START_SECONDS)}")
                if not (server.directory / servers.FORMATTED).is_file():
                    raise _failure(server, f"left no {servers.FORMATTED} behind")
        finally:
            for server in fresh:
                server.stop(kill=True)

    def _wait(self, names: Sequence[str], progress: Progress = silent) -> None:
        began = time.monotonic()
        pending = {name: self._check(name) for name in names}
        while pending:
            for server in map(self.servers.__getitem__, names):
                if not server.is_alive():
                    if server.has_logged(*_BIND_FAILURES):
                        raise PortTaken(str(_failure(server, "found its port taken")))
                    raise _failure(server, "ended while it was starting")
            ready = [name for name, answers in pending.items() if answers()]
            for name in ready:
                progress(f"{name} answers")
                del pending[name]
            if pending and time.monotonic() - began > START_SECONDS:
                raise _failure(
                    self.servers[next(iter(pending))],
                    f"did not answer within {format_duration(START_SECONDS)}",
                )
            time.sleep(_POLL_SECONDS if pending else 0)

    def _check(self, name: str) -> Callable[[], bool]:
        """Return whether a server answers: a broker once it lists all that run."""
        if name == "registry":
            return partial(servers.registry_answers, self._registry_port)
        # Only the broker itself: the others list it until the session of its last life has run out.
        probe = servers.Probe(servers.bootstrap_servers([self._listeners[name]]))

        def lists_all() -> bool:
            running = {n for n, broker in enumerate(self._listeners, 1) if self.servers[broker].is_alive()}
            listed = probe.brokers(self._cluster_id)
            return bool(listed) and running <= listed  # it may have ended since it was seen to run

        return lists_all

    def _state(self) -> state.State:
        members = [
            state.Member(server.name, server.identity, server.log)
            for server in self.servers.values()
            if server.identity
        ]
        return state.State(self.bootstrap_servers, self.registry_url, tuple(members))

    def _save(self) -> None:
        state.save(self._data, self._state())


def _cluster_id(data: Path, brokers: int) -> str:
    """The id under which the data was formatted. Raises DevError when it is of another number of brokers."""
    file = data / "cluster-id"
    if not file.is_file():
        write_atomically(file, f"{servers.new_cluster_id()} {brokers}\n")
    cluster_id, count = file.read_text("utf-8").split()
    if int(count) != brokers:
        raise DevError(
            f"the data in {data} belongs to a cluster of {count}, not {brokers}. "
            f"Start it with --brokers {count}, choose another directory with --data, or delete this one."
        )
    return cluster_id


def _failure(server: Server, what: str) -> DevError:
    lines = server.log_tail().replace("\n", "\n    ")
    return DevError(f"{server.name} {what}. The end of its log, {server.log}:\n    {lines}")


def start(data: Path, *, progress: Progress = silent, **wanted: Unpack[Wanted]) -> Cluster:
    """Start a cluster that belongs to this process; returns when it answers. Raises DevError."""
    data = data.resolve()
    with _locked(data, progress):
        if (running := state.load(data)).now() == "running":
            raise DevError(
                f"a cluster is already running in {data}, at {running.bootstrap_servers}. "
                "Stop it with `bridge dev down`, or choose another directory with --data."
            )
        _stop(data)
        return _launch(data, prepare(progress), progress, **wanted)


@contextmanager
def start_now(data: Path, *, progress: Progress = silent, **wanted: Unpack[Wanted]) -> Iterator[Cluster]:
    """As `start`, but without AOT caches it does not wait for them: this cluster records them as it ends.

    The directory must be empty then.
    """
    artifacts = obtain(progress)
    if artifacts.aot.is_dir():
        with start(data, progress=progress, **wanted) as cluster:
            yield cluster
        return
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-aot-") as temporary:
        recording = _recording(artifacts, Path(temporary))
        cluster = _launch(data.resolve(), recording, progress, **wanted)
        try:
            yield cluster
            progress("preparing the servers for faster starts, once; Ctrl-C leaves it for the next time")
            with suppress(KeyboardInterrupt), ticking(progress), _recorder(artifacts, progress):
                cluster.close(RECORD_SECONDS)
                _keep(recording, artifacts)
        finally:
            cluster.close(0)


def up(data: Path, *, progress: Progress = silent, **wanted: Unpack[Wanted]) -> state.State:
    """Start a cluster that runs until `down`, or return the one that runs already. Otherwise as `start`."""
    data = data.resolve()
    with _locked(data, progress):
        if (running := state.load(data)).now() == "running":
            progress(f"already running in {data}")
            return running
        if _stop(data):
            progress(f"part of the cluster in {data} had died: restarting all of it")
        return _launch(data, prepare(progress), progress, **wanted).detach()


def down(data: Path, *, progress: Progress = silent) -> bool:
    """Stop the cluster of the directory and keep its data. Returns False when none was running."""
    data = data.resolve()
    if not data.is_dir():
        return False
    with _locked(data, progress):
        return _stop(data)


def _locked(data: Path, progress: Progress) -> AbstractContextManager[None]:
    try:
        data.mkdir(0o700, parents=True, exist_ok=True)  # one that is there already stays as it is
    except OSError as error:
        raise SettingsError(
            f"--data {data} cannot be created: {error.strerror}. Name another directory."
        ) from None
    return lock(data / "lock", progress, f"another start or stop in {data}")


def _stop(data: Path) -> bool:
    found = state.load(data)
    was_alive = found.now() != "stopped"
    stop_all([member.identity for member in found.members])
    state.stopped(data)
    return was_alive


def _launch(
    data: Path,
    artifacts: Artifacts,
    progress: Progress,
    brokers: int = 1,
    kafka_port: int | None = None,
    registry_port: int | None = None,
) -> Cluster:
    progress(f"starting Kafka ({brokers} broker{'s' if brokers > 1 else ''}) and the registry in {data}")
    attempts, last = 0, state.load(data)
    while True:
        listeners, http_port = ports.choose(brokers, kafka_port, registry_port, progress, last.ports)
        try:
            with ticking(progress):
                cluster = Cluster(data, artifacts, listeners, http_port).start(progress)
            for old, new in (
                (last.bootstrap_servers, cluster.bootstrap_servers),
                (last.registry_url, cluster.registry_url),
            ):
                if old not in ("", new):
                    progress(f"warning: the address has changed, correct your settings: {old} → {new}")
            return cluster
        except PortTaken:
            attempts += 1
            if attempts == PORT_ATTEMPTS:
                raise
            progress("another process took a port in the meantime, trying others")


def prepare(progress: Progress) -> Artifacts:
    """Find the servers, and record their AOT caches once. Reports why there are none if that fails."""
    artifacts = obtain(progress)
    if not artifacts.aot.is_dir():
        with ticking(progress), _recorder(artifacts, progress), tempfile.TemporaryDirectory() as temporary:
            if not artifacts.aot.is_dir():
                progress("preparing the servers for faster starts, once")
                recording = _recording(artifacts, Path(temporary))
                _launch(Path(temporary, "cluster"), recording, silent, 1, 0, 0).close(RECORD_SECONDS)
                _keep(recording, artifacts)
    return artifacts


@contextmanager
def _recorder(artifacts: Artifacts, progress: Progress) -> Iterator[None]:
    """Be the only process that keeps a recording. Reports an error of it: the servers start without, too."""
    try:
        with lock(artifacts.aot.with_name("aot.lock"), progress, "another first start"):
            yield
    except (DevError, OSError) as error:
        reason = str(error).partition("\n")[0].partition(". The end of its log")[0]
        progress(f"starting without AOT caches, which takes longer: {reason}")


def _recording(artifacts: Artifacts, temporary: Path) -> Artifacts:
    """Return artifacts whose servers record their AOT caches when they end."""
    recording = replace(artifacts, aot=temporary / "recorded", is_recording=True)
    recording.aot.mkdir()
    return recording


def _keep(recording: Artifacts, artifacts: Artifacts) -> None:
    """Put what was recorded where the next start finds it."""
    if len(list(recording.aot.glob("*.aot"))) < 2:  # of the brokers and of the registry
        raise DevError("a server did not write its AOT cache")
    for old in artifacts.aot.parent.glob("aot-*"):  # of other versions, and of copies that were killed
        shutil.rmtree(old, ignore_errors=True)
    copy = artifacts.aot.with_name(f"{artifacts.aot.name}.{os.getpid()}")
    shutil.copytree(recording.aot, copy)
    copy.rename(artifacts.aot)
