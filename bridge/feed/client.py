"""The feed's socket: websockets' connection, with frames of any size and one queue of messages.

Redirects are not followed: each would be an attempt that is not in the ledger. No keep-alive pings are sent:
the provider sends pings.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection
from socket import gaierror
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as opening
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State

from bridge.clock import Clock
from bridge.clock_skew import Skew, from_dates
from bridge.config import FeedSettings, proxy_of, tls
from bridge.errors import FeedError, FeedLost, FeedRefused, FeedUnreached
from bridge.feed.framing import Inbox, Reader
from bridge.feed.protocol import HandshakeRequest
from bridge.feed.received import Received
from bridge.formatting import plain_error, retry_after, shortened
from bridge.masking import concealed

HANG_UP_SECONDS = 1.5
UNREAD_BYTES = 1024 * 1024
"""Answers that the provider may leave unread before the connection is aborted."""
QUEUE_MESSAGES = 2_000
QUEUE_BYTES = 4 * 1024 * 1024
"""Above these sizes the socket is not read: the provider is slowed down, nothing is dropped."""
TAKE_BYTES = 128 * 1024
"""Size of what is received at once, exceeded by the last message at most."""
TURN_BYTES = 4 * 1024 * 1024
"""Inflated bytes handled in one turn of the event loop."""
FRAME_BYTES = 256
"""Added for each frame: its fixed cost, in bytes inflated in the same time."""
EYEBALLS_SECONDS = 0.25
"""After so long without an answer, the next address of the host is tried (RFC 8305)."""
LATE_SECONDS = 0.5
"""An attempt that takes this much longer than it may stood still: a connection may have opened unseen."""


class LastRead:
    """When the socket was last read. More than `stall_after` seconds between two reads are a stall."""

    def __init__(self, clock: Clock, stall_after: float) -> None:
        self._clock = clock
        self._stall_after = stall_after
        self.at = clock()

    def was_stalled(self) -> bool:
        """Note that it is read now. Returns whether it had not been for long."""
        before, self.at = self.at, self._clock()
        return self.at.monotonic - before.monotonic > self._stall_after


class Connection(ClientConnection):
    """An open connection whose messages are received in bursts, by `receive_many`.

    `wake` is called when messages are waiting, or when the connection has ended; `clock` stamps messages.
    """

    def __init__(
        self,
        *args: Any,
        inbox: Inbox,
        stall_after: float,
        clock: Clock,
        wake: Callable[[], None],
        refusal_codes: Collection[int],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._reader = Reader()
        self._spent = 0
        """Bytes handled in this turn, of `TURN_BYTES`."""
        self._has_turn = False
        """Whether `_next_turn` is scheduled for data that was read and not handled."""
        self._reads = True
        """Whether the event loop reads the socket."""
        self._ended = False
        """Whether the library has seen the end of the messages."""
        self._hung_up = False
        self._lost: list[Exception | None] = []
        """The argument of `connection_lost`, until it is passed to the library."""
        self._inbox = inbox
        self._wake = wake
        self._refusal_codes = refusal_codes
        self.skew: Skew | None = None
        """The provider's clock in the handshake, minus our monotonic clock."""
        self.reading_paused = False
        """Whether the socket is not read because the queue is full."""
        self._last_read = LastRead(clock, stall_after)
        self.heard_at = self._last_read.at.monotonic
        """When data last arrived, monotonic seconds: a message, a part of one, or a protocol ping."""

    @property
    def ended(self) -> bool:
        """Whether no more messages will arrive; queued ones can still be received.

        True after a close frame, even if the provider or a proxy leaves the socket open.
        """
        return self.closed or self._ended

    @property
    def closed(self) -> bool:
        """Whether the socket is closed."""
        return self.protocol.state is State.CLOSED

    def data_received(self, data: bytes) -> None:
        """Called by the event loop with data read from the socket."""
        self._note_reading()
        self._reader.feed(data)
        self._handle()
        if self._reader.midway:
            self.heard_at = self._last_read.at.monotonic
        if self._inbox:
            self._wake()

    def _handle(self) -> None:
        """Handle data that was read, as far as the queue and the turn allow; schedule the rest."""
        self._spent, before = 0, len(self._inbox)
        while self._reader.more and self._spent < TURN_BYTES and not self._full and not self.closed:
            parts, place = self._reader.read(), 0
            while place < len(parts):
                if isinstance(part := parts[place], bytearray):
                    self._hand_on(bytes(part))
                    place += 1
                elif self._ended or self._hung_up:
                    place += 1
                else:
                    place = self._inbox.add_messages(parts, place, self._last_read.at.wall)
        if len(self._inbox) > before:
            self.heard_at = self._last_read.at.monotonic
        if self._lost and (not self._reader.more or self.closed):
            super().connection_lost(self._lost.pop())
        self._hold()

    def _hand_on(self, data: bytes) -> None:
        """Pass bytes to the library, which answers pings and the close by itself."""
        super().data_received(data)
        self._ended = self.protocol.close_rcvd is not None or self.protocol.parser_exc is not None
        self._must_be_read()

    def _next_turn(self) -> None:
        self._has_turn = False
        self._handle()
        if self._inbox:
            self._wake()

    def process_event(self, event: Event) -> None:
        """Called by the base class with the response, then with each frame."""
        if isinstance(event, Frame):
            self._spent += FRAME_BYTES + len(event.data)
            if event.fin or event.data:  # empty fragments could continue forever
                self.heard_at = self._last_read.at.monotonic
            if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                if not self._hung_up:
                    self._inbox.add(bytes(event.data), event.fin, self._last_read.at.wall)
                return
        super().process_event(event)

    def eof_received(self) -> None:
        """Called by the event loop at the end of the data; over TLS even while reading is paused."""
        if not self._reader.more:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop when the socket is closed. Received data is handled first."""
        self._lost = [exc]
        self._handle()
        self._wake()

    def note_alive(self) -> None:
        """Must be called each second without data: a longer pause counts as one in which nothing was read."""
        if self._reads:
            self._note_reading()

    def _note_reading(self) -> None:
        if self._last_read.was_stalled():
            self._inbox.after_read_pause = True

    def receive_many(self, most: int) -> list[Received]:
        """Return at most `most` messages, in order."""
        taken = self._inbox.take(most, TAKE_BYTES)
        if not self._reads:  # now there may be room for what was held back
            self._handle()
        return taken

    @property
    def waiting(self) -> int:
        """Number of messages that can be received without waiting."""
        return len(self._inbox)

    def reply(self, text: str) -> None:
        """Send a message without waiting for the provider to read it."""
        with contextlib.suppress(WebSocketException, OSError):  # already closed
            if self._must_be_read():
                self.protocol.send_text(text.encode())
                self.send_data()

    def _must_be_read(self) -> bool:
        """Return whether the provider reads our answers. If not, the connection is aborted."""
        unread = self.transport.get_write_buffer_size() > UNREAD_BYTES
        if unread:
            self.transport.abort()
        return not unread

    def end_reason(self) -> FeedError:
        """Return what ended the connection: FeedRefused if the close code means a limit."""
        protocol = self.protocol
        received = protocol.close_rcvd
        code = received.code if received else protocol.close_code
        detail = concealed(str(protocol.close_exc if self.closed else received or protocol.parser_exc))
        if code in self._refusal_codes:
            return FeedRefused(f"close code {code}", detail)
        return FeedLost(f"the connection ended: {detail}")

    async def disconnect(self) -> None:
        """Close with a closing handshake, within HANG_UP_SECONDS. Queued and later messages are dropped.

        The socket is read all the same: the provider's close frame follows what it had sent before. A
        cancellation closes the socket at once.
        """
        self._hung_up = True
        self._inbox.clear()
        self._handle()
        with contextlib.suppress(TimeoutError, OSError, WebSocketException):
            try:
                async with asyncio.timeout(HANG_UP_SECONDS):
                    await self.close()
            except BaseException:  # lost leadership cancels this: the next owner connects at once
                self.transport.abort()
                raise

    @property
    def _full(self) -> bool:
        return len(self._inbox) >= QUEUE_MESSAGES or self._inbox.bytes >= QUEUE_BYTES

    def _hold(self) -> None:
        """Pause or resume reading: data that was read and not handled comes first."""
        self.reading_paused = self._full
        if self.closed:
            return
        if self._reader.more and not self.reading_paused and not self._has_turn:
            self._has_turn = True
            self.loop.call_soon(self._next_turn)
        reads = not self.reading_paused and not self._reader.more
        if reads != self._reads:
            self._reads = reads
            if reads:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()


async def connect(
    settings: FeedSettings, request: HandshakeRequest, wake: Callable[[], None], clock: Clock
) -> Connection:
    """Open a connection, in one attempt.

    Raises FeedRefused if the provider answers with another status, FeedLost if it does not answer or the
    answer is invalid, FeedUnreached if no connection to its host was open, which a proxy says as soon as
    it is, and SettingsError if the proxy or the certificate authority cannot be used.
    """
    proxy = proxy_of("feed", request.url, settings.proxy)
    opened = False

    def create(*args: Any, **kwargs: Any) -> Connection:
        nonlocal opened
        opened = True  # the library asks for the protocol once the socket, or the proxy's tunnel, is open
        return Connection(
            *args,
            inbox=Inbox(settings.max_message_bytes),
            stall_after=settings.stall_seconds,
            clock=clock,
            wake=wake,
            refusal_codes=settings.refusal_close_codes,
            **kwargs,
        )

    def lost(reason: str) -> FeedLost:
        took = clock().monotonic - asked_at
        unreached = not opened and took <= settings.connect_timeout_seconds + LATE_SECONDS
        return FeedUnreached(reason) if unreached else FeedLost(reason)

    # Where one of the host's addresses is dead, the next is tried, as `provider_clock` does.
    options: dict[str, Any] = {"create_connection": create, "happy_eyeballs_delay": EYEBALLS_SECONDS}
    asked_at = clock().monotonic
    if request.url.startswith("wss:"):
        options["ssl"] = tls.context("feed", settings)
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
        # The answer may repeat the request, credential included.
        body = concealed((error.response.body or b"").decode("utf-8", "replace"))
        status = error.response.status_code
        headers = error.response.headers
        # A cached answer has an old date.
        dates, now = [] if "Age" in headers else headers.get_all("Date"), clock()
        skew = from_dates(dates, asked_at, now.monotonic)
        date = dates[0] if dates else None
        pauses = [retry_after(header, date, now.wall) for header in headers.get_all("Retry-After")]
        hint = "Is feed.base_url (BRIDGE_FEED__BASE_URL) right? " if status == 404 else ""
        detail = f"{hint}{shortened(body.strip())}"
        longest = max((pause for pause in pauses if pause is not None), default=None)
        raise FeedRefused(f"HTTP {status}", detail, status, skew, longest) from None
    except InvalidHandshake as error:
        raise lost(f"the handshake failed: {concealed(str(error))}") from None
    except gaierror as error:
        host = urlsplit(proxy or request.url).hostname
        raise lost(f"no connection: {host}: {plain_error(error)}") from None
    except (OSError, EOFError) as error:  # timeouts and TLS errors among them
        raise lost(f"no connection: {concealed(plain_error(error))}") from None
    except Exception as error:  # noqa: BLE001  # an odd answer ends this attempt only
        raise lost(f"no connection: {concealed(f'{type(error).__name__}: {error}')}") from None
    assert isinstance(connection, Connection)
    dates = connection.response.headers.get_all("Date") if connection.response else []
    connection.skew = from_dates(dates, asked_at, clock().monotonic)
    return connection


class _Once(opening):
    """Follows no redirects."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc
