"""What the provider publishes, as a pure function of the slot number. Days of messages cost no memory.

Slot n is published at origin + n / rate, or with the first slot of its burst, and holds one message: the
first settlement of a bet, or a resettlement of an earlier one. Blocks of slots consist of lanes. A lane is a
permutation of the same lane some blocks before: it maps a slot to the one that it may resettle. So each
message is resettled at most once by its successor, and any slot can be made alone. A fault may change the
rate for a while.

Versions rise by one, but for those of `revised` resettlements. Of three in a row under one version the first
changes the outcome, the second takes that back (it is the message before, byte for byte, with its old
settlementTime), and so on; one in four of them is late instead: it has the version below.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, nextafter
from typing import Annotated, Any, NamedTuple, Protocol

import orjson
from pydantic import ConfigDict, Field

from bridge_sandbox.provider.bets import ODDITIES, WITHOUT_BET, Oddity, message
from bridge_sandbox.provider.clock import Clock
from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.world.entities import World, mix

LONGEST_SECONDS = 366 * 86_400
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS)]

_LANE = 64
_BLOCKS_BACK = (1, 3, 16, 1024)
"""How many blocks back each lane looks: at 200 messages/s from a second to twenty minutes."""
_BLOCK = _LANE * len(_BLOCKS_BACK)

_LATEST = 20_000
"""Number of messages that are kept, unless some are large: 90 s at 200/s, which a bridge asks for again."""

_AGAIN, _SHUFFLE, _DELAY, _ODD, _REVISED = 21, 22, 23, 24, 25
_LATE = 0.25
"""Share of revised resettlements that are late."""
_LATE_SECONDS = 10.0
"""A late one comes less than this after the version above it. A bridge drops it if it remembers that version,
which it does for the margins of its position (docs/assumptions.md): in some campaigns only 14 s."""


@dataclass(frozen=True, slots=True)
class Published:
    """One message as it was published."""

    at: float
    """Time of publication, Unix seconds; it never steps (see `clock`)."""
    seq: int
    """Number of the slot, from 0; negative for an injected message."""
    bet_id: str | None
    """None for an odd message without one, and for an injected message, which need not be a bet."""
    body: bytes
    version: int | None = None
    """The bet's `settlementVersion`; None for an odd message without a bet, and for an injected message."""


class StreamSettings(Model):
    """What is published, and when."""

    model_config = ConfigDict(allow_inf_nan=False)

    rate: Annotated[float, Field(gt=0, le=1_000_000)] = 200
    """Messages a second, on average."""
    burst: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Number of messages published at one moment."""
    large_every: Annotated[int, Field(ge=0)] = 0
    """One bet in this many is large; 0: none."""
    large_bytes: Annotated[int, Field(ge=1, le=64 * 1024 * 1024)] = 1_000_000
    """Minimum size of a large bet's message, reached by adding selections."""
    resettle: Share = 0.05
    """Share of messages that settle an earlier bet again; less until there are earlier ones."""
    revised: Share = 0
    """Share of these that have no new version: corrections, corrections taken back, and late ones."""
    max_out_of_orderness_seconds: Seconds = 2
    """How long before its publication a message's `settlementTime` may lie."""
    odd: Share = 0
    """Share of messages that are one of `oddities`."""
    oddities: Annotated[tuple[Oddity, ...], Field(min_length=1)] = ODDITIES
    """What an odd message is."""


class _SettledSlot(NamedTuple):
    """What a slot settles."""

    bet: int
    """The slot of its first settlement."""
    version: int
    variant: int
    """The content under that version: 0 is the first."""
    slot: int
    """The slot whose time it carries: its own, unless it takes a correction back."""


@dataclass(frozen=True, slots=True)
class _Pace:
    """How densely slots follow each other from one of them on."""

    slot: int
    at: float
    """When it is published, Unix seconds."""
    rate: float


class Source(Protocol):
    """What is published, and when: made by a `Stream`, or recorded (`recording`)."""

    world: World
    origin: float
    """Nothing is published before it, Unix seconds."""
    clock: Clock
    """The times that messages carry."""
    keeps: int
    """Number of the latest messages to keep: to make one takes four times as long as to send it."""

    def at(self, slot: int) -> float:
        """Return when the slot is published, Unix seconds. It never falls as the slot rises."""

    def first_slot(self, time: float) -> int:
        """Return the first slot published at `time` or later."""

    def message(self, slot: int) -> Published:
        """Return the message of a slot, with its bytes (interface, "SettlementFeedMessageDto")."""

    def quicken(self, now: float, rate: float, until: float) -> None:
        """Publish `rate` messages a second from now `until` then; what was published stays as it is."""

    def calm(self, now: float) -> None:
        """End what `quicken` has begun."""

    def state(self) -> dict[str, Any]:
        """Return what there is to say of it."""


class Stream:
    """The endless stream of one seed. `origin` is the time of slot 0, Unix seconds."""

    def __init__(self, world: World, origin: float, settings: StreamSettings) -> None:
        self.world = world
        self.origin = origin
        self.clock = Clock()
        self.settings = settings
        self.keeps = 0 if settings.large_every else _LATEST
        self._paces = [_Pace(0, origin, settings.rate)]

    def at(self, slot: int) -> float:
        """Return when the slot is published, Unix seconds. It never falls as the slot rises."""
        paces = self._paces
        pace = paces[-1] if len(paces) == 1 else paces[bisect_right(paces, slot, key=lambda it: it.slot) - 1]
        burst = self.settings.burst
        return pace.at + (slot - pace.slot) // burst * burst / pace.rate

    def first_slot(self, time: float) -> int:
        """Return the first slot published at `time` or later."""
        # A burst early, as rounding may be off, and nothing published at `time` may be missed.
        size, paces = self.settings.burst, self._paces
        number = max(1, bisect_right(paces, time, key=lambda it: it.at))
        pace = paces[number - 1]
        slot = pace.slot + max(0, int((time - pace.at) * pace.rate / size) - 1) * size
        if number < len(paces):
            slot = min(slot, paces[number].slot)
        while self.at(slot) < time:
            slot += size
        return slot

    def quicken(self, now: float, rate: float, until: float) -> None:
        """Publish `rate` messages a second from now `until` then, instead of an earlier call's.

        What was published until now, included, stays as it is.
        """
        size = self.settings.burst
        slot = self.first_slot(nextafter(now, inf))
        paces = [pace for pace in self._paces if pace.slot < slot]
        quick = _Pace(slot, now + size / rate, rate)
        paces.append(quick)
        if until < inf:
            end = slot + max(0, ceil((until - quick.at) * rate / size)) * size
            at = quick.at + (end - slot) / rate
            paces.append(_Pace(end, at, self.settings.rate))
        self._paces = paces  # at once: other threads read it

    def calm(self, now: float) -> None:
        """End what `quicken` has begun."""
        last = self._paces[-1]
        if last.at > now or last.rate != self.settings.rate:
            self.quicken(now, self.settings.rate, inf)

    def state(self) -> dict[str, Any]:
        """Return what there is to say of it."""
        return {"rate": self.settings.rate}

    def message(self, slot: int) -> Published:
        """Return the message of a slot, with its bytes (interface, "SettlementFeedMessageDto")."""
        what, at, settings = self._settles(slot), self.at(slot), self.settings
        delay = settings.max_out_of_orderness_seconds * (mix(self.world.seed, _DELAY, what.slot) / 2**64)
        # One microsecond earlier, for the seventh digit that `timestamp` adds.
        micros = int((self.clock.reading(self.at(what.slot)) - delay) * 1e6) - 1
        every = settings.large_every
        least_bytes = settings.large_bytes if every and what.bet % every == every - 1 else 0
        oddity = self._oddity(slot)
        content = message(
            self.world, what.bet, what.version, micros, least_bytes, oddity, variant=what.variant
        )
        bet = content.get("data") or {}
        body = b"[]" if oddity == "list" else orjson.dumps(content)
        return Published(at, slot, bet.get("betId"), body, bet.get("settlementVersion"))

    def _settles(self, slot: int) -> _SettledSlot:
        """Return what a slot settles, by what the slots before it of the same bet have settled."""
        slots = [slot]
        while (earlier := self._earlier(slots[-1])) is not None:
            slots.append(earlier)
        highest, of_highest = 0, list[int]()
        """The highest version so far, and the slots that have it."""
        for each in reversed(slots):
            drawn = self._revised(each) if highest else None
            if drawn is None:
                found = _SettledSlot(slots[-1], highest + 1, 0, each)
            elif drawn < _LATE and highest > 1 and self.at(each) < self.at(of_highest[-1]) + _LATE_SECONDS:
                found = _SettledSlot(slots[-1], highest - 1, len(slots), each)
            elif len(of_highest) % 2:
                found = _SettledSlot(slots[-1], highest, len(of_highest), each)
            else:
                found = _SettledSlot(slots[-1], highest, 0, of_highest[0])
            if self._oddity(each) not in WITHOUT_BET and found.version >= highest:  # which settles nothing
                of_highest = [*of_highest, each] if found.version == highest else [each]
                highest = found.version
        return found

    def _revised(self, slot: int) -> float | None:
        """Draw a number below 1 for a slot that has no new version; None for all others."""
        share = self.settings.revised
        if not share:  # as nearly always: a hash a message is saved
            return None
        drawn = mix(self.world.seed, _REVISED, slot) / 2**64
        return drawn / share if drawn < share else None

    def _oddity(self, slot: int) -> Oddity | None:
        if not self.settings.odd:  # as nearly always: a hash a message is saved
            return None
        drawn = mix(self.world.seed, _ODD, slot)
        kinds = self.settings.oddities
        return kinds[drawn % len(kinds)] if drawn < self.settings.odd * 2**64 else None

    def _earlier(self, slot: int) -> int | None:
        seed = self.world.seed
        block, place = divmod(slot, _BLOCK)
        lane, index = divmod(place, _LANE)
        back = _BLOCKS_BACK[lane]
        if block < back or mix(seed, _AGAIN, slot) >= self.settings.resettle * 2**64:
            return None
        shuffle = mix(seed, _SHUFFLE, block)
        # An odd factor has an inverse modulo a power of two: this is a permutation of the lane.
        index = (index * (shuffle | 1) + (shuffle >> 32)) % _LANE
        return (block - back) * _BLOCK + lane * _LANE + index


class Log:
    """The provider's memory: injected messages and the latest. The others are generated when read."""

    def __init__(self, stream: Source) -> None:
        self.stream = stream
        self.message = lru_cache(stream.keeps)(stream.message)
        """Return the message of a slot that was published."""
        self.injected: list[Published] = []
        self.end = inf
        """When the stream ended, Unix seconds. Messages injected later are still sent."""

    def inject(self, body: bytes, now: float) -> Published:
        """Publish raw bytes now."""
        message = Published(now, -1 - len(self.injected), None, body)
        self.injected.append(message)
        return message

    def read(self, since: float, until: float) -> Iterator[Published]:
        """Return everything published from `since` to `until`, both included, in order."""
        return Reader(self, since).until(until)

    def count(self, until: float) -> int:
        """Return the number of messages published until a moment, inclusive."""
        slots = self.stream.first_slot(nextafter(min(until, self.end), inf))
        return slots + bisect_right(self.injected, until, key=lambda message: message.at)


class Reader:
    """A position in the log that advances with each message read, in a replay as in the live stream."""

    def __init__(self, log: Log, since: float) -> None:
        self._log = log
        self._slot = log.stream.first_slot(since)
        self._injected = bisect_left(log.injected, since, key=lambda message: message.at)

    @property
    def due(self) -> float:
        """When the next message is published, Unix seconds; infinity if there will be none."""
        return min(self._slot_at, self._injected_at)

    def take(self) -> Published:
        """Return the next message. `due` must not be infinite."""
        if self._slot_at <= self._injected_at:
            self._slot += 1
            return self._log.message(self._slot - 1)
        self._injected += 1
        return self._log.injected[self._injected - 1]

    def until(self, time: float) -> Iterator[Published]:
        """Generate the messages up to those published at a time, Unix seconds."""
        while self.due <= time:
            yield self.take()

    @property
    def _slot_at(self) -> float:
        at = self._log.stream.at(self._slot)
        return at if at <= self._log.end else inf

    @property
    def _injected_at(self) -> float:
        injected = self._log.injected
        return injected[self._injected].at if self._injected < len(injected) else inf
