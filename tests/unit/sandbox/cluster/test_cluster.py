"""Starts that fail, and the recording of the AOT caches, with a script in the place of Java."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from bridge.errors import DevError
from bridge_sandbox.cluster import files, ports, start
from bridge_sandbox.cluster.cluster import Cluster
from bridge_sandbox.cluster.downloads import Artifacts
from bridge_sandbox.cluster.process import Server

JAVA = '#!/bin/sh\ncase "$*" in *-jar*) touch schemas.mv.db; exec sleep 60;; *) sleep 1; exit 1;; esac\n'
"""The registry creates its database, and the brokers cannot be formatted."""


@pytest.mark.parametrize("known", [False, True])
def test_a_failed_first_start_leaves_no_half_made_schemas(tmp_path: Path, known: bool) -> None:
    java = tmp_path / "java"
    java.write_text(JAVA)
    java.chmod(0o700)
    database = tmp_path / "registry" / "schemas.mv.db"
    listener = ports.Listener(ports.free_port(), ports.free_port())
    cluster = Cluster(tmp_path, Artifacts(java, (), java, tmp_path / "aot"), [listener], 1)
    if known:
        database.write_text("schemas")
    with pytest.raises(DevError, match=r"left no data/meta\.properties"):
        cluster.start(lambda line: None)
    assert database.exists() is known


SERVERS = r"""#!/bin/sh
case "$*" in
    *StorageTool*) mkdir -p data; touch data/meta.properties; exit;;
    *-jar*) name=registry;;
    *) name=kafka;;
esac
cd DIRECTORY
[ $name = kafka ] && rm port-taken 2>/dev/null && echo Address already in use && exit 1
image=$(echo "$*" | sed -n 's/.*AOTCacheOutput=\([^ ]*\).*/\1/p')
[ "$image" ] && [ -e $name-fails ] && echo Out of memory && exit 1
[ -e $name-is-killed ] && image=
trap 'rm $name-answers; [ "$image" ] && touch "$image"; exit' TERM
echo $$ >$name-answers
while :; do sleep 0.02; done
"""
"""Passes for Kafka and the registry. Writes an image when it ends, as a JVM does."""


class Caches:
    """A directory of AOT caches, and starts that use it."""

    def __init__(self, directory: Path) -> None:
        self.root = directory
        self.directory = directory / "cache"
        self.recorded = self.directory / "aot-1"
        self.directory.mkdir()

    def start(self, progress: Callable[[str], None] = files.silent) -> list[str]:
        """Start a cluster and stop it. Return the lines of progress about the caches."""
        lines = list[str]()

        def report(line: str) -> None:
            lines.append(line)
            progress(line)

        with start(self.root / "data", kafka_port=0, registry_port=0, progress=report) as cluster:
            assert cluster.is_alive()
        return lines[: next(number for number, line in enumerate(lines) if line.startswith("starting Kafka"))]

    def images(self) -> list[str]:
        """Return the names of all images and of what else is there, except the lock."""
        return sorted(file.name for file in self.directory.rglob("*") if file.suffix != ".lock")


PREPARING = "preparing the servers for faster starts, once"
WHOLE = ["aot-1", "kafka.aot", "registry.aot"]


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caches:
    found, java = Caches(tmp_path), tmp_path / "java"
    java.write_text(SERVERS.replace("DIRECTORY", str(tmp_path)))
    java.chmod(0o700)
    artifacts = Artifacts(java, (), java, found.recorded)
    cluster = "bridge_sandbox.cluster.cluster"
    monkeypatch.setattr(f"{cluster}.obtain", lambda progress: artifacts)

    def answers(name: str) -> set[int]:
        """The broker 1 if the server of that name is ready; one that was killed leaves its file behind."""
        file = tmp_path / f"{name}-answers"
        pid = file.read_text().strip() if file.exists() else ""
        return {1} if pid and Path("/proc", pid).exists() else set()

    monkeypatch.setattr(f"{cluster}.servers.registry_answers", lambda port: bool(answers("registry")))
    monkeypatch.setattr(f"{cluster}.servers.Probe.brokers", lambda probe, cluster_id: answers("kafka"))
    return found


@pytest.mark.parametrize("port", ["free", "port-taken"])
def test_caches_are_recorded_once(caches: Caches, port: str) -> None:
    (caches.root / port).touch()
    assert caches.start() == [PREPARING]
    assert caches.images() == WHOLE
    assert caches.start() == []


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("kafka-fails", "kafka-1 ended while it was starting"),
        ("kafka-is-killed", "a server did not write its AOT cache"),
        ("registry-is-killed", "a server did not write its AOT cache"),
    ],
)
def test_a_recording_that_fails_leaves_nothing(caches: Caches, event: str, reason: str) -> None:
    (caches.root / event).touch()
    assert caches.start() == [PREPARING, f"starting without AOT caches, which takes longer: {reason}"]
    assert caches.images() == []
    (caches.root / event).unlink()
    assert caches.start() == [PREPARING]
    assert caches.images() == WHOLE


def test_a_broker_that_ends_between_two_looks_has_not_started(
    caches: Caches, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches.recorded.mkdir()
    is_alive = Server.is_alive

    def ends_after_the_look(server: Server) -> bool:
        alive = is_alive(server)
        if server.name == "kafka-1":
            server.stop(kill=True)
        return alive

    monkeypatch.setattr(Server, "is_alive", ends_after_the_look)
    with pytest.raises(DevError, match="kafka-1 ended while it was starting"):
        caches.start()


def test_caches_of_old_versions_and_killed_recordings_are_removed(caches: Caches) -> None:
    other = caches.directory / "aot-2-temporary" / "recorded"
    other.mkdir(parents=True)
    with ExitStack() as recording:
        recording.enter_context(files.lock(caches.directory / "aot.lock", files.silent, ""))

        def end_recording(line: str) -> None:
            if line == "waiting for another first start":
                assert other.is_dir()
                recording.close()

        assert caches.start(end_recording) == ["waiting for another first start", PREPARING]
    assert caches.images() == WHOLE
