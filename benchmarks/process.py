"""Processes of a benchmark: started by it, gone with it, and what each has used."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge_sandbox.cluster.process import Server

ROOT = Path(__file__).parents[1]
PATIENCE = 120.0
"""Seconds after which something that should come about is taken not to."""
_LOOK_SECONDS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12
"""Their places in /proc/PID/stat behind the name."""
_MEMORY = re.compile(r"^Vm(RSS|HWM):\s+(\d+) kB$", re.MULTILINE)


class BenchmarkFailed(BridgeError):
    """A contender did not do what it was measured for: there is no figure to give."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used: CPU in seconds since its start, memory in MB now and at most."""

    cpu: float
    rss: float
    peak: float


def usage(pid: int) -> Usage:
    """Of a process and of those below it that are there now. Raises BenchmarkFailed when it has ended."""
    used = []
    for process in _family(pid):
        try:
            used.append(_usage(process))
        except (OSError, LookupError):  # gone, or about to be
            if process == pid:
                raise BenchmarkFailed(f"process {pid} has ended") from None
    return Usage(*map(sum, zip(*used, strict=True)))


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _family(int(child))


def _usage(pid: int) -> tuple[float, float, float]:
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text()
    memory = {name: int(kb) / 1024 for name, kb in _MEMORY.findall(status)}
    return (int(stat[_UTIME]) + int(stat[_STIME])) / _TICKS, memory["RSS"], memory["HWM"]


class Program(Server):
    """A program that runs from the root of the checkout, with a log of its own."""

    @property
    def pid(self) -> int:
        """Of the last start."""
        assert self.identity is not None
        return self.identity.pid

    def text(self) -> str:
        """What it has logged since its last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")

    def said(self, name: str) -> Any:
        """The last value of this name among the JSON lines in its log; None where there is none yet."""
        lines = (json.loads(line) for line in reversed(self.text().splitlines()) if line.startswith('{"'))
        return next((line[name] for line in lines if name in line), None)

    def told(self, name: str, seconds: float = PATIENCE) -> Any:
        """The same as soon as there is one. Raises BenchmarkFailed."""
        self.wait_until(lambda: self.said(name) is not None, f"no {name!r}", seconds)
        return self.said(name)

    def to_its_end(self, seconds: float) -> Usage:
        """Wait for its end; returns what it had used when it was last sampled. Raises BenchmarkFailed."""
        used, deadline = usage(self.pid), time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > deadline:
                raise BenchmarkFailed(f"{self.name} does not end\n{self.log_tail()}")
            with suppress(BenchmarkFailed):  # it has just ended
                used = usage(self.pid)
            time.sleep(_LOOK_SECONDS)
        return used

    def wait_until(self, done: Callable[[], bool], otherwise: str, seconds: float = PATIENCE) -> None:
        """Wait while it runs. Raises BenchmarkFailed, with the end of its log, when that was in vain."""
        deadline = time.monotonic() + seconds
        while not done():
            if not self.is_alive() or time.monotonic() > deadline:
                raise BenchmarkFailed(f"{self.name}: {otherwise}\n{self.log_tail()}")
            time.sleep(0.005)


@contextmanager
def running(
    name: str, command: Sequence[str], environment: Mapping[str, str], directory: Path
) -> Iterator[Program]:
    """A program for as long as the block lasts; its log is `directory/name.log`."""
    program = Program(
        name, command, ROOT, directory / f"{name}.log", {"PYTHONPATH": str(ROOT), **environment}
    )
    program.start()
    try:
        yield program
    finally:
        program.stop()


def python(module: str, *arguments: object) -> list[str]:
    """The command that runs one of our modules with the Python that runs this."""
    return [sys.executable, "-m", module, *map(str, arguments)]


OTHER = "other build"


def bridge_of(build: Path | None, *arguments: object) -> tuple[list[str], dict[str, str]]:
    """The command of a bridge and its environment: that of another checkout with a .venv, or of this one."""
    if build is None:
        return python("bridge", *arguments), {}
    return [str(build / ".venv" / "bin" / "bridge"), *map(str, arguments)], {"PYTHONPATH": str(build)}
