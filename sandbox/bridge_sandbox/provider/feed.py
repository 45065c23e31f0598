"""The provider without its sockets: accepts connections, decides what is sent when, applies faults.

Time is an argument, in Unix seconds that never go back (the provider's clock may step: see `clock`). A
driver calls `connect` for each handshake, then `frames` of the connection: whenever `due`, and after a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

from pydantic import Field

from bridge_sandbox.provider import faults
from bridge_sandbox.provider.faults import (
    CloseCode,
    Fault,
    Ongoing,
    Pace,
    Pause,
    RetryAfter,
    Slow,
    Stall,
    Status,
)
from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.rate_limits import Breach, Kind, Limits
from bridge_sandbox.provider.recording import Recording, Speed, Step
from bridge_sandbox.provider.stream import LONGEST_SECONDS, Log, Reader, Source
from bridge_sandbox.provider.world.entities import mix

ACCEPTED = 101


class NotRecorded(LookupError):
    """A command for a recording, while none is played."""


@dataclass(frozen=True)
class Attempt:
    """A handshake in the log of connections."""

    at: float
    revision: int | None
    kind: Kind
    status: int
    """HTTP status of the answer; 101 if it was accepted, even if then refused with a close code."""
    reason: str
    """Why it was refused; empty if it was not."""
    since: float | None
    """Everything published at this moment or later is sent; None if it was refused."""
    close_code: int | None = None
    """Close code of a refusal after the handshake; None without one."""
    replaced: bool = False
    """Whether it closed another connection."""
    client: str = ""
    """The name whose credential it has; empty if that has no name."""
    holder: str = ""
    """The client whose connection was active; empty without one."""


@dataclass(frozen=True)
class Refusal:
    """The handshake is answered with this status or, with a close code, accepted and closed at once."""

    status: int
    reason: str
    close_code: int | None = None
    retry_after: int | str | None = None
    """The header `Retry-After` of the answer, if any."""


class Policy(Model):
    """What the interface leaves open, and how this provider does it."""

    second: Literal["refuse", "replace"] = "refuse"
    """Whether a second connection is refused or closes the first."""
    zero: Literal["nothing", "everything"] = "nothing"
    """What is replayed without a revision or with 0: nothing, or everything that is remembered."""
    refusal: Literal["status", "close"] = "status"
    """Whether a refusal is an HTTP status or a close code right after the handshake."""
    refusal_status: Status = 429
    """HTTP status of a refusal for a limit; 409 if another connection is active."""
    refusal_close_code: CloseCode = 1008
    """Close code of a refusal."""
    refusal_retry_after: RetryAfter | None = None
    """The header `Retry-After` of a refusal for a limit: seconds, or any text such as an HTTP date."""
    replay_early_seconds: Annotated[float, Field(ge=0, le=LONGEST_SECONDS)] = 0
    """How much earlier than requested a replay begins."""
    ping_seconds: Annotated[float, Field(gt=0, le=LONGEST_SECONDS)] = 5
    replay_rate: Annotated[float, Field(gt=0, allow_inf_nan=True)] = inf
    """Messages a second while a connection catches up; as fast as the client reads by default."""


@dataclass(frozen=True)
class Farewell:
    """How the provider ended a connection."""

    code: int
    reason: str
    abort: bool = False
    """Without a closing handshake."""


class Connection:
    """A place in the log, a ping clock and, while catching up, a pace.

    It is sent everything published from `since` on. `number` is its place in the log of connections, from 0;
    `client` is the name of who has it.
    """

    def __init__(
        self, provider: Provider, now: float, since: float, number: int = 0, client: str = ""
    ) -> None:
        self.number = number
        self.client = client
        self.is_active = True
        """False once the connection was dropped, replaced or closed."""
        self.farewell: Farewell | None = None
        """How the provider ended it, if it did."""
        self.half_open_until = -inf
        self.sent = 0
        """Number of messages sent, without pings."""
        self.is_replaying = True
        """False once everything that was published has been sent."""
        self._ongoing = provider.ongoing
        self._seed = provider.log.stream.world.seed
        self._reader = Reader(provider.log, since)
        self._replay = Pace(provider.policy.replay_rate, now)
        self._ping_seconds = provider.policy.ping_seconds
        self._pinged = now
        self._pings = 0

    @property
    def due(self) -> float:
        """When to call `frames` again: -infinity after its end, infinity while a fault lasts without end."""
        return min(self._message_due, self._ping_due) if self.is_active else -inf

    def frames(self, now: float, limit: int, limit_bytes: float = inf) -> list[bytes]:
        """Take up to `limit` messages to send now, and a ping if one is due.

        Stops at the first message that reaches `limit_bytes`.
        """
        frames: list[bytes] = []
        size = 0
        while len(frames) < limit and size < limit_bytes and self._message_due <= now:
            frames.append(self._reader.take().body)
            size += len(frames[-1])
            self._replay.took(now)
            self._ongoing.pace.took(now)
        self.sent += len(frames)
        if self._reader.due > now:
            self.is_replaying = False
        if self._ping_due <= now:
            # One ping stands for all that were due while the client did not read or the provider stalled.
            self._pinged = now
            self._pings += 1
            frames.append(self._ping())
        return frames

    @property
    def _message_due(self) -> float:
        slow = min(self._ongoing.pace.due, self._ongoing.until(Slow))
        replay = self._replay.due if self.is_replaying else -inf
        return max(self._reader.due, replay, slow, self._ongoing.until(Pause), self._silent_until)

    @property
    def _ping_due(self) -> float:
        return max(self._pinged + self._ping_seconds, self._silent_until)

    @property
    def _silent_until(self) -> float:
        return max(self._ongoing.until(Stall), self.half_open_until)

    def _ping(self) -> bytes:
        """Return a ping (interface, "SettlementFeedMessageDto")."""
        return b'{"pingId":"%016x"}' % mix(self._seed, self.number, self._pings)


class Provider:
    """The feed of one provider (interface, "Settlement feed"), with at most one active connection."""

    def __init__(
        self,
        stream: Source,
        limits: Limits,
        policy: Policy | None = None,
        on_attempt: Callable[[Attempt], None] = lambda _: None,
    ) -> None:
        self.log = Log(stream)
        self.recording = stream if isinstance(stream, Recording) else None
        self.limits = limits
        self.breaches = limits.breaches
        """Every breach of a limit so far."""
        self.policy = policy or Policy()
        self.active: Connection | None = None
        self.attempts: list[Attempt] = []
        self.ongoing = Ongoing()
        """The lasting faults."""
        self.forgotten: list[tuple[float, float]] = []
        """When each `Forget` happened, and from when on the provider remembered then."""
        self._on_attempt = on_attempt

    def connect(
        self, now: float, revision: int | None, denied: Refusal | None = None, client: str = ""
    ) -> Connection | Refusal:
        """Answer a handshake and log it.

        One that is `denied` regardless of the limits counts like any other. With `second = replace` the
        earlier connection ends. `client` is the name for the log.
        """
        ahead = self.log.stream.clock.ahead(now)
        holder = self.active.client if self.active else ""
        second = holder if self.active and self.policy.second == "refuse" else None
        kind, breach = self.limits.attempt(now, revision, holder=second, ahead=ahead)
        if refusal := denied or self._refusal(now, breach):
            status = refusal.status if refusal.close_code is None else ACCEPTED
            reason, code = refusal.reason, refusal.close_code
            self._record(
                Attempt(now, revision, kind, status, reason, None, code, client=client, holder=holder)
            )
            return refusal
        if self.recording:
            self.recording.begin(now)
        since = self._replay_from(now, revision)
        replaced = self.active is not None
        self._dismiss(Farewell(1001, "another connection took over"))
        self.active = Connection(self, now, since, len(self.attempts), client)
        self._record(
            Attempt(now, revision, kind, ACCEPTED, "", since, None, replaced, client=client, holder=holder)
        )
        return self.active

    def disconnect(self, connection: Connection) -> None:
        """Note the end of a connection. It may have been replaced already."""
        connection.is_active = False
        if self.active is connection:
            self.active = None

    def play(self, command: Speed | Step, now: float) -> None:
        """Go on with the recording as commanded. Raises NotRecorded."""
        if self.recording is None:
            raise NotRecorded("no recording is played here: start with --bets FILE.avro")
        self.recording.command(command, now)

    def inflict(self, fault: Fault, now: float) -> None:
        """Apply a fault from now on. Only `Surge` and `Garbage` change what is published."""
        match fault:
            case faults.Drop():
                self._dismiss(Farewell(fault.code, "dropped", fault.abort))
            case faults.HalfOpen():
                if self.active:
                    self.active.half_open_until = fault.until(now)
            case faults.Surge():
                self.log.stream.quicken(now, fault.per_second, fault.until(now))
                self.ongoing.begin(fault, now)
            case faults.Garbage():
                for body in fault.bodies(len(self.log.injected)):
                    self.log.inject(body, now)
            case faults.ClockJump():
                self.log.stream.clock.step(now, fault.by)
            case faults.Forget():
                clock = self.log.stream.clock
                self.forgotten.append((now, now if fault.before is None else clock.first(fault.before)))
            case faults.Clear():
                self.log.stream.calm(now)
                self.ongoing.clear()
                self.inflict(faults.HalfOpen(seconds=0), now)
            case _:
                self.ongoing.begin(fault, now)

    def lasting(self, now: float) -> dict[str, float]:
        """Return the lasting faults by name, each with the moment at which it ends."""
        half_open = self.active.half_open_until if self.active else -inf
        ends = {"half-open": half_open} | self.ongoing.ends
        return {name: end for name, end in ends.items() if end > now}

    def edge(self, now: float) -> float:
        """Return the beginning of the memory: earlier messages are not replayed."""
        forgotten = self.forgotten[-1][1] if self.forgotten else -inf
        return max(now - self.limits.max_age, forgotten)

    def _record(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self._on_attempt(attempt)

    def _dismiss(self, farewell: Farewell) -> None:
        if self.active:
            self.active.farewell = farewell
            self.disconnect(self.active)

    def _refusal(self, now: float, breach: Breach | None) -> Refusal | None:
        if fault := self.ongoing.refusal(now):
            return Refusal(fault.status, "refused by a fault", fault.close_code, fault.retry_after)
        if breach is None:
            return None
        status = 409 if breach.rule == "active" else self.policy.refusal_status
        code = self.policy.refusal_close_code if self.policy.refusal == "close" else None
        return Refusal(status, breach.reason, code, self.policy.refusal_retry_after)

    def _replay_from(self, now: float, revision: int | None) -> float:
        if not revision:
            return self.edge(now) if self.policy.zero == "everything" else now
        since = self.log.stream.clock.first(revision) - self.policy.replay_early_seconds
        return min(max(since, self.edge(now)), now)
