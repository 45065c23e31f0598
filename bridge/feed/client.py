"""The socket: websockets' own connection, with frames of any size and one queue for all that comes.

Redirects are not followed, keep-alive pings are not sent: a dial is a dial, and the provider's pings
say whether it lives.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State
from websockets.proxy import get_proxy, parse_proxy
from websockets.uri import parse_uri

from bridge.clock import Clock
from bridge.clock_skew import Skew, from_dates
from bridge.config import FeedSettings, proxy_error, tls
from bridge.errors import FeedError, FeedLost, FeedRefused
from bridge.feed.framing import Assembler, Reader
from bridge.feed.protocol import Request
from bridge.feed.received import Received

HANG_UP_SECONDS = 1.5
UNREAD_BYTES = 1024 * 1024
"""Answers to pings that the provider may leave unread before the connection is given up."""
QUEUE_MESSAGES = 2_000
QUEUE_BYTES = 4 * 1024 * 1024
"""The socket is not read while more than this waits: the provider is slowed down, nothing is dropped."""
TAKE_BYTES = 128 * 1024
"""No more is taken at once, but for the last message."""
TURN_BYTES = 4 * 1024 * 1024
"""Of the library's frames, inflated: how much is handled before others on the event loop get their turn."""
FRAME_BYTES = 256
"""What a frame counts on top of that, since it costs as much as inflating so many, whatever is in it."""


class Connection(ClientConnection):
    """An open connection whose messages are taken in bursts, by `take`.

    `wake` is called when there is something to take, or when the connection is over; `clock` stamps what
    is read.
    """

    def __init__(
        self,
        *args: Any,
        assembler: Assembler,
        stall_after: float,
        clock: Clock,
        wake: Callable[[], None],
        without_secret: Callable[[str], str],
        refusal_codes: Collection[int],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._reader = Reader()
        self._spent = 0
        """Of `TURN_BYTES`, in this turn."""
        self._has_turn = False
        """Whether the event loop will call again for what has been read from the socket and not handled."""
        self._reads = True
        """Whether the event loop reads the socket."""
        self._ended = False
        """Whether the library has seen the end of the messages."""
        self._hung_up = False
        self._lost: list[Exception | None] = []
        """What the event loop said when the socket was closed, until the library is told."""
        self._assembler = assembler
        self._wake = wake
        self._without_secret = without_secret
        self._refusal_codes = refusal_codes
        self.skew: Skew | None = None
        """What the handshake says of the provider's clock, by our monotonic one."""
        self._queue: deque[Received] = deque()
        self._queued_bytes = 0
        self.held = False
        """Whether the socket is not read because too much waits."""
        self._stall_after = stall_after
        self._stalled = False
        self._clock = clock
        self._read_at = clock()
        self.heard_at = self._read_at.monotonic
        """When something last came, monotonic: a message, a part of one, or a ping of the protocol."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come; what is queued can still be taken."""
        return self.protocol.state is State.CLOSED

    def data_received(self, data: bytes) -> None:
        """Called by the event loop with what was read from the socket."""
        self._note_reading()
        self._reader.feed(data)
        self._handle()
        if self._reader.midway:
            self.heard_at = self._read_at.monotonic
        if self._queue:
            self._wake()

    def _handle(self) -> None:
        """Handle what was read from the socket, as far as there is room and time; then see about the rest."""
        self._spent, before = 0, len(self._queue)
        while self._reader.more and self._spent < TURN_BYTES and not self._full and not self.over:
            for piece in self._reader.read():
                if isinstance(piece, bytearray):
                    self._hand_on(bytes(piece))
                elif not self._ended:
                    self._add(piece, fin=True)
        if len(self._queue) > before:
            self.heard_at = self._read_at.monotonic
        if self._lost and (not self._reader.more or self.over):
            super().connection_lost(self._lost.pop())
        self._hold()

    def _hand_on(self, data: bytes) -> None:
        """Let the library see bytes; it answers pings and the end by itself."""
        super().data_received(data)
        self._ended = self.protocol.close_rcvd is not None or self.protocol.parser_exc is not None
        self._must_be_read()

    def _next_turn(self) -> None:
        self._has_turn = False
        self._handle()
        if self._queue:
            self._wake()

    def process_event(self, event: Event) -> None:
        """Called by the base class with each frame that it has seen, and first with the response."""
        if isinstance(event, Frame):
            self._spent += FRAME_BYTES + len(event.data)
            if event.fin or event.data:  # fragments with nothing in them could go on for ever
                self.heard_at = self._read_at.monotonic
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._add(bytes(event.data), event.fin)
                return
        super().process_event(event)

    def _add(self, data: bytes, fin: bool) -> None:
        """Queue the message that this fragment completes, if it does; drop it once we have hung up."""
        if self._hung_up:
            return
        body = self._assembler.add(data, fin)
        if body is not None:
            self._queue.append(Received(body, self._read_at.wall, self._stalled))
            self._stalled = False
            self._queued_bytes += len(body)

    def eof_received(self) -> None:
        """Called by the event loop at the end of what is sent; over TLS also while the socket is not read."""
        if not self._reader.more:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop when the socket is closed, by whomever. What has come is handled first."""
        self._lost = [exc]
        self._handle()
        self._wake()

    def note_alive(self) -> None:
        """To be called at least every second: while it is, and nothing holds it up, the socket is read."""
        if self._reads:
            self._note_reading()

    def _note_reading(self) -> None:
        now = self._clock()
        if now.monotonic - self._read_at.monotonic > self._stall_after:
            self._stalled = True
        self._read_at = now

    def take(self, most: int) -> list[Received]:
        """Up to `most` messages, in order."""
        taken: list[Received] = []
        queue, size = self._queue, 0
        while queue and len(taken) < most and size < TAKE_BYTES:
            message = queue.popleft()
            size += len(message.body)
            taken.append(message)
        self._queued_bytes -= size
        self._handle()
        return taken

    @property
    def waiting(self) -> int:
        """How many messages can be taken now."""
        return len(self._queue)

    def reply(self, text: str) -> None:
        """Send a message, and do not wait for the provider to read it: what it sends matters more."""
        with contextlib.suppress(WebSocketException, OSError):  # closed meanwhile: no news
            if self._must_be_read():
                self.protocol.send_text(text.encode())
                self.send_data()

    def _must_be_read(self) -> bool:
        """Whether the provider reads our answers; if it does not, the connection is given up."""
        unread = self.transport.get_write_buffer_size() > UNREAD_BYTES
        if unread:
            self.transport.abort()
        return not unread

    def end_reason(self) -> FeedError:
        """What ended the connection: FeedRefused where its close code is one for a limit."""
        detail = self._without_secret(str(self.protocol.close_exc))
        if self.protocol.close_code in self._refusal_codes:
            return FeedRefused(f"close code {self.protocol.close_code}", detail)
        return FeedLost(f"the connection ended: {detail}")

    async def disconnect(self) -> None:
        """Close politely, but not for longer than a moment. What is queued, and what still comes, is dropped.

        It is read all the same: the provider's answer comes after whatever it had sent.
        """
        self._hung_up = True
        self._queue.clear()
        self._queued_bytes = 0
        self._handle()
        try:
            async with asyncio.timeout(HANG_UP_SECONDS):
                await self.close()
        except (TimeoutError, OSError, WebSocketException):
            self.transport.abort()

    @property
    def _full(self) -> bool:
        return len(self._queue) >= QUEUE_MESSAGES or self._queued_bytes >= QUEUE_BYTES

    def _hold(self) -> None:
        """Read on, or not yet: what was read and is not handled comes first."""
        self.held = self._full
        if self.over:
            return
        if self._reader.more and not self.held and not self._has_turn:
            self._has_turn = True
            self.loop.call_soon(self._next_turn)
        reads = not self.held and not self._reader.more
        if reads != self._reads:
            self._reads = reads
            if reads:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()


async def dial(
    settings: FeedSettings, request: Request, wake: Callable[[], None], clock: Clock
) -> Connection:
    """Open a connection; one attempt, whatever comes of it.

    Raises FeedRefused when the provider answers with anything but an acceptance, FeedLost when it does
    not answer, or with what is no answer, SettingsError when the proxy or the certificate authority cannot
    be used.
    """
    proxy = _proxy(settings, request.url)

    def create(*args: Any, **kwargs: Any) -> Connection:
        assembler = Assembler(settings.max_message_bytes)
        return Connection(
            *args,
            assembler=assembler,
            stall_after=settings.stall_seconds,
            clock=clock,
            wake=wake,
            without_secret=request.without_secret,
            refusal_codes=settings.refusal_close_codes,
            **kwargs,
        )

    options: dict[str, Any] = {"create_connection": create}
    asked_at = clock().monotonic
    if request.url.startswith("wss:"):
        options["ssl"] = tls.context("feed", settings.ca_file)
    try:
        connection = await _Once(
            request.url,
            additional_headers=request.headers,
            compression="deflate" if settings.compression == "deflate" else None,
            proxy=proxy,
            open_timeout=settings.connect_timeout_seconds,
            ping_interval=None,
            close_timeout=HANG_UP_SECONDS,
            max_size=None,
            user_agent_header="settlement-bridge",
            **options,
        )
    except InvalidStatus as error:
        # A provider may well repeat what it was asked, the credential included.
        body = request.without_secret((error.response.body or b"").decode("utf-8", "replace"))
        status = error.response.status_code
        raise FeedRefused(f"HTTP {status}", body[:200].strip(), status) from None
    except InvalidHandshake as error:
        raise FeedLost(f"the handshake failed: {request.without_secret(str(error))}") from None
    except (OSError, EOFError) as error:  # a time-out, and whatever TLS finds wrong, among them
        detail = request.without_secret(str(error)) or type(error).__name__
        raise FeedLost(f"no connection: {detail}") from None
    except Exception as error:  # noqa: BLE001  # whatever an answer holds, it ends this attempt and no more
        detail = request.without_secret(f"{type(error).__name__}: {error}")
        raise FeedLost(f"no connection: {detail}") from None
    assert isinstance(connection, Connection)
    dates = connection.response.headers.get_all("Date") if connection.response else []
    connection.skew = from_dates(dates, asked_at, clock().monotonic)
    return connection


def _proxy(settings: FeedSettings, url: str) -> str | None:
    """The address of the proxy to use. Raises SettingsError."""
    if settings.proxy == "none":
        return None
    try:
        proxy = get_proxy(parse_uri(url)) if settings.proxy == "env" else settings.proxy
        if proxy is not None and parse_proxy(proxy).scheme.startswith("socks"):
            import_module("python_socks")
    except (InvalidProxy, ImportError, ValueError):
        raise proxy_error("feed") from None
    return proxy


class _Once(connect):
    """Follows no redirect: each would be one more attempt that nobody counted."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc
