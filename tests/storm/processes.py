"""Processes that run unless a fault keeps them from it, as under a supervisor that restarts them at once."""

from __future__ import annotations

import asyncio
import re
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from bridge_sandbox.cluster.process import Server
from tests.harness import END_SECONDS, Bridge
from tests.processes import Piped

Note = Callable[..., None]
"""Writes into the history of a round: what happened, to whom, and more."""

CLOSING_SECONDS = 1.0
"""From the end of a connection to the provider's notice, on a busy machine."""
EXCUSED_SECONDS = 5.0
"""How long after its end a fault still explains that a connection is replaced: its holder must notice it, one
that was stopped by hearing from the coordinator of its group."""
STARVED_SECONDS = 15.0
"""How long that may take when the holder says itself when it has noticed."""
HEALTH_SECONDS = 20.0
"""For so long a process that nothing stops may fail its probes: three of them, as in k8s/base, but faster."""
UNHEARD_TENTHS = 200
"""For how many tenths of a second one that is told to end may go on while nobody reads its log."""
REST_SECONDS = 3.0
"""From an end that a person has to act on to the next start."""
TOPOLOGY = 6
ASKED = re.compile(r"bridge checkpoint set --revision (\d+)")
"""What such a message tells an operator to type."""
PROBE_SECONDS, ANSWER_SECONDS = 1.0, 5.0
"""From probe to probe, and the time-out of one, as there."""


class HeldBridge:
    """A place for a bridge: one that has ended is followed by another."""

    def __init__(self, name: str, start: Callable[[], Bridge], note: Note) -> None:
        self.name = name
        self.unexpected: list[str] = []
        """How processes ended that nobody had asked to."""
        self._start, self._note = start, note
        self._down: set[str] = set()
        self._stopped: set[str] = set()
        self._processes: list[Bridge] = []
        self._ended: list[float] = []
        """When each was seen to have ended."""
        self._codes: set[int] = set()
        """The exit codes that what was sent to this process may have."""
        self._told_at: float | None = None
        """When it was told to end, or was resumed after that."""
        self._healthy_at = time.monotonic()
        """When it answered last, or could not."""
        self._may_end: dict[str, int] = {}
        """The exit codes with which it may end by itself, by the cause."""
        self._unread: set[str] = set()
        """The faults in which nobody reads its log."""
        self._rests_until = 0.0
        self.asks_for: int | None = None
        """The revision that it has named, when it ended because topics are others, or lack records."""
        self.bridge: Bridge | None = None

    def may_end(self, cause: str, code: int | None = None) -> None:
        """Expect that it ends by itself with a code; without one, no more."""
        if code is None:
            del self._may_end[cause]
        else:
            self._may_end[cause] = code

    def hang_log(self, key: str) -> bool:
        """Read its log no more, until the fault is over. Returns whether there was a process."""
        self._unread.add(key)
        if self.bridge is None:
            return False
        self._read_log(on=False)
        return True

    def read_log(self, key: str) -> None:
        """End that fault."""
        self._unread.discard(key)
        if self.bridge is not None and not self._unread:
            self._read_log(on=True)
            self._healthy_at = time.monotonic()

    def _read_log(self, *, on: bool) -> None:
        process = self.bridge and self.bridge.process
        if isinstance(process, Piped):
            process.read_log(on=on)

    async def end_unheard(self) -> None:
        """SIGTERM, while nobody reads its log; one that does not end of it is reported. Another starts."""
        asked = self.bridge
        if self._end(signal.SIGTERM):
            for _ in range(UNHEARD_TENTHS):
                if self.bridge is not asked or self._stopped:
                    return
                await asyncio.sleep(0.1)
            self.unexpected.append(f"{self.name} did not end while nobody read its log")

    def take_down(self, key: str, *, kill: bool) -> bool:
        """End it, and keep it down until the fault is over. Returns whether there was a process."""
        self._down.add(key)
        return self._end(signal.SIGKILL if kill else signal.SIGTERM)

    def let_up(self, key: str) -> None:
        """End that fault."""
        self._down.discard(key)

    def stop(self, key: str) -> bool:
        """SIGSTOP, until the fault is over or the process has died. Returns whether there was one."""
        self._stopped.add(key)
        return self._send(signal.SIGSTOP)

    def resume(self, key: str) -> None:
        """End that fault."""
        self._stopped.discard(key)
        if self.bridge is not None and not self._stopped:
            self.bridge.signal(signal.SIGCONT)
            self._told_at = self._told_at and time.monotonic()
            self._healthy_at = time.monotonic()

    def holds_until(self, stopped: float, resumed: float) -> float:
        """Return until when a process that was stopped may have kept a connection that was no longer its own.

        That is until it died of something else, or has found out that it is not the owner any more.
        """
        if died := [at for at in self._ended if stopped <= at <= resumed]:
            return died[0] + CLOSING_SECONDS
        lost = [at for at in self._losses() if resumed <= at <= resumed + STARVED_SECONDS]
        return min(lost) + CLOSING_SECONDS if lost else resumed + EXCUSED_SECONDS

    def _losses(self) -> list[float]:
        """Return when its processes have found out that they had lost the feed."""
        lines = (line for bridge in self._processes for line in bridge.lines())
        lost = (line["timestamp"] for line in lines if line.get("event") == "ownership lost")
        return [datetime.fromisoformat(at).timestamp() for at in lost]

    async def watch(self) -> None:
        """Start another if the last one has ended and none is to be down. One that does not end is killed."""
        if self._told_at and not self._stopped and time.monotonic() > self._told_at + END_SECONDS:
            self.unexpected.append(f"{self.name} did not end within {END_SECONDS:g} s")
            self._codes |= {-signal.SIGKILL}
            self._send(signal.SIGKILL)
            self._told_at = None
        if self.bridge is not None and (code := self.bridge.process.poll()) is not None:
            expected = code in {*self._codes, *self._may_end.values()}
            self._read_log(on=True)
            if code == TOPOLOGY:
                asked = ASKED.findall(self.bridge.text())
                self.asks_for = int(asked[-1]) if asked else None
                self._rests_until = time.monotonic() + REST_SECONDS
            if code == -signal.SIGTERM and not self._unread and not self.bridge.dies_of_sigterm():
                expected = False  # it should have committed, and left the group
            if not expected:
                self.unexpected.append(f"{self.name} ended with {code}")
            self._note("ended", self.name, code=code, expected=expected)
            self._ended.append(time.time())
            self.bridge, self._told_at = None, None
            self._stopped.clear()
        if self.bridge is None and not self._down and time.monotonic() > self._rests_until:
            self._codes = set()
            self.bridge = self._start()
            self._processes.append(self.bridge)
            self._healthy_at = time.monotonic()
            if self._unread:
                self._read_log(on=False)
            self._note("started", self.name, log=self.bridge.log.name)

    async def probe(self) -> None:
        """Ask for /healthz as Kubernetes does, until cancelled. One that does not answer is reported."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            asked = self.bridge
            if asked is None or await self._answers(asked):
                self._healthy_at = time.monotonic()
            elif self.bridge is asked and time.monotonic() > self._healthy_at + HEALTH_SECONDS:
                self.unexpected.append(f"{self.name} did not answer its probes for {HEALTH_SECONDS:g} s")
                self._note("unhealthy", self.name, log=asked.log.name)
                self._healthy_at = time.monotonic()

    async def _answers(self, asked: Bridge) -> bool:
        """Whether it does, or cannot be asked: only its log says where."""
        if self._stopped or self._told_at or (self._unread and asked.address() is None):
            return True
        return await asked.is_healthy(ANSWER_SECONDS)

    async def close(self) -> None:
        """SIGTERM; returns when it has ended. One that does not is reported, and killed."""
        self._down.add("end")
        self._stopped.clear()
        self._send(signal.SIGCONT)
        self._end(signal.SIGTERM)
        while self.bridge is not None:
            await asyncio.sleep(0.1)
            await self.watch()

    def _end(self, number: signal.Signals) -> bool:
        sent = self._send(number)
        if sent:  # one that is told to end before it listens to signals may die of it
            self._codes |= {-signal.SIGKILL} if number is signal.SIGKILL else {0, -signal.SIGTERM}
            self._told_at = self._told_at or time.monotonic()
        return sent

    def _send(self, number: signal.Signals) -> bool:
        """Send the process a signal. Returns whether there is one, be it stopped."""
        if self.bridge is None or self.bridge.process.poll() is not None:
            return False
        self.bridge.signal(number)
        return True


class HeldServer:
    """A server of the cluster."""

    def __init__(self, server: Server, note: Note) -> None:
        self.name = server.name
        self._server, self._note = server, note
        self._down: set[str] = set()
        self._stopped: set[str] = set()
        self._full: set[str] = set()
        """The faults that have filled its disk."""
        self._lock = asyncio.Lock()

    def file(self, name: str) -> Path:
        """Return the place of a file of its own."""
        return self._server.directory / name

    async def take_down(self, key: str, *, kill: bool) -> bool:
        """End it, and keep it down until the fault is over. Returns whether there was a process."""
        self._down.add(key)
        async with self._lock:
            was_alive = self._server.is_alive()
            await asyncio.to_thread(self._server.stop, kill=kill)
        return was_alive

    def let_up(self, key: str) -> None:
        """End that fault."""
        self._down.discard(key)

    def stop(self, key: str) -> bool:
        """SIGSTOP, until the fault is over or the process has died. Returns whether there was one."""
        self._stopped.add(key)
        return self._signal("suspend")

    def resume(self, key: str) -> None:
        """End that fault."""
        self._stopped.discard(key)
        if not self._stopped:
            self._signal("resume")

    def fill_disk(self, key: str) -> bool:
        """Let no file of it become longer; what that ends is not started again until the fault is over.

        Returns whether there was a process.
        """
        self._down.add(key)
        self._full.add(key)
        return self._limit_files(full=True)

    def empty_disk(self, key: str) -> None:
        """End that fault."""
        self._full.discard(key)
        if not self._full:
            self._limit_files(full=False)
        self._down.discard(key)

    async def watch(self) -> None:
        """Start it if it has ended and is not to be down. Does not wait for one that is about to end."""
        if self._down:
            return
        async with self._lock:
            if self._down or self._server.is_alive():
                return
            self._stopped.clear()
            self._server.reap()
            await asyncio.to_thread(self._server.start)
            self._note("started", self.name)

    def _limit_files(self, *, full: bool) -> bool:
        identity = self._server.identity
        if identity is not None and identity.find() is not None:
            with suppress(ProcessLookupError):
                _, hard = resource.prlimit(identity.pid, resource.RLIMIT_FSIZE)
                resource.prlimit(identity.pid, resource.RLIMIT_FSIZE, (0 if full else hard, hard))
                return True
        return False

    def _signal(self, method: str) -> bool:
        process: Any = self._server.identity and self._server.identity.find()
        if process is None:
            return False
        getattr(process, method)()
        return True
