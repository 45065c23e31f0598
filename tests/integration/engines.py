"""The engines in `examples` as processes, beside a bridge and a simulated provider."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes
from bridge_sandbox.provider.world.words import LANGUAGES
from examples.engines import FOLDER, ROOT, command_of, needs_set_up
from tests.harness import Place
from tests.processes import INHERITED, as_from_a_terminal
from tests.tools import lacking

PROVIDER = SimulatorSettings(
    port=0,
    rate=15,
    history_seconds=30,
    resettle=0.2,
    sizes=Sizes(sports=3, leagues=12, competitors=60, events=15),
    api=RestPolicy(rate=1000, burst=1000),
)
"""Live, with bets enough in seconds."""


def set_up(engine: str) -> None:
    """Install what the engine needs, if anything, by the Makefile, one process at a time."""
    for tool, packages in {"go": "go.mod", "npm": "package.json"}.items():
        if (FOLDER / engine / packages).is_file() and shutil.which(tool) is None:
            lacking(f"{engine} needs {tool}")
    if not needs_set_up(engine):
        return
    environment = ROOT / ".venv" / engine
    inherited = {name: value for name, value in INHERITED.items() if not name.startswith("MAKE")}
    with environment.with_name(f"{engine}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = str((environment / ".set-up").relative_to(ROOT))
        made = subprocess.run(
            ["make", f"PYTHON={sys.executable}", target],
            cwd=ROOT,
            env=inherited,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert made.returncode == 0, made.stderr


class Engine:
    """An engine at a place, printing into a file. A context manager, which ends it."""

    def __init__(self, place: Place, engine: str, *options: str) -> None:
        set_up(engine)
        directory = place.directory / engine
        directory.mkdir(exist_ok=True)
        self._out, self._log = directory / "rows.jsonl", directory / "engine.log"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BRIDGE_")}
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command_of(engine), *options],
                cwd=directory,
                env=inherited | place.environment() | {"EXAMPLES_PYTHON": sys.executable},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                preexec_fn=as_from_a_terminal,
            )

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def rows(self) -> list[dict[str, Any]]:
        """The lines printed so far; the last one may be half there."""
        *lines, _ = self._out.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines]

    def text(self) -> str:
        """Its complete stderr."""
        return self._log.read_text("utf-8")

    async def ended(self, seconds: float = 180) -> int:
        """The exit code of one that ends by itself. Raises TimeoutExpired."""
        return await asyncio.to_thread(self.process.wait, seconds)

    async def end(self) -> int:
        """SIGTERM; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self.ended(60)


async def publish_names(place: Place, feed: Simulator) -> None:
    """Publish a complete snapshot of the provider's current names."""
    token = feed.rest.tokens.mint(feed.clock())
    ran = await asyncio.to_thread(
        place.run,
        *("translations", "--full"),
        API__BASE_URL=feed.url,
        API__TOKEN=token,
        API__LANGUAGES=json.dumps(LANGUAGES),
        API__REQUESTS_PER_SECOND="500",
    )
    assert ran.returncode == 0, ran.stderr


def abort(place: Place, records: dict[str, tuple[bytes, bytes]]) -> None:
    """Write a record to each of some topics, in a transaction that is aborted."""
    producer = place.open_transaction("aborting")
    for topic, (key, value) in records.items():
        producer.produce(f"{place.prefix}.{topic}", value, key)
    assert producer.flush(20) == 0
    producer.abort_transaction(20)


def misnamed(place: Place) -> dict[str, tuple[bytes, bytes]]:
    """A translation with another entry's texts, and a bet under a key that no bet has."""
    by_key: dict[bytes, bytes] = {}
    while b"region:100" not in by_key:  # the partitions of a snapshot become visible one by one
        by_key = {bytes(m.key() or b""): bytes(m.value() or b"") for m in place.read("translations")}
    [bet, *_] = place.read("bets")
    return {"translations": (b"sport:1", by_key[b"region:100"]), "bets": (b"aborted", bet.value() or b"")}
