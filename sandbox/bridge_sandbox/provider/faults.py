"""Faults of the provider and their parameters.

A fault with `seconds` lasts that long, or until `Clear` if that is None. The same fault again replaces the
earlier one, so 0 seconds ends it.
"""

from __future__ import annotations

import re
from math import inf
from typing import Annotated, get_args

from pydantic import AfterValidator, Field

from bridge_sandbox.provider.model import Model

Status = Annotated[int, Field(ge=200, le=599)]
"""An HTTP status that refuses a handshake."""


def _may_be_sent(code: int) -> int:
    if not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999):
        raise ValueError("must be a close code that may be sent: 1000-1003, 1007-1014 or 3000-4999")
    return code


CloseCode = Annotated[int, AfterValidator(_may_be_sent)]
"""A close code of a WebSocket (RFC 6455, 7.4)."""

RetryAfter = int | Annotated[str, Field(pattern=r"^[!-~][ -~]*$")]

_LATE_SECONDS = 0.05
"""How far a driver that wakes up late may catch up: timers are not exact."""


class Lasting(Model):
    """A fault that lasts `seconds`, or until `Clear`."""

    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    def until(self, now: float) -> float:
        """Return when it ends if it begins now; infinity if it has to be cleared."""
        return inf if self.seconds is None else now + self.seconds


class Drop(Model):
    """The active connection ends: with this close code, or with `abort` without a closing handshake."""

    code: CloseCode = 1001
    abort: bool = False


class Stall(Lasting):
    """The provider sends nothing, not even pings. Afterwards it sends everything published since."""


class HalfOpen(Lasting):
    """The active connection receives nothing more, not even pings; later connections are served."""


class Pause(Lasting):
    """Pings continue without data, even in the middle of a replay. Afterwards all data is sent."""


class Slow(Lasting):
    """At most `per_second` messages a second are sent; pings come on time."""

    per_second: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1


class Surge(Lasting):
    """`per_second` messages a second are published, whatever the rate of the stream."""

    per_second: Annotated[float, Field(gt=0, le=1_000_000)] = 5000


class Garbage(Model):
    """Publish `count` malformed messages, or `count` times the text `body`, as part of the truth."""

    count: Annotated[int, Field(ge=1, le=10_000)] = 1
    body: str | None = None

    def bodies(self, first: int) -> list[bytes]:
        """Return the messages, numbered from `first`. Malformed messages of different numbers differ."""
        if self.body is not None:
            return [self.body.encode()] * self.count
        return [_MALFORMED[n % len(_MALFORMED)] % n for n in range(first, first + self.count)]


class Refuse(Lasting):
    """Handshakes are refused: the next `count` if given, otherwise all of them while it lasts.

    With a close code the handshake is accepted and the connection closed at once. Each counts as an
    attempt. `retry_after` is a header of the answer: seconds, or any text such as an HTTP date.
    """

    count: Annotated[int, Field(ge=1)] | None = None
    status: Status = 503
    close_code: CloseCode | None = None
    retry_after: RetryAfter | None = None


class ClockJump(Model):
    """The provider's clock steps by `by` seconds: in `Date`, the age of revisions, and `settlementTime`."""

    by: Annotated[float, Field(ge=-1e8, le=1e8)]


class Forget(Model):
    """Replays begin at `before` (Unix seconds, the provider's clock; None: now) or later, without notice."""

    before: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


class Clear(Model):
    """End every lasting fault. The clock and the memory stay as they are."""


Fault = Drop | Stall | HalfOpen | Pause | Slow | Surge | Garbage | Refuse | ClockJump | Forget | Clear

FAULTS: dict[str, type[Fault]] = {
    re.sub("(?<=.)([A-Z])", r"-\1", kind.__name__).lower(): kind for kind in get_args(Fault)
}
"""By the name in the control endpoint: `half-open` is `HalfOpen`."""

_MALFORMED = (
    b'{"data":{"betId":"cut off %d',
    b"\xff\xfe binary %d",
    b'{"data":{"betId":%d}}',
    b'{"data":{"betSettlement":1,"settlementVersion":%d}}',
    b"[%d]",
    b'{"data":"text %d"}',
)
"""No JSON, no text, an id of the wrong type, no id, no object, no bet."""


class Pace:
    """Tells when the next message may be sent, at `rate` messages a second from `start` on."""

    def __init__(self, rate: float, start: float) -> None:
        self.due = start
        self._gap = 1 / rate

    def took(self, now: float) -> None:
        """Count a message that is sent now."""
        self.due = max(self.due, now - _LATE_SECONDS) + self._gap


class Ongoing:
    """The lasting faults of a provider, except `HalfOpen`, which belongs to a connection."""

    def __init__(self) -> None:
        self.pace = Pace(inf, -inf)
        """The pace of `Slow`; meaningless after its end."""
        self._until: dict[type[Lasting], float] = {}
        self._refuse = Refuse()
        self._refused = 0

    @property
    def ends(self) -> dict[str, float]:
        """When each fault ends or has ended, by its name in `FAULTS`."""
        return {name: self._until[kind] for name, kind in FAULTS.items() if kind in self._until}

    def until(self, kind: type[Lasting]) -> float:
        """Return when a fault ends; -infinity if it was never injected."""
        return self._until.get(kind, -inf)

    def begin(self, fault: Lasting, now: float) -> None:
        """Begin a fault now, replacing an earlier one of its kind."""
        self._until[type(fault)] = fault.until(now)
        if isinstance(fault, Slow):
            self.pace = Pace(fault.per_second, now)
        elif isinstance(fault, Refuse):
            self._refuse, self._refused = fault, 0

    def refusal(self, now: float) -> Refuse | None:
        """Return the fault that refuses a handshake, if any. Call it once for each handshake."""
        if now >= self.until(Refuse):
            return None
        self._refused += 1
        if self._refused == self._refuse.count:
            del self._until[Refuse]
        return self._refuse

    def clear(self) -> None:
        """End all faults."""
        self._until.clear()
