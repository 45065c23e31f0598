"""Commands as processes, started cold or forked from a server that has imported the bridge.

The imports of a command take about a second of CPU, and the tests on Kafka start more than a thousand. A fork
has everything else of a process: environment, files, signals, threads and exit code.
"""

from __future__ import annotations

import atexit
import fcntl
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from ctypes import CDLL
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from typing import Protocol

from bridge_sandbox.cluster.process import Server

INHERITED = dict(os.environ)
"""The environment of the test run, before any test has changed it."""
SERVER = multiprocessing.get_context("forkserver")
"""There is one in each process, so this one is for all tests."""
SERVER.set_forkserver_preload(["tests.imported"])
_PR_SET_PDEATHSIG = 1
_F_SETPIPE_SZ = 1031
"""Of Linux; not in Python 3.11 on all systems."""
PIPE_BYTES = 4096
_ASKING = threading.Lock()
"""For an exit code, which can be read only once. The start of a process asks for those of all others."""


class Process(Protocol):
    """A process that was started; as `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def kill(self) -> None: ...


def start_cold(command: Sequence[str], environment: Mapping[str, str], stdout: Path, stderr: Path) -> Process:
    """Start `python -m command` as a user would. It dies with the test run."""
    return start_python(["-m", *command], environment, stdout, stderr)


def start_python(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    directory: Path | None = None,
) -> Process:
    """Start this Python with these arguments, in this directory or here. It dies with the test run."""
    with stdout.open("ab") as out, stderr.open("ab") as err:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=as_from_a_terminal,
        )


def send(server: Server, number: signal.Signals) -> None:
    """Send a signal to a server: after SIGSTOP it keeps its sockets and answers nothing."""
    assert server.identity
    os.kill(server.identity.pid, number)


class Forked:
    """A command that starts with its imports done. It dies with the test run."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> None:
        stdout.touch()
        stderr.touch()
        self._process = SERVER.Process(
            target=_main, args=(tuple(command), dict(environment), str(stdout), str(stderr)), daemon=True
        )
        with _ASKING:
            self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Negative for a signal; None while it runs."""
        return self.poll()

    def poll(self) -> int | None:
        with _ASKING:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        wait([self._process.sentinel], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Piped(Forked):
    """One whose stderr is a pipe of a page, which a thread copies to the file, unless told not to."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> None:
        stderr.touch()
        os.mkfifo(pipe := stderr.with_suffix(".pipe"))
        self._is_read = threading.Event()
        self._is_read.set()
        self._copying = threading.Thread(target=self._copy, args=(pipe, stderr), daemon=True)
        self._copying.start()
        super().__init__(command, environment, stdout, pipe)

    def read_log(self, *, on: bool) -> None:
        """Go on with the copying, or not. What a process that has ended had written is there on return."""
        if on:
            self._is_read.set()
        else:
            self._is_read.clear()
        if on and self.poll() is not None:
            self._copying.join(10)

    def _copy(self, pipe: Path, file: Path) -> None:
        with pipe.open("rb", buffering=0) as written, file.open("ab", buffering=0) as log:
            pipe.unlink()
            fcntl.fcntl(written, _F_SETPIPE_SZ, PIPE_BYTES)
            while self._is_read.wait() and (some := written.read(PIPE_BYTES)):
                log.write(some)


def _main(command: tuple[str, ...], environment: dict[str, str], stdout: str, stderr: str) -> None:
    """What `python -m command` does."""
    # It is what keeps the server alive: without it the server, and so each child, ends with the test run.
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    as_from_a_terminal()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, stdout, _APPEND), (2, stderr, _APPEND)):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    module, *arguments = command
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()


_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def as_from_a_terminal() -> None:
    """Ctrl-C ends it, also where a shell has started the tests in the background; and it dies with them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
