"""The join with all that it needs, on this machine: Kafka, registry, a simulated provider, bets and names.

Runs in the bridge's environment, and starts `join.py` with the Python of the one that it has for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path

from bridge.errors import BridgeError
from bridge.sandbox import cluster as dev
from bridge.sandbox.cluster.process import Server
from bridge.sandbox.provider.rest.settings import RestPolicy
from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from bridge.sandbox.provider.world.entities import Sizes

HERE = Path(__file__).resolve().parent
BRIDGE = (sys.executable, "-m", "bridge")
PROVIDER = SimulatorSettings(
    port=0,
    rate=10,
    history_seconds=30,
    resettle=0.1,
    sizes=Sizes(leagues=40, competitors=200, events=40),  # so that a few bets mention most of them
    api=RestPolicy(rate=1000, burst=1000),
)


def say(line: str) -> None:
    """On stderr: stdout is for the bets."""
    sys.stderr.write(f"{line}\n")


async def demonstrate(python: str, seconds: float | None, directory: Path, cluster: dev.Cluster) -> None:
    """Print bets with their names for so long, or until Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Simulator(PROVIDER) as provider:
        settings = settings_for(cluster, provider, directory)
        background = [
            Server(name, [*BRIDGE, name, *options], directory, directory / f"{name}.log", settings)
            for name, options in (("run", []), ("translations", ["--every", "10s"]))
        ]
        run, translations = background
        try:
            run.start()
            await say_and_wait(settings, stop, *BRIDGE, "topics", "apply")
            await say_and_wait(settings, stop, *BRIDGE, "tail", "--from-beginning", "-n", "200")
            await say_and_wait(settings, stop, *BRIDGE, "translations")
            translations.start()
            join = await start(settings, python, str(HERE / "join.py"))
            await until_over(join, stop, seconds)
        finally:
            for server in background:
                await asyncio.to_thread(server.stop)


def settings_for(cluster: dev.Cluster, provider: Simulator, directory: Path) -> dict[str, str]:
    """What the bridge and the join are told, as environment variables."""
    token = directory / "token"
    token.write_text(provider.rest.tokens.mint(provider.clock()), "utf-8")
    return {
        "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "BRIDGE_REGISTRY__URL": cluster.registry_url,
        "BRIDGE_FEED__BASE_URL": provider.url,
        "BRIDGE_FEED__START": "1m",
        "BRIDGE_API__BASE_URL": provider.url,
        "BRIDGE_API__TOKEN_FILE": str(token),
        "BRIDGE_API__LANGUAGES": '["en", "de", "sv", "el", "ja", "ar"]',
        "BRIDGE_API__REQUESTS_PER_SECOND": "200",
        "BRIDGE_WEB__PORT": "0",
        "Quix__State__Dir": str(directory / "state"),
    }


async def start(settings: dict[str, str], *command: str, quiet: bool = False) -> Process:
    """A command with these settings and no others; what it prints is printed, unless `quiet`."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}
    return await asyncio.create_subprocess_exec(
        *command, env={**others, **settings}, stdin=DEVNULL, stdout=DEVNULL if quiet else None
    )


async def say_and_wait(settings: dict[str, str], stop: asyncio.Event, *command: str) -> None:
    """A step that ends by itself. Raises BridgeError when it fails."""
    if stop.is_set():
        return
    said = " ".join(command[len(BRIDGE) - 1 :])
    say(said)
    step = await start(settings, *command, quiet=True)
    await until_over(step, stop, seconds=None)
    if step.returncode and not stop.is_set():
        raise BridgeError(f"`{said}` failed with exit {step.returncode}")


async def until_over(process: Process, stop: asyncio.Event, seconds: float | None) -> None:
    """Wait until a process has ended, a time is over, or `stop` is set; end it then."""
    ends = [asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())]
    await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    with suppress(ProcessLookupError):
        process.terminate()
    await process.wait()
    for task in ends:
        task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="of the environment with Quix Streams")
    parser.add_argument("--seconds", type=float, help="end after so long; by default on Ctrl-C")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-join-") as name:
        directory = Path(name)
        try:
            with dev.start(directory, kafka_port=0, registry_port=0, progress=say) as cluster:
                asyncio.run(demonstrate(options.python, options.seconds, directory, cluster))
        except BridgeError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
