"""A network with faults: TCP links between processes, in a process of its own that only forwards.

    with Network() as network:
        network.open("bridge-1>provider", ("127.0.11.100", 8900), ("127.0.0.1", 8900))
        network.begin("bridge-1>provider", "fault 7", Condition(cut=True))
        network.end("bridge-1>provider", "fault 7")

A link is one-way in who connects to whom, and may have several addresses. Its faults add up. No byte is lost
within a connection that stays open: what is held back arrives later, in order, as TCP would have it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum
from math import inf
from typing import Any, Self

Address = tuple[str, int]
"""Host and port."""

BUFFER_BYTES = 256 * 1024
"""Of what is held back, for each direction of a connection; beyond it the sender has to wait."""
_RESET_SECONDS = 0.05
"""From half a record to the reset, so that the half arrives."""
_ABORTIVE = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose close is a reset."""


class Way(IntEnum):
    """A direction, as seen from the one who connects."""

    THERE = 0
    BACK = 1


@dataclass(frozen=True)
class Condition:
    """What a link does to its connections; by default nothing."""

    cut: bool = False
    """Connections are reset, new ones refused."""
    holds_there: bool = False
    """Nothing passes towards the one who was connected to, neither data nor the end of a connection."""
    holds_back: bool = False
    """The same in the other direction. Both are a black hole: connections are accepted, and nothing comes."""
    delay: float = 0.0
    """Seconds for which each byte is under way."""
    bytes_per_second: float = inf
    """For each direction, of all connections together."""


def together(conditions: Iterable[Condition]) -> Condition:
    """Return the condition of a link with all these faults."""
    found = list(conditions)
    return Condition(
        any(each.cut for each in found),
        any(each.holds_there for each in found),
        any(each.holds_back for each in found),
        max((each.delay for each in found), default=0.0),
        min((each.bytes_per_second for each in found), default=inf),
    )


class Network:
    """The process that forwards, as its owner sees it. A context manager; the process ends with it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, and all connections with it."""
        self._process.communicate()

    def open(self, link: str, listen: Address, target: Address) -> Address:
        """Forward what connects to `listen` to `target`. Port 0 is any free one; returns the address.

        Raises OSError when the address is taken.
        """
        host, port = self._ask(do="open", link=link, listen=listen, target=target)
        return host, port

    def begin(self, link: str, fault: str, condition: Condition) -> None:
        """Begin a fault of a link."""
        finite = {name: value for name, value in asdict(condition).items() if value != inf}
        self._ask(do="begin", link=link, fault=fault, condition=finite)

    def end(self, link: str, fault: str) -> bool:
        """End it. Returns whether there was a connection meanwhile, be it one without another side."""
        return bool(self._ask(do="end", link=link, fault=fault))

    def reset(self, link: str) -> int:
        """Reset each connection after half of what it receives next. Returns how many there are."""
        return int(self._ask(do="reset", link=link))

    def connections(self, link: str) -> int:
        """Return how many connections there are, of those that the one who was connected to knows."""
        return int(self._ask(do="connections", link=link))

    def _ask(self, **command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise OSError(answer["error"])
        return answer["result"]


class _Link:
    """The connections from one to another, and the faults between them."""

    def __init__(self) -> None:
        self.faults: dict[str, Condition] = {}
        self.condition = Condition()
        self.sides: set[_Side] = set()
        """Both of each connection."""
        self.felt: set[str] = set()
        """The faults that some connection has felt."""
        self._routes: list[tuple[Address, Address]] = []
        self._servers: list[asyncio.Server] = []
        self._free = [0.0, 0.0]
        """When each direction has passed on what it has taken."""
        self._may_connect = asyncio.Event()
        self._may_connect.set()

    async def open(self, listen: Address, target: Address) -> Address:
        """Listen at an address; returns it with its port."""
        server = await self._listen(listen, target)
        found: Address = server.sockets[0].getsockname()[:2]
        self._routes.append((found, target))
        return found

    async def change(self) -> None:
        """Apply the faults as they are now."""
        was, self.condition = self.condition, together(self.faults.values())
        if self.sides:
            self.felt |= self.faults.keys()
        if self.condition.cut and not was.cut:
            for server in self._servers:
                server.close()
            self._servers.clear()
            for side in list(self.sides):
                side.reset()
        elif was.cut and not self.condition.cut:
            for listen, target in self._routes:
                await self._listen(listen, target)
        if self.condition.holds_there:
            self._may_connect.clear()
        else:
            self._may_connect.set()
        # A side that has closed is kept by the other one only: its end may have been held back.
        for side in {side for one in self.sides for side in (one, one.peer) if side is not None}:
            side.flush()

    def reset(self) -> int:
        """Have every connection break in the middle of what it receives next."""
        for side in self.sides:
            side.is_breaking = True
        return self.connections()

    def connections(self) -> int:
        """Return how many there are with both sides."""
        return sum(side.way is Way.BACK for side in self.sides)

    def holds(self, way: Way) -> bool:
        """Whether nothing passes in this direction."""
        return self.condition.holds_back if way else self.condition.holds_there

    def due(self, way: Way, size: int) -> float:
        """Return when so many bytes that are sent now arrive, by the event loop's clock."""
        now = asyncio.get_running_loop().time()
        self._free[way] = max(now, self._free[way]) + size / self.condition.bytes_per_second
        return self._free[way] + self.condition.delay

    async def _listen(self, listen: Address, target: Address) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Side(self, Way.THERE, target), *listen)
        self._servers.append(server)
        return server

    async def connect(self, client: _Side, target: Address) -> None:
        """Connect a client that was accepted, as soon as its request may pass."""
        await self._may_connect.wait()
        if client not in self.sides:  # it has given up, and sends no request for a connection any more
            return
        side = _Side(self, Way.BACK)
        try:
            await asyncio.get_running_loop().create_connection(lambda: side, *target)
        except OSError:
            client.reset()
            return
        client.peer, side.peer = side, client
        client.flush()
        side.flush()


class _Side(asyncio.Protocol):
    """One side of a connection: it takes what this side sends, and passes it on when the link lets it."""

    def __init__(self, link: _Link, way: Way, target: Address | None = None) -> None:
        self._link, self.way, self._target = link, way, target
        self.peer: _Side | None = None
        """None until the other side is connected."""
        self.is_breaking = False
        self._is_broken = False
        """Half a record was its last."""
        self._queue: deque[tuple[float, bytes]] = deque()
        """When what is due; no bytes are the end."""
        self._size = 0
        self._is_full = False
        """Whether this side takes no more for now."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._link.sides.add(self)
        self._link.felt |= self._link.faults.keys()
        if self._target is not None:
            self._connecting = asyncio.ensure_future(self._link.connect(self, self._target))

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        if self.is_breaking and len(data) > 1 and self.peer is not None:
            self._is_broken = True
            self.is_breaking = self.peer.is_breaking = False
            data = data[: len(data) // 2]
            asyncio.get_running_loop().call_later(_RESET_SECONDS, self.reset)
        self._put(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._link.sides.discard(self)
        self._put(b"")

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        if self.peer is not None:
            self.peer.flush()

    def reset(self) -> None:
        """Reset both sides now; what is held back is lost."""
        for side in (self, self.peer):
            if side is not None and not side._transport.is_closing():
                side._queue.clear()
                held: socket.socket = side._transport.get_extra_info("socket")
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTIVE)
                side._transport.abort()

    def flush(self) -> None:
        """Pass on what is due, and come again for what is not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        peer = self.peer
        if peer is None or self._link.holds(self.way):
            return
        loop = asyncio.get_running_loop()
        while self._queue and self._queue[0][0] <= loop.time() and not peer._is_full:
            _, data = self._queue.popleft()
            self._size -= len(data)
            if not data:
                peer._transport.close()
            elif not peer._transport.is_closing():
                peer._transport.write(data)
        if self._queue and not peer._is_full:
            self._timer = loop.call_at(self._queue[0][0], self.flush)
        if self._size <= BUFFER_BYTES:
            self._transport.resume_reading()

    def _put(self, data: bytes) -> None:
        self._queue.append((self._link.due(self.way, len(data)), data))
        self._size += len(data)
        if self._size > BUFFER_BYTES:
            self._transport.pause_reading()
        self.flush()


async def _serve() -> None:
    """Do what the lines of stdin say, until its end; a line of stdout answers each."""
    links: defaultdict[str, _Link] = defaultdict(_Link)
    loop = asyncio.get_running_loop()
    # A thread reads: it waits in the kernel, and a busy owner delays nothing.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        link = links[command["link"]]
        result: Any = None
        try:
            match command["do"]:
                case "open":
                    result = await link.open(tuple(command["listen"]), tuple(command["target"]))
                case "begin":
                    link.faults[command["fault"]] = Condition(**command["condition"])
                    await link.change()
                case "end":
                    link.faults.pop(command["fault"], None)
                    result = command["fault"] in link.felt
                    link.felt.discard(command["fault"])
                    await link.change()
                case "reset":
                    result = link.reset()
                case "connections":
                    result = link.connections()
            answer: dict[str, Any] = {"result": result}
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve())
