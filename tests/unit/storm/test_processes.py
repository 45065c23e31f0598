"""Processes that faults hold, and what becomes of them when their owner dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge_sandbox.cluster.process import Server
from tests.harness import Bridge, until
from tests.processes import start_python
from tests.storm.processes import (
    CLOSING_SECONDS,
    EXCUSED_SECONDS,
    STARVED_SECONDS,
    HeldBridge,
    HeldServer,
)

GENEROUS = 60.0
WRITER = """
import time
while True:
    with open("written", "ab", buffering=0) as file:
        file.write(b"more")
    time.sleep(0.01)
"""


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no such call")


class Place:
    """Starts sleeping processes in the place of bridges."""

    def __init__(self, directory: Path, *command: str) -> None:
        self._command = command or ("-m", "http.server", "--bind", "127.0.0.1", "0")
        self.history: list[str] = []
        self.held = HeldBridge("bridge-1", self.start, lambda what, *_, **__: self.history.append(what))
        self._directory = directory

    def start(self) -> Bridge:
        log = self._directory / "log"
        return Bridge(start_python(self._command, os.environ, log, log), log)

    async def started(self) -> Bridge:
        """Watch, and return what that starts."""
        await self.held.watch()
        assert self.held.bridge is not None
        return self.held.bridge

    async def ended(self) -> None:
        """Wait for the end of the process, and watch."""
        assert self.held.bridge is not None
        await self.held.bridge.wait(GENEROUS)
        await self.held.watch()


async def test_a_bridge_is_down_until_the_last_fault_has_let_it_up(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert not place.held.stop("early")  # there was nothing to hit
    assert not place.held.take_down("early", kill=True)
    place.held.let_up("early")
    await place.held.watch()
    assert place.held.take_down("one", kill=True)
    place.held.take_down("two", kill=False)
    await place.ended()
    place.held.let_up("one")
    await place.held.watch()
    assert place.history == ["started", "ended"]
    place.held.let_up("two")
    await place.held.watch()
    assert place.history == ["started", "ended", "started"]
    assert place.held.unexpected == []
    await place.held.close()


@pytest.mark.parametrize(
    ("lost", "ended", "until"),
    [
        ((), (), 110 + EXCUSED_SECONDS),
        ((112.5,), (), 112.5 + CLOSING_SECONDS),
        ((99.0, 122.5), (), 122.5 + CLOSING_SECONDS),  # starved
        ((110 + STARVED_SECONDS + 1,), (), 110 + EXCUSED_SECONDS),
        ((112.5,), (99.0, 105.0), 105 + CLOSING_SECONDS),  # killed while it was stopped
    ],
)
def test_a_stopped_holder_is_excused_until_it_has_noticed(
    tmp_path: Path, lost: tuple[float, ...], ended: tuple[float, ...], until: float
) -> None:
    log = tmp_path / "log"
    times = [datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z") for at in lost]
    log.write_text("".join(f'{{"event": "ownership lost", "timestamp": "{at}"}}\n' for at in times))
    held = Place(tmp_path).held
    unused: Any = None
    held._processes.append(Bridge(unused, log))
    held._ended += ended
    assert held.holds_until(100, 110) == until


async def test_a_bridge_that_ends_by_itself_is_reported_and_replaced(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (await place.started()).process.send_signal(signal.SIGABRT)
    await place.ended()
    assert place.held.unexpected == ["bridge-1 ended with -6"]
    assert place.history == ["started", "ended", "started"]
    await place.held.close()


async def test_a_bridge_that_does_not_end_is_reported_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.storm.processes.END_SECONDS", 0.2)
    place = Place(tmp_path)
    pid = (await place.started()).process.pid
    place.held.stop("one")
    await until(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", "a stop")
    place.held.take_down("two", kill=False)  # which it does not see before it is resumed
    await asyncio.sleep(0.4)
    await place.held.watch()
    assert place.held.unexpected == []
    place.held._stopped.clear()  # as if it ran, and ignored the signal
    async with asyncio.timeout(GENEROUS):
        while place.held.bridge is not None:
            await place.held.watch()
            await asyncio.sleep(0.05)
    assert place.held.unexpected == ["bridge-1 did not end within 0.2 s"]
    assert place.history == ["started", "ended"]


@pytest.mark.parametrize("excuse", [None, "stopped", "told to end", "address unread"])
async def test_a_bridge_that_does_not_answer_its_probes_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excuse: str | None
) -> None:
    monkeypatch.setattr("tests.storm.processes.PROBE_SECONDS", 0.01)
    monkeypatch.setattr("tests.storm.processes.HEALTH_SECONDS", 0.1)
    held, answers = Place(tmp_path).held, [True] * 20

    async def is_healthy(_: float) -> bool:
        await asyncio.sleep(0)
        return bool(answers and answers.pop())

    bridge: Any = SimpleNamespace(
        is_healthy=is_healthy, signal=lambda _: None, address=lambda: None, log=Path("log")
    )
    held.bridge = bridge
    held._unread |= {"one"} if excuse == "address unread" else set()
    held._stopped |= {"one"} if excuse == "stopped" else set()
    held._told_at = time.monotonic() if excuse == "told to end" else None
    probing = asyncio.create_task(held.probe())
    if excuse:
        await asyncio.sleep(0.6)
        assert held.unexpected == []
    else:
        await until(lambda: bool(held.unexpected), "a report")
        assert (held.unexpected[0], answers) == ("bridge-1 did not answer its probes for 0.1 s", [])
    probing.cancel()


@ON_LINUX
async def test_a_full_disk_ends_what_writes_and_lets_it_start_again(tmp_path: Path) -> None:
    history: list[str] = []
    server, file = (
        Server("writer", [sys.executable, "-c", WRITER], tmp_path, tmp_path / "log"),
        tmp_path / "written",
    )
    held = HeldServer(server, lambda what, *_: history.append(what))
    await held.watch()
    try:
        await until(file.exists, "something written")
        held.fill_disk("one")
        held.fill_disk("two")
        held.empty_disk("two")
        await until(lambda: not server.is_alive(), "its end")
        full = file.stat().st_size
        await held.watch()
        assert not server.is_alive()
        held.empty_disk("one")
        await held.watch()
        await until(lambda: file.stat().st_size > full, "more written")
        assert history == ["started", "started"]
    finally:
        assert await held.take_down("end", kill=True)
        assert not held.fill_disk("late")
