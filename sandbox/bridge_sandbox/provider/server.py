"""The simulated provider on its sockets: drives `feed` and `rest.app`. Only this module reads the time."""

from __future__ import annotations

import asyncio
import errno
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from email.utils import formatdate
from functools import partial
from http.client import responses
from typing import Any, Self
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from bridge_sandbox.provider.control import Control
from bridge_sandbox.provider.faults import Fault
from bridge_sandbox.provider.feed import Attempt, Connection, Farewell, Provider
from bridge_sandbox.provider.http_server import WsgiServer, base_url
from bridge_sandbox.provider.rate_limits import Limits
from bridge_sandbox.provider.recording import Bets, Speed, Step
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.routes import ROOT
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.stream import Published, Reader
from bridge_sandbox.provider.world.recorded import Names

PATH = "/feed/settlement/v4"

_BATCH = 100
"""Messages generated before the event loop runs again."""
_TICK = 0.002
"""Shortest wait in seconds: at a high rate, several messages share one timer."""
_BATCH_BYTES = 1 << 20
_CONTROL_SECONDS = 10
"""Time limit for the event loop to make a change for the control endpoint."""


class Simulator:
    """A provider that listens inside `async with`. Its other methods may be used there only.

    Reads what was recorded, if the settings name files, at once; raises RecordingError.
    """

    def __init__(
        self,
        settings: SimulatorSettings | None = None,
        on_attempt: Callable[[Attempt], None] = lambda _: None,
    ) -> None:
        self.settings = settings or SimulatorSettings()
        self._recorded = Bets(self.settings.bets) if self.settings.bets else None
        self._names = Names(self.settings.names) if self.settings.names else None
        self.replies: deque[str | bytes] = deque(maxlen=10_000)
        """The latest messages from clients."""
        self._on_attempt = on_attempt
        self._kicked = asyncio.Event()
        self._accepted: dict[ServerConnection, Connection | Farewell] = {}
        """The accepted handshakes, including those whose connection is closed at once."""
        self._releases: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        settings = self.settings
        # The wall clock may be set back; the times of publication must not go back.
        self._clock_offset = time.time() + settings.clock_skew_seconds - time.monotonic()
        origin = self.now() - settings.history_seconds
        stream = settings.stream(origin, self._recorded)
        limits = Limits(
            settings.limits_scale, bucket_may_overflow=settings.bucket_may_overflow, settings=settings.limits
        )
        self._provider = Provider(stream, limits, settings, self._on_attempt)
        self.rest = Rest(stream.world, settings.api, stream.clock, self._names)
        """The REST side: tokens, faults, truth."""
        self.connections = self._provider.attempts
        """The log of connections: every attempt with its revision and answer."""
        self.recording = self._provider.recording
        """What is played; None if bets are made."""
        self.breaches = self._provider.breaches
        """Every breach of a limit so far."""
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            control = self._serve_control()
            self.control_url = base_url("http", control.server_name, control.server_port) if control else None
            """Base address of the control endpoint; None without one."""
            if control:
                stack.push_async_callback(asyncio.to_thread, control.close)
            try:
                self._server = await self._serve(settings.port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or "port" in settings.model_fields_set:
                    raise
                self._server = await self._serve(0)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        self._server.close()
        await self._server.wait_closed()
        await asyncio.gather(*self._releases)

    @property
    def url(self) -> str:
        """Base address for clients."""
        host: str = next(iter(self._server.sockets)).getsockname()[0]
        return base_url("https" if self.settings.certificate else "http", host, self.port)

    @property
    def port(self) -> int:
        """The port it listens on: not that of the settings if that was 0 or taken."""
        return int(next(iter(self._server.sockets)).getsockname()[1])

    def now(self) -> float:
        """Return the time at which things happen, Unix seconds. It never goes back."""
        return time.monotonic() + self._clock_offset

    def clock(self) -> float:
        """Return what the provider's clock shows, Unix seconds: equal to `now` until a `ClockJump`."""
        return self._provider.log.stream.clock.reading(self.now())

    def published(self, until: float | None = None) -> Iterator[Published]:
        """Generate the truth: everything published until a moment, by default now, in order.

        It begins with the history. A message takes about 0.1 ms.
        """
        return self.truth().until(self.now() if until is None else min(until, self.now()))

    def truth(self) -> Reader:
        """Return a reader of the truth, from the history on."""
        log = self._provider.log
        return Reader(log, log.stream.origin)

    def stop_publishing(self) -> float:
        """End the stream now; pings continue. Returns the moment, Unix seconds."""
        self._provider.log.end = min(self._provider.log.end, self.now())
        self._kicked.set()
        return self._provider.log.end

    def inject(self, body: bytes) -> Published:
        """Publish a raw message now, as part of the truth and of later replays.

        It is sent as a text frame if it is UTF-8, otherwise as a binary frame.
        """
        message = self._provider.log.inject(body, self.now())
        self._kicked.set()
        return message

    def play(self, command: Speed | Step) -> float:
        """Go on with the recording as commanded. Returns the moment, Unix seconds. Raises NotRecorded."""
        now = self.now()
        self._provider.play(command, now)
        self._kicked.set()
        return now

    def inflict(self, fault: Fault) -> float:
        """Inject a fault. Returns the moment, Unix seconds."""
        now = self.now()
        self._provider.inflict(fault, now)
        for socket, connection in self._accepted.items():
            # A client that does not read would hold up an orderly close.
            if isinstance(connection, Connection) and connection.farewell and connection.farewell.abort:
                socket.transport.abort()
        self._kicked.set()
        return now

    def _serve_control(self) -> WsgiServer | None:
        settings = self.settings
        if settings.control_port is None:
            return None
        control = Control(
            self._provider,
            self.rest,
            now=self.now,
            inflict=self.inflict,
            play=self.play,
            stop=self.stop_publishing,
            on_loop=self._on_loop,
        )
        return WsgiServer(control, settings.host, settings.control_port)

    def _on_loop(self, call: Callable[[], Any]) -> Any:
        async def called() -> Any:
            return call()

        future = asyncio.run_coroutine_threadsafe(called(), self._loop)
        try:
            return future.result(_CONTROL_SECONDS)
        finally:
            future.cancel()  # a change that was too late for the answer must not happen after it

    async def _serve(self, port: int) -> Server:
        return await serve(
            self._serve_connection,
            self.settings.host,
            port,
            ssl=self.settings.tls(),
            process_request=self._answer,
            process_response=self._stamp,
            compression=None if self.settings.compression == "none" else self.settings.compression,
            # The interface's pings are messages. A client that stops reading must not be cut off.
            ping_interval=None,
        )

    def _answer(self, socket: ServerConnection, request: Request) -> Response | Awaitable[Response] | None:
        """Return None to accept the handshake, or the response that refuses it."""
        address = urlsplit(request.path)
        if address.path.startswith(ROOT):
            return self._answer_rest(request)
        if address.path != PATH:
            return socket.respond(404, f"there is only {PATH} here\n")
        header = partial(_header, request)
        if header("Upgrade").lower() != "websocket":
            return None  # the library refuses it; no attempt is spent
        answer = self._provider.connect(self.now(), *self.settings.handshake(address.query, header))
        if isinstance(answer, Connection):
            self._let_in(socket, answer)
        elif answer.close_code is None:
            response = socket.respond(answer.status, f"{answer.reason}\n")
            if answer.retry_after is not None:
                response.headers["Retry-After"] = str(answer.retry_after)
            return response
        else:
            self._let_in(socket, Farewell(answer.close_code, answer.reason))
        return None

    def _let_in(self, socket: ServerConnection, answer: Connection | Farewell) -> None:
        self._accepted[socket] = answer
        # The handler does not run if the client disconnects during the handshake.
        release = asyncio.create_task(self._release(socket, answer))
        self._releases.add(release)
        release.add_done_callback(self._releases.discard)
        self._kicked.set()  # a replaced connection ends now

    async def _answer_rest(self, request: Request) -> Response:
        answer = self.rest.answer(self.now(), request.path, _header(request, "Authorization"))
        await asyncio.sleep(answer.delay)
        headers = {"Connection": "close", "Content-Length": str(len(answer.body)), **answer.headers}
        return Response(answer.status, responses.get(answer.status, ""), Headers(headers), answer.body)

    def _stamp(self, _socket: ServerConnection, _request: Request, response: Response) -> None:
        """Set the date of an answer to that of the provider's clock."""
        response.headers.pop("Date", None)
        response.headers["Date"] = formatdate(self.clock(), usegmt=True)

    async def _release(self, socket: ServerConnection, answer: Connection | Farewell) -> None:
        await socket.wait_closed()
        if isinstance(answer, Connection):
            self._provider.disconnect(answer)
        del self._accepted[socket]
        self._kicked.set()

    async def _serve_connection(self, socket: ServerConnection) -> None:
        connection = self._accepted.get(socket)
        if connection is None:  # the client has disconnected already
            return
        if isinstance(connection, Farewell):
            await socket.close(connection.code, connection.reason)
            return
        reader = asyncio.create_task(self._read(socket))
        try:
            with suppress(ConnectionClosed):
                await self._send(socket, connection)
        finally:
            reader.cancel()

    async def _read(self, socket: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            async for reply in socket:
                self.replies.append(reply)

    async def _send(self, socket: ServerConnection, connection: Connection) -> None:
        """Send what is due until the connection ends. Waits for a client that does not read."""
        while connection.is_active:
            for frame in connection.frames(self.now(), _BATCH, _BATCH_BYTES):
                await socket.send(_fragments(frame, self.settings.fragment_bytes), text=_is_text(frame))
            await self._sleep(connection.due)
        if farewell := connection.farewell:
            await socket.close(farewell.code, farewell.reason)

    async def _sleep(self, until: float) -> None:
        """Wait until a time, or until something changes."""
        if (delay := until - self.now()) <= 0:
            await asyncio.sleep(0)
            return
        self._kicked.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(delay, _TICK)):
                await self._kicked.wait()


def _header(request: Request, name: str) -> str:
    """Return all values of a header; empty without one."""
    return ", ".join(request.headers.get_all(name))


def _fragments(message: bytes, size: int) -> bytes | list[bytes]:
    """Return the message in one frame or, if it is longer than `size` bytes (0: any), in several."""
    if not size or len(message) <= size:
        return message
    return [message[start : start + size] for start in range(0, len(message), size)]


def _is_text(message: bytes) -> bool:
    """Whether the message is UTF-8, as a text frame has to be."""
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True
