"""One server process: started under its supervisor, known again by pid and start time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bridge.errors import DevError
from bridge_sandbox.cluster import supervisor
from bridge_sandbox.cluster.files import open_private

TAIL_LINES = 20
STOP_SECONDS = 15.0
_TAIL_BYTES = 64 * 1024
_STACK_FRAMES = ("\tat ", "\t... ")
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
"""Nothing else of ours reaches the servers: Quarkus takes settings, and Java options, from any variable."""


@dataclass(frozen=True)
class Identity:
    """Identifies a process across time: a pid alone may have been reused."""

    pid: int
    started: float
    """Unix seconds, from the operating system."""

    def find(self) -> psutil.Process | None:
        """Return the process, or None if it has ended, even if its pid was reused."""
        try:
            process = psutil.Process(self.pid)
            # Start times come from the boot time, which moves a little when the clock is corrected.
            same = abs(process.create_time() - self.started) < 2
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def stop_all(identities: Sequence[Identity], grace: float = STOP_SECONDS) -> None:
    """Stop processes together: SIGTERM, then SIGKILL for those still there after `grace` seconds."""
    processes = [process for identity in identities if (process := identity.find())]
    for process in processes:
        _signal(process, terminate=grace > 0)
    _, alive = psutil.wait_procs(processes, timeout=grace)
    for process in alive:
        _signal(process, terminate=False)
    psutil.wait_procs(alive, timeout=5)


def _signal(process: psutil.Process, *, terminate: bool) -> None:
    try:
        if terminate:
            process.terminate()
            process.resume()  # a paused process would not see the signal
        else:
            process.kill()
    except psutil.NoSuchProcess:
        pass


def tail(log: Path, since: int = 0, lines: int = TAIL_LINES) -> str:
    """The last lines of a log, of what was written after its first `since` bytes.

    Without stack frames: 20 lines of a Java stack would say where, and not what.
    """
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since, size - _TAIL_BYTES))
            written = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join([line for line in written if not line.startswith(_STACK_FRAMES)][-lines:])


@dataclass
class Server:
    """A program, where it runs and where it logs. It can be started and stopped any number of times."""

    name: str
    command: Sequence[str]
    directory: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    identity: Identity | None = None
    """The process that was started last."""
    _supervisor: subprocess.Popen[bytes] | None = None
    _log_start: int = 0

    def start(self) -> None:
        """Start it, owned by this process: it dies with us. Raises DevError when the supervisor fails."""
        self.directory.mkdir(0o700, parents=True, exist_ok=True)
        kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        with open(self.log, "ab", opener=open_private) as log:
            self._log_start = log.tell()
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, *self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.directory,
                env={**kept, **self.environment},
                umask=0o077,
            )
        assert self._supervisor.stdout is not None
        with self._supervisor.stdout as answer:
            line = answer.readline()
        if not line:
            self.reap()
            raise DevError(f"{self.name} could not be started:\n{self.log_tail()}")
        pid = int(line)
        try:
            self.identity = Identity(pid, psutil.Process(pid).create_time())
        except psutil.NoSuchProcess:  # ended at once: its log says why
            self.identity = Identity(pid, 0.0)

    def is_alive(self) -> bool:
        """Whether the program runs; a paused one does."""
        return self.identity is not None and self.identity.find() is not None

    def stop(self, *, kill: bool = False) -> None:
        """Stop it and wait until it is gone. `kill` gives it no chance to finish anything."""
        if self.identity is not None:
            stop_all([self.identity], grace=0 if kill else STOP_SECONDS)
        self.reap()

    def reap(self) -> None:
        """Wait for the supervisor of a program that has ended."""
        if self._supervisor is not None:
            assert self._supervisor.stdin is not None
            self._supervisor.stdin.close()
            self._supervisor.wait()
            self._supervisor = None

    def wait(self, seconds: float) -> bool:
        """Wait for a program that ends by itself; False when it did not in time."""
        assert self._supervisor is not None
        try:
            self._supervisor.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.reap()
        return True

    def detach(self) -> None:
        """Let go of it: from now on it outlives this process."""
        if self._supervisor is not None:
            assert self._supervisor.stdin is not None
            self._supervisor.stdin.write(b"stay\n")
            self._supervisor.stdin.close()
            self._supervisor.returncode = 0  # Popen warns of a child left running, which is the point here
            self._supervisor = None

    def log_tail(self) -> str:
        """The end of what it logged since its last start."""
        return tail(self.log, self._log_start)

    def has_logged(self, *texts: str) -> bool:
        """Whether one of the texts is in what it logged since its last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            content = log.read()
        return any(text.encode() in content for text in texts)
