"""Starting and stopping the cluster of a directory, by one process at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypedDict, Unpack

from bridge.errors import DevError
from bridge.sandbox.cluster import ports, state
from bridge.sandbox.cluster.cluster import Cluster, PortTaken
from bridge.sandbox.cluster.downloads import obtain
from bridge.sandbox.cluster.files import Progress, lock, silent
from bridge.sandbox.cluster.process import stop_all

PORT_ATTEMPTS = 3


class Wanted(TypedDict, total=False):
    """A cluster to start. 0 is any free port; a port that is taken is replaced by a free one."""

    brokers: int
    """1 by default."""
    kafka_port: int | None
    """The first broker's, 9092 by default; the others have the next ones."""
    registry_port: int | None
    """8080 by default."""


def start(data: Path, *, progress: Progress = silent, **wanted: Unpack[Wanted]) -> Cluster:
    """Start a cluster that belongs to this process; returns when it answers. Raises DevError."""
    data = data.resolve()
    with _locked(data, progress):
        if (running := state.load(data)).now() == "running":
            raise DevError(
                f"a cluster runs in {data} already, at {running.bootstrap_servers}. "
                "Stop it with `bridge dev down`, or name another directory by --data."
            )
        _stop(data)
        return _launch(data, progress, **wanted)


def up(data: Path, *, progress: Progress = silent, **wanted: Unpack[Wanted]) -> state.State:
    """Start a cluster that runs until `down`, or return the one that runs already. Otherwise as `start`."""
    data = data.resolve()
    with _locked(data, progress):
        if (running := state.load(data)).now() == "running":
            progress(f"already running in {data}")
            return running
        if _stop(data):
            progress(f"a part of the cluster in {data} had died: starting all of it again")
        return _launch(data, progress, **wanted).detach()


def down(data: Path, *, progress: Progress = silent) -> bool:
    """Stop the cluster of the directory and keep its data. Returns False when none was running."""
    data = data.resolve()
    if not data.is_dir():
        return False
    with _locked(data, progress):
        return _stop(data)


def _locked(data: Path, progress: Progress) -> AbstractContextManager[None]:
    return lock(data / "lock", progress, f"another start or stop in {data}")


def _stop(data: Path) -> bool:
    found = state.load(data)
    was_alive = found.now() != "stopped"
    stop_all([member.identity for member in found.members])
    state.forget(data)
    return was_alive


def _launch(
    data: Path,
    progress: Progress,
    brokers: int = 1,
    kafka_port: int | None = None,
    registry_port: int | None = None,
) -> Cluster:
    artifacts = obtain(progress)
    progress(f"starting Kafka ({brokers} broker{'s' if brokers > 1 else ''}) and the registry in {data}")
    attempts = 0
    while True:
        listeners, http_port = ports.choose(brokers, kafka_port, registry_port, progress)
        try:
            return Cluster(data, artifacts, listeners, http_port).start(progress)
        except PortTaken:
            attempts += 1
            if attempts == PORT_ATTEMPTS:
                raise
            progress("another process took a port in the meantime, trying others")
