"""Recorded bets as a source of the feed, in place of the stream of a seed.

Bets are published in the order of the recording, which is that of their receipt, each at the latest
`settlementTime` so far: nothing is published before it is settled, and a bet that came late comes late again.
A `settlementTime` that the bets around it contradict does not count: a broken clock, or "not set".

The recording begins when the first client is let in, so that nobody misses the beginning; with a history at
once, and that far back. Each bet is moved to now as a whole: its date-times are later by as much as its
publication is.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import ceil, inf, nextafter
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import BeforeValidator, Field, PlainSerializer

from bridge_sandbox.provider.avro_files import AvroFile, RecordingError, date_time, files_in
from bridge_sandbox.provider.clock import Clock
from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.stream import Published
from bridge_sandbox.provider.world.entities import World

_BET = "settlement.SettledBet"
_FOLLOWING = 9
"""Number of bets after it that may contradict a `settlementTime`."""
_AHEAD, _BEHIND = 60_000_000, 3_600_000_000
"""By how many microseconds it may be after theirs, and the first before theirs."""

Tempo = Annotated[
    Annotated[float, Field(ge=0, allow_inf_nan=True)],
    BeforeValidator(lambda given: inf if given == "max" else given),
    PlainSerializer(lambda value: "max" if value == inf else value),
]
"""How many times as fast as it was recorded; `max` is all at once, 0 waits."""


class Speed(Model):
    """The recording goes on at `speed`, beginning with its next bet."""

    speed: Tempo = 1


class Step(Model):
    """The next `count` bets are published now, and then nothing."""

    count: Annotated[int, Field(ge=1)] = 1


class _Stretch(NamedTuple):
    """How slots follow each other from one of them on: at a speed or, if that is 0, at a rate."""

    slot: int
    at: float
    """When it is published, Unix seconds."""
    speed: float
    rate: float = 0
    """Messages a second."""


class Bets:
    """The bets of Avro files, or of directories of them, in the order of their publication.

    They are read once at the start, and then block by block when they are sent. Raises RecordingError.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._blocks: list[tuple[AvroFile, int, int]] = []
        self._firsts: list[int] = []
        """The number of the first bet of each block."""
        times = array("q")
        for path in files_in(paths):
            times.extend(publication_times(array("q", self._read(path, len(times)))))
        if not times:
            raise RecordingError(f"there is no bet in {', '.join(map(str, paths))}")
        # Files of hours follow each other; those of two versions of the schema may overlap.
        self._numbers = array("Q", sorted(range(len(times)), key=times.__getitem__))
        """The number of the bet in each place."""
        self.times = array("q", (times[number] for number in self._numbers))
        """When each was published as recorded, microseconds since 1970."""

    def _read(self, path: Path, number: int) -> Iterator[int]:
        file = AvroFile(path, _BET)
        for offset, size, bets in file.blocks():
            self._blocks.append((file, offset, size))
            self._firsts.append(number)
            number += len(bets)
            try:
                yield from [int(bet["settlementTime"]) for bet in bets]
            except (KeyError, TypeError, ValueError):
                raise RecordingError(f"{path} has bets without a settlementTime") from None

    def as_sent(self, place: int, later: int) -> Any:
        """Return the bet in a place as the feed has it, its date-times that many microseconds later."""
        number = self._numbers[place]
        block = bisect_right(self._firsts, number) - 1
        file, *where = self._blocks[block]
        return file.as_sent(file.block(*where)[number - self._firsts[block]], self.times[place], later)

    def __str__(self) -> str:
        """Such as `1,200 bets, recorded from 2026-01-31T12:00:00Z to …`."""
        first, last = (date_time(time // 10**6 * 10**6) for time in (self.times[0], self.times[-1]))
        return f"{len(self.times):,} bets, recorded from {first} to {last}"


class Recording:
    """Bets that are published from `origin` (Unix seconds) on; if it `waits`, from its first client on."""

    def __init__(
        self,
        world: World,
        origin: float,
        bets: Bets,
        speed: float = 1,
        *,
        waits: bool = True,
        keep_times: bool = False,
    ) -> None:
        self.world = world
        self.origin = origin
        self.clock = Clock()
        self.keeps = 20_000
        self.bets = bets
        self._keep_times = keep_times
        self._speed = speed
        self._paces = [_Stretch(0, inf if waits else origin, speed)]

    def at(self, slot: int) -> float:
        """Return when the slot is published, Unix seconds; infinity if that is not known."""
        if slot >= len(self.bets.times):
            return inf
        pace = self._paces[bisect_right(self._paces, slot, key=lambda it: it.slot) - 1]
        if pace.rate:
            return pace.at + (slot - pace.slot) / pace.rate
        seconds = (self.bets.times[slot] - self.bets.times[pace.slot]) / 1e6
        return pace.at + seconds / pace.speed if pace.speed else inf

    def first_slot(self, time: float) -> int:
        """Return the first slot published at `time` or later."""
        return bisect_left(range(len(self.bets.times)), time, key=self.at)

    def message(self, slot: int) -> Published:
        """Return the message of a slot, with its bytes (interface, "SettlementFeedMessageDto")."""
        at = self.at(slot)
        # One microsecond earlier, as rounding may be off, and nothing is settled after it was published.
        later = int(self.clock.reading(at) * 1e6) - 1 - self.bets.times[slot]
        bet = self.bets.as_sent(slot, 0 if self._keep_times else later)
        return Published(at, slot, bet["betId"], orjson.dumps({"data": bet}), bet["settlementVersion"])

    def begin(self, now: float) -> None:
        """Begin, if that has waited for a client."""
        if self._paces[0].at == inf:
            self.command(Speed(speed=self._speed), now)

    def command(self, given: Speed | Step, now: float) -> None:
        """Change what is published from now on."""
        if isinstance(given, Speed):
            self._speed = given.speed
            self._go_on(now, _Stretch(0, now, given.speed))
        else:
            self._speed = 0
            self._go_on(now, _Stretch(0, now, inf), _Stretch(given.count, now, 0))

    def quicken(self, now: float, rate: float, until: float) -> None:
        """Publish `rate` messages a second from now `until` then; what was published stays as it is."""
        after = [_Stretch(ceil((until - now) * rate), until, self._speed)] if until < inf else []
        self._go_on(now, _Stretch(0, now, 0, rate), *after)

    def calm(self, now: float) -> None:
        """End what `quicken` has begun."""
        before, last = self._paces[-2:][0], self._paces[-1]
        if last.rate or (before.rate and last.at > now):
            self.command(Speed(speed=self._speed), now)

    def _go_on(self, now: float, *paces: _Stretch) -> None:
        """Set the paces after now; their slots are counted from the next one."""
        at = nextafter(now, inf)
        slot = self.first_slot(at)
        new = [pace._replace(slot=slot + pace.slot, at=max(at, pace.at)) for pace in paces]
        self._paces = [*(pace for pace in self._paces if pace.slot < slot), *new]  # at once: threads read it

    @property
    def ends(self) -> float:
        """When the last bet is published, Unix seconds; infinity if that is not known."""
        return self.at(len(self.bets.times) - 1)

    def state(self) -> dict[str, Any]:
        """Return what there is to say of it."""
        speed = "max" if self._speed == inf else self._speed
        return {"recording": {"bets": len(self.bets.times), "speed": speed, "ends": self.ends}}


def publication_times(settled: Sequence[int]) -> Iterator[int]:
    """Generate when each bet was published, from when they were settled; all in microseconds."""
    latest: int | None = None
    for number, time in enumerate(settled):
        following = sorted(settled[number + 1 : number + 1 + _FOLLOWING]) or [time]
        middle = following[len(following) // 2]
        if latest is None:
            latest = time if middle - _BEHIND <= time <= middle + _AHEAD else middle
        elif time <= middle + _AHEAD:
            latest = max(latest, time)
        yield latest
