"""The connection to the simulated provider without a socket, and its faults."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from math import inf
from urllib.parse import parse_qs, urlsplit

from bridge.clock import Clock
from bridge.clock_skew import Skew, from_dates
from bridge.config import FeedSettings
from bridge.errors import FeedError, FeedLost, FeedRefused, FeedUnreached
from bridge.feed.client import LastRead
from bridge.feed.protocol import HandshakeRequest
from bridge.feed.received import Oversized, Received
from bridge_sandbox.provider.feed import Connection as Peer
from bridge_sandbox.provider.feed import Farewell, Provider, Refusal

QUEUE_MESSAGES = 100
CHUNK = 50
UNKNOWN = "who are you?"
"""Why a handshake without the right token is refused."""


@dataclass
class Network:
    """The network between bridge and provider."""

    there: float = 0.02
    """Seconds until the provider sees a handshake."""
    back: float = 0.02
    """Seconds until its answer is seen."""
    down_until: float = 0.0
    """Until then nobody is reached, loop seconds."""
    fails_after: float = 1.0
    """Seconds until an attempt that reaches nobody has failed."""
    answers_lost: int = 0
    """So many handshakes arrive, and their answers never do."""
    shows_date: bool = True
    """Whether the provider's answers carry a `Date`."""
    early: int = 0
    """Seconds by which a replay begins earlier than requested."""
    altered: Callable[[bytes], bytes | Oversized] = bytes
    """What becomes of a message on its way."""
    token: str = ""
    """What the provider wants to see as a bearer token; nothing when empty."""


class Connection:
    """An open connection (`bridge.service.interfaces.FeedConnection`). It reads while its queue has room."""

    def __init__(
        self,
        feed: Feed,
        settings: FeedSettings,
        peer: Peer,
        skew: Skew | None,
        wake: Callable[[], None],
        clock: Clock,
    ) -> None:
        self.skew = skew
        self.reading_paused = False
        self.ended = False
        self._feed = feed
        self._peer = peer
        self._settings = settings
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._queue: deque[Received] = deque()
        self._after_read_pause = False
        self._last_read = LastRead(clock, settings.stall_seconds)
        self.heard_at = self._last_read.at.monotonic
        self._end: FeedError = FeedLost("disconnected")
        self.read()

    @property
    def waiting(self) -> int:
        """Return the number of messages that can be received now."""
        return len(self._queue)

    @property
    def caught_up(self) -> bool:
        """Whether all that was published has been taken."""
        return not (
            self.ended or self._peer.is_replaying or self._peer.due <= self._feed.moment() or self._queue
        )

    def read(self) -> None:
        """Read what the provider has sent by now, and again when it sends more."""
        if self._timer:
            self._timer.cancel()
        now = self._feed.moment()
        while not self.ended and self._peer.due <= now:
            if farewell := self._peer.farewell:
                self._end_with(farewell)
                return
            self.reading_paused = len(self._queue) >= QUEUE_MESSAGES
            if self.reading_paused:
                return
            if bodies := self._peer.frames(now, CHUNK):
                self._receive(bodies)
        if not self.ended and self._peer.due < inf:
            self._timer = self._loop.call_at(self._feed.loop_time(self._peer.due), self.read)

    def note_alive(self) -> None:
        """Note that the event loop is free."""
        if not self.reading_paused:
            self._note_reading()

    def receive_many(self, most: int) -> list[Received]:
        """Return up to `most` messages, in order."""
        taken = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        if self.reading_paused and taken:
            self.reading_paused = False
            self._loop.call_soon(self.read)
        return taken

    def reply(self, text: str) -> None:
        """Answer a ping."""
        self._feed.replies.append(text)

    def end_reason(self) -> FeedError:
        """Return why the connection ended."""
        return self._end

    async def disconnect(self) -> None:
        """Close the connection."""
        self.cut()

    def cut(self) -> None:
        """The socket is closed, by whomever; the provider takes note at once."""
        self.ended = True
        if self._timer:
            self._timer.cancel()
        self._feed.provider.disconnect(self._peer)

    def _end_with(self, farewell: Farewell) -> None:
        kind = FeedRefused if farewell.code in self._settings.refusal_close_codes else FeedLost
        self._end = kind(f"close code {farewell.code}")
        self.cut()
        self._wake()

    def _receive(self, bodies: list[bytes]) -> None:
        self._note_reading()
        self.heard_at = self._last_read.at.monotonic
        for body in map(self._feed.network.altered, bodies):
            self._queue.append(Received(body, self._last_read.at.wall, self._after_read_pause))
            self._after_read_pause = False
        self._wake()

    def _note_reading(self) -> None:
        """Mark messages after a long pause: they may have been sent long ago."""
        self._after_read_pause |= self._last_read.was_stalled()


class Feed:
    """Connects to the provider. `clock` is the machine's, `epoch` the provider's time at loop time 0."""

    def __init__(self, provider: Provider, network: Network, clock: Clock, epoch: float) -> None:
        self.provider = provider
        self.network = network
        self.clock = clock
        self.replies: list[str] = []
        """What pings were answered with."""
        self._epoch = epoch
        self._loop = asyncio.get_running_loop()
        self._open: Connection | None = None

    def moment(self) -> float:
        """Return the provider's time: Unix seconds that never step."""
        return self._epoch + self._loop.time()

    def paused(self, seconds: float) -> None:
        """Note that the client's machine was paused this long while the provider went on."""
        self._epoch += seconds
        self.poke()

    def loop_time(self, moment: float) -> float:
        """Return a time of the provider as loop time."""
        return moment - self._epoch

    @property
    def caught_up(self) -> bool:
        """Whether the client has taken all that was published."""
        return self._open is not None and self._open.caught_up

    def poke(self) -> None:
        """Let connected clients see that the provider has changed."""
        if self._open is not None:
            self._open.read()

    def cut(self) -> None:
        """The client is no more."""
        if self._open is not None:
            self._open.cut()

    async def ask_time(self, _settings: FeedSettings) -> Skew | None:
        """Return the time by the provider's clock."""
        asked = self.clock().monotonic
        await self._reach()
        await asyncio.sleep(self.network.there + self.network.back)
        return self._skew(asked)

    async def connect(
        self, settings: FeedSettings, request: HandshakeRequest, wake: Callable[[], None], clock: Clock
    ) -> Connection:
        """Make one connection attempt."""
        network, asked = self.network, self.clock().monotonic
        await self._reach()
        arrived: asyncio.Future[Peer | Refusal] = self._loop.create_future()
        self._loop.call_later(network.there, self._arrive, request, arrived)
        answer = await arrived
        try:
            await self._answer(settings)
        except BaseException:
            if isinstance(answer, Peer):
                self.provider.disconnect(answer)
            raise
        if isinstance(answer, Refusal):
            if answer.close_code is None:
                status = answer.status
                pause = None if answer.retry_after is None else float(answer.retry_after)
                raise FeedRefused(f"HTTP {status}", answer.reason, status, self._skew(asked), pause)
            answer = self._dismissed(answer.close_code)
        self._open = Connection(self, settings, answer, self._skew(asked), wake, clock)
        return self._open

    async def _reach(self) -> None:
        if self._loop.time() < self.network.down_until:
            await asyncio.sleep(self.network.fails_after)
            raise FeedUnreached("no connection: unreachable")

    def _arrive(self, request: HandshakeRequest, arrived: asyncio.Future[Peer | Refusal]) -> None:
        """Let the handshake arrive, whether its sender still lives or not."""
        if arrived.cancelled() and self.provider.active:
            return  # overtaken by its successor: the provider finds the socket closed
        token = self.network.token
        is_known = not token or request.headers.get("Authorization") == f"Bearer {token}"
        denied = None if is_known else Refusal(401, UNKNOWN)
        revision = int(parse_qs(urlsplit(request.url).query)["revision"][0])
        answer = self.provider.connect(self.moment(), revision and revision - self.network.early, denied)
        if not arrived.done():
            arrived.set_result(answer)
        elif isinstance(answer, Peer):
            self.provider.disconnect(answer)

    async def _answer(self, settings: FeedSettings) -> None:
        network = self.network
        if network.answers_lost:
            network.answers_lost -= 1
            await asyncio.sleep(settings.connect_timeout_seconds - network.there)
            raise FeedLost("no connection: timed out")
        await asyncio.sleep(network.back)

    def _skew(self, asked: float) -> Skew | None:
        """Return the skew by the `Date` of an answer, with the time of its transfer."""
        if not self.network.shows_date:
            return None
        written = self.provider.log.stream.clock.reading(self.moment() - self.network.back)
        return from_dates([formatdate(int(written), usegmt=True)], asked, self.clock().monotonic)

    def _dismissed(self, code: int) -> Peer:
        """Accept a connection and close it before anything is sent."""
        peer = Peer(self.provider, self.moment(), self.moment(), -1)
        peer.is_active, peer.farewell = False, Farewell(code, "refused")
        return peer
