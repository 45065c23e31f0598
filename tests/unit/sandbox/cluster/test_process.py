"""Processes under a supervisor: identity, end, pause, log."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from bridge_sandbox.cluster import process as process_module
from bridge_sandbox.cluster.files import make_private, write_atomically
from bridge_sandbox.cluster.process import Server, stop_all, tail


def program(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", f"import signal, sys, time\n{code}"]


SLEEPER = program("time.sleep(60)")
STUBBORN = program(
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('here', flush=True)\nwhile True: time.sleep(60)"
)
POLITE = program(
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit('bye')); print('here', flush=True); time.sleep(60)"
)
OWNER = """
import sys
from pathlib import Path
from bridge_sandbox.cluster.process import Server
server = Server("sleeper", sys.argv[2:], Path(sys.argv[1]), Path(sys.argv[1]) / "log")
server.start()
print(server.identity.pid, flush=True)
sys.stdin.readline()
server.detach()
print("detached", flush=True)
sys.stdin.readline()
"""


def eventually(condition: Callable[[], bool], seconds: float = 5) -> bool:
    """Poll: processes come and go in their own time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def open_to_others(directory: Path) -> list[str]:
    """What is below a directory and somebody else may read, write or enter."""
    return [str(path) for path in directory.rglob("*") if path.lstat().st_mode & 0o077]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server("sleeper", SLEEPER, tmp_path, tmp_path / "log")
    yield found
    found.stop(kill=True)


@contextmanager
def owner(directory: Path, code: str = OWNER) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """Another process that owns a sleeper, and the sleeper."""
    command = [sys.executable, "-c", code, str(directory), *SLEEPER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        child = psutil.Process(int(process.stdout.readline()))
        yield process, child
        process.kill()
        if child.is_running():
            child.kill()


def test_a_program_dies_with_its_owner_while_a_fork_of_the_owner_lives(tmp_path: Path) -> None:
    forking = OWNER.replace(
        "print(server", "import os\nif os.fork() == 0:\n  import time; time.sleep(8)\nprint(server", 1
    )
    with owner(tmp_path, forking) as (process, child):
        forks = [p for p in psutil.Process(process.pid).children() if "supervisor.py" not in str(p.cmdline())]
        process.kill()
        assert eventually(lambda: not child.is_running())
        assert [fork.is_running() for fork in forks] == [True]
        forks[0].kill()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the death of a parent to its child")
def test_a_program_dies_with_its_killed_supervisor(server: Server) -> None:
    server.start()
    assert server.identity
    psutil.Process(server.identity.pid).parent().kill()
    assert eventually(lambda: not server.is_alive())


def test_a_detached_program_outlives_its_owner(tmp_path: Path) -> None:
    with owner(tmp_path) as (process, child):
        assert process.stdin
        assert process.stdout
        print("go", file=process.stdin, flush=True)
        assert process.stdout.readline() == "detached\n"
        process.kill()
        process.wait()
        assert not eventually(lambda: not child.is_running(), seconds=1.5)


def test_a_terminal_interrupt_does_not_reach_the_program(server: Server) -> None:
    server.start()
    assert server.identity
    assert os.getsid(server.identity.pid) != os.getsid(0)


def test_a_paused_program_is_alive_and_still_stops_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "STOP_SECONDS", 60)  # on a busy machine
    server = Server("polite", POLITE, tmp_path, tmp_path / "log")
    server.start()
    assert eventually(lambda: server.has_logged("here"))
    assert server.identity
    process = psutil.Process(server.identity.pid)
    process.suspend()
    assert eventually(lambda: process.status() == psutil.STATUS_STOPPED)
    process.resume()
    assert eventually(lambda: process.status() != psutil.STATUS_STOPPED)
    process.suspend()
    assert eventually(lambda: process.status() == psutil.STATUS_STOPPED)
    assert server.is_alive()
    server.stop()
    assert server.log_tail().splitlines() == ["here", "bye"]


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    server = Server("stubborn", STUBBORN, tmp_path, tmp_path / "log")
    server.start()
    assert server.identity
    assert eventually(lambda: server.has_logged("here"))
    stop_all([server.identity], grace=0.1)
    assert not server.is_alive()
    server.reap()


def test_a_recycled_pid_is_never_stopped(server: Server) -> None:
    server.start()
    assert server.identity
    earlier = dataclasses.replace(server.identity, started=server.identity.started - 60)
    assert earlier.find() is None
    stop_all([earlier])
    assert server.is_alive()


def test_a_program_that_does_not_exist_says_so_in_its_log(tmp_path: Path) -> None:
    server = Server("nothing", ["/does/not/exist"], tmp_path, tmp_path / "log")
    server.start()
    assert eventually(lambda: not server.is_alive())
    server.reap()
    assert server.log_tail() == "/does/not/exist: No such file or directory"


def test_only_harmless_variables_reach_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_FEED__AUTH_VALUE", "secret")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx8g")
    code = (
        "import os; print(sorted({'BRIDGE_FEED__AUTH_VALUE', 'JAVA_TOOL_OPTIONS', 'OWN'} & set(os.environ)))"
    )
    server = Server("env", [sys.executable, "-c", code], tmp_path, tmp_path / "log", {"OWN": "1"})
    server.start()
    assert server.wait(10)
    assert server.log_tail() == "['OWN']"


def test_the_tail_leaves_stack_frames_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    frames = "\tat kafka.Kafka.main(Kafka.scala:75)\n" * 50
    log.write_text(f"fatal: no\n{frames}Caused by: this\n\t... 18 more\n")
    assert tail(log) == "fatal: no\nCaused by: this"


def test_what_a_server_writes_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        writer = program("import os; os.mkdir('made'); open('made/file', 'w').close(); print('here')")
        server = Server("writer", writer, tmp_path / "run", tmp_path / "log")
        server.start()
        assert server.wait(10)
        write_atomically(tmp_path / "state", "text")
        shared = tmp_path / "shared"
        shared.mkdir()
        make_private(shared)
    finally:
        os.umask(before)
    assert tail(tmp_path / "log") == "here"
    assert open_to_others(tmp_path) == []
