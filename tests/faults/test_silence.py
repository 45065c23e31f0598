"""Who leads, lives: nothing stops the event loop for long, and where it stops, another bridge takes over."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx2

from bridge_sandbox.cluster.ports import free_port
from bridge_sandbox.provider.faults import Drop, Garbage
from tests.harness import Bridge, Place, assert_exact, simulate
from tests.processes import Process, as_from_a_terminal

PIPE_BYTES = 4096
"""The smallest pipe that Linux makes."""


class Unread:
    """Starts commands whose stderr is a pipe that nobody reads, until it is `read`."""

    def __init__(self) -> None:
        self._end, self._writer = os.pipe()
        fcntl.fcntl(self._writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> Process:
        stderr.touch()
        with stdout.open("ab") as out:
            started = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=self._writer,
                preexec_fn=as_from_a_terminal,
            )
        os.close(self._writer)
        return started

    def read(self) -> list[str]:
        """The events of all lines, to the end of the process."""
        with os.fdopen(self._end) as lines:
            return [json.loads(line)["event"] for line in lines]


async def is_live(address: str, bridge: Bridge) -> None:
    """Wait until the bridge is, by its answer to the probe."""
    bridge._address = address

    async def state() -> object:
        try:
            return (await bridge.get("/readyz", 2)).json()["state"]
        except httpx2.HTTPError:
            return None

    deadline = time.monotonic() + 60
    while await state() != "Live":
        assert time.monotonic() < deadline, "it is not live"
        await asyncio.sleep(0.2)


async def test_a_log_that_nobody_reads_stops_nothing(place: Place) -> None:
    place.start = unread = Unread()
    surprise = json.dumps({"pingId": "1", **{f"unknown-{n:0>40}": n for n in range(60)}})
    async with simulate() as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url, WEB__PORT=str(port := free_port()))
        await is_live(f"http://127.0.0.1:{port}", bridge)
        feed.inflict(Garbage(body=surprise))
        assert_exact(await place.settled(feed, bridge))
        bridge.signal(signal.SIGTERM)
        assert await bridge.wait(20) == 0
    events = await asyncio.to_thread(unread.read)
    assert events[0] == "starting"


async def test_a_standby_takes_over_from_an_owner_that_stands_still(place: Place) -> None:
    async with simulate() as feed:
        owner = place.freezing(3, FEED__BASE_URL=feed.url)
        await owner.reaches("Live")
        standby = place.bridge(FEED__BASE_URL=feed.url)
        await standby.reaches("Standby")
        owner.signal(signal.SIGUSR1)
        await standby.reaches("Live")
        assert await owner.wait() == 1
        assert owner.lines()[-1]["event"] == "the event loop stands still, ending the process"
        assert_exact(await place.settled(feed, standby))
        assert feed.breaches == []
        assert await standby.end() == 0


async def test_sigterm_ends_a_bridge_that_stands_still(place: Place) -> None:
    async with simulate() as feed:
        owner = place.freezing(3600, FEED__BASE_URL=feed.url)
        await owner.reaches("Live")
        owner.signal(signal.SIGUSR1)
        owner.signal(signal.SIGTERM)
        assert await owner.wait(20) == 1


async def test_a_secret_file_that_becomes_a_pipe_stops_nothing(place: Place, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hush-of-the-feed")
    async with simulate(auth="bearer", auth_value="hush-of-the-feed") as feed:
        bridge = await place.live(feed, FEED__AUTH="bearer", FEED__AUTH_VALUE_FILE=str(token))
        token.unlink()
        os.mkfifo(token)
        feed.inflict(Drop())
        await bridge.reaches("Live", 2)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
