"""The bridge between a cluster and a simulated provider, on this machine; engines run beside it."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, Self

from bridge.errors import BridgeError
from bridge.formatting import format_duration
from bridge_sandbox.cluster import Cluster
from bridge_sandbox.cluster.process import Server
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes
from examples.engines import ROOT, command_of

BRIDGE = (sys.executable, "-m", "bridge")
LANGUAGES = '["en", "de", "sv", "el", "ja", "ar"]'
PROVIDER = SimulatorSettings(
    port=0,
    rate=10,
    history_seconds=30,
    resettle=0.1,
    sizes=Sizes(leagues=40, competitors=200, events=40),  # so that a few bets mention most of them
    api=RestPolicy(rate=1000, burst=1000),
)
"""Live."""
FIRST_BETS = 200
"""Live, the names of this many bets are fetched before an engine starts."""
RESETTLE = 0.16
"""Of ten thousand messages a tenth then settles a bet again: the first ones have none to settle again."""
DISORDER_SECONDS = 30.0
MOST_BETS = 200_000
"""At one a second, what the provider replays."""
PATIENCE = 900.0
"""Seconds after which something that should end is taken not to."""


def say(line: str) -> None:
    """Print on stderr: stdout is for what an engine prints."""
    sys.stderr.write(f"{line}\n")


def history_of(bets: int) -> SimulatorSettings:
    """Return a provider that has published so many bets, one a second, the last half a second ago."""
    history = {"rate": 1, "history_seconds": bets - 0.5, "resettle": RESETTLE}
    return PROVIDER.model_copy(update={**history, "max_out_of_orderness_seconds": DISORDER_SECONDS})


class _Program(NamedTuple):
    name: str
    command: list[str]
    environment: dict[str, str]
    directory: Path
    stdout: int | IO[bytes] | None


class Stack:
    """The programs of the bridge between a cluster and a provider. A context manager, which ends them.

    Once `stop` is set, everything that runs ends, and nothing more is started.
    """

    def __init__(self, cluster: Cluster, provider: Simulator, directory: Path, stop: asyncio.Event) -> None:
        self._directory, self._stop = directory, stop
        self._topics = {
            "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
            "BRIDGE_REGISTRY__URL": cluster.registry_url,
            "BRIDGE_TOPICS__PREFIX": "settlement",
        }
        token = directory / "token"
        token.write_text(provider.rest.tokens.mint(provider.clock()), "utf-8")
        self._settings = self._topics | {
            "BRIDGE_FEED__BASE_URL": provider.url,
            "BRIDGE_FEED__START": f"{int(provider.settings.history_seconds) // 60 + 5}m",
            "BRIDGE_API__BASE_URL": provider.url,
            "BRIDGE_API__TOKEN_FILE": str(token),
            "BRIDGE_API__LANGUAGES": LANGUAGES,
            "BRIDGE_API__REQUESTS_PER_SECOND": "200",
            "BRIDGE_WEB__PORT": "0",
        }
        self._servers: list[Server] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            await asyncio.to_thread(server.stop)

    async def publish(self, bets: int) -> None:
        """Start `bridge run`, and return when this many bets are in the topic, with their names.

        Raises BridgeError where a command fails.
        """
        self._start("run")
        await self._command("topics", "apply")
        await self._command("tail", "--from-beginning", "-n", str(bets))
        await self._command("translations")

    async def show(self, engine: str, seconds: float | None) -> None:
        """Run an engine beside the bridge for so long, or until `stop`; it prints on this program's stdout.

        Raises BridgeError where it fails.
        """
        self._start("translations", "--every", "10s")
        await self._finish(self._engine(engine), seconds)

    async def output(self, engine: str) -> Path:
        """Run an engine until it has processed all that is there; returns the file that it has printed into.

        Raises BridgeError where it fails or does not end.
        """
        file = self._directory / f"{engine}.jsonl"
        with file.open("wb") as stdout:
            await self._finish_in_time(self._engine(engine, "--until-end", stdout=stdout))
        return file

    def _engine(self, engine: str, *options: str, stdout: IO[bytes] | None = None) -> _Program:
        directory = self._directory / engine
        directory.mkdir()
        environment = self._topics | {"EXAMPLES_PYTHON": sys.executable}
        return _Program(engine, [*command_of(engine), *options], environment, directory, stdout)

    async def _command(self, *arguments: str) -> None:
        program = _Program(
            f"bridge {' '.join(arguments)}", [*BRIDGE, *arguments], self._settings, ROOT, DEVNULL
        )
        if not self._stop.is_set():
            say(program.name)
        await self._finish_in_time(program)

    def _start(self, name: str, *options: str) -> None:
        log = self._directory / f"{name}.log"
        server = Server(name, [*BRIDGE, name, *options], ROOT, log, self._settings)
        self._servers.append(server)
        server.start()

    async def _finish_in_time(self, program: _Program) -> None:
        if not await self._finish(program, PATIENCE) and not self._stop.is_set():
            raise BridgeError(f"{program.name} did not end within {format_duration(PATIENCE)}")

    async def _finish(self, program: _Program, seconds: float | None) -> bool:
        """Run a program until it ends, a time is over, or `stop`. Returns whether it ended by itself.

        Raises BridgeError where it fails.
        """
        if self._stop.is_set():
            return False
        others = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}
        process = await asyncio.create_subprocess_exec(
            *program.command,
            cwd=program.directory,
            env=others | program.environment,
            stdin=DEVNULL,
            stdout=program.stdout,
        )
        ends = [asyncio.create_task(process.wait()), asyncio.create_task(self._stop.wait())]
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        code = process.returncode
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        for task in ends:
            task.cancel()
        if code and not self._stop.is_set():
            raise BridgeError(f"{program.name} failed with exit {code}")
        return code is not None
