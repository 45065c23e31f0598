"""Messages of the feed, made once and patched in place, so that a million of them cost little.

A block holds 1,000 WebSocket frames with the simulator's bets: 2 KB each, 2.4 selections on average, a
tenth with a bet builder. betId and settlementTime have a fixed width, so that they can be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate, cycle, islice
from typing import Any

import orjson

from bridge_sandbox.provider.bets import message
from bridge_sandbox.provider.world.entities import World

BLOCK = 1000
"""Messages in a block."""
GROUP = 50
"""Neighbours that share a settlementTime."""
ID_DIGITS = 20
"""Decimal digits at the end of a betId: the message's number, or the moment it was due."""
_IN_BLOCK_DIGITS = 3
_SEED, _EPOCH = 1, 1_795_000_000
_ID = "i" * 36
_TIME = "2000-01-01T00:00:00.000000Z"
_FIN_TEXT = 0x81
_MAY_BE_SHORT, _MAY_BE_MIDDLE = 125, 0xFFFF


class Block:
    """The frames of 1,000 messages, one after the other in `frames`; frame i ends at `ends[i]`.

    `selections` sets the number of selections of every bet; with None the simulator's remain. `unknown_field`
    adds a field that the interface does not know to each bet and to its first selection.
    """

    def __init__(self, selections: int | None = None, *, unknown_field: bool = False) -> None:
        bets = _bets(selections)
        if unknown_field:
            for bet in bets:
                for record in (bet["data"], *(bet["data"].get("selections") or ())[:1]):
                    record["benchmarkField"] = "unknown"
        bodies = [_body(bet) for bet in bets]
        frames = [frame(body) for body in bodies]
        self.frames = bytearray().join(frames)
        self.ends = list(accumulate(map(len, frames)))
        starts = [end - len(whole) for end, whole in zip(self.ends, frames, strict=True)]
        self._ids = [
            s + f.index(_ID.encode()) + len(_ID) - ID_DIGITS for s, f in zip(starts, frames, strict=True)
        ]
        self._times = [s + f.index(_TIME.encode()) for s, f in zip(starts, frames, strict=True)]
        self._starts = starts
        for i, at in enumerate(self._ids):
            self.frames[at : at + ID_DIGITS] = b"%0*d" % (ID_DIGITS, i)
            self.frames[at - (len(_ID) - ID_DIGITS) : at] = b"%016x" % (i * 0x9E3779B97F4A7C15 % 2**64)

    def number(self, block: int, times: Sequence[bytes]) -> None:
        """Turn it into block `block` of the feed, with messages from number `1000 * block` on.

        `times` holds a settlementTime (`stamp`) for each group of 50.
        """
        prefix, frames = b"%0*d" % (ID_DIGITS - _IN_BLOCK_DIGITS, block), self.frames
        width = len(prefix)
        for at in self._ids:
            frames[at : at + width] = prefix
        for i, at in enumerate(self._times):
            frames[at : at + len(_TIME)] = times[i // GROUP]

    def one(self, place: int, number: int, time: bytes) -> memoryview:
        """Return the frame at a place, with this number in its betId and this settlementTime."""
        at, when = self._ids[place], self._times[place]
        self.frames[at : at + ID_DIGITS] = b"%0*d" % (ID_DIGITS, number)
        self.frames[when : when + len(_TIME)] = time
        return memoryview(self.frames)[self._starts[place] : self.ends[place]]

    def bodies(self) -> list[bytes]:
        """Return the payloads of the frames: JSON."""
        wholes = [bytes(self.frames[s:e]) for s, e in zip(self._starts, self.ends, strict=True)]
        return [whole[whole.index(b'{"') :] for whole in wholes]


class Feed:
    """Messages `first` … `first + count − 1`, in blocks; times are spread evenly over `span` seconds.

    Message 0 was settled `span` seconds before `newest` (Unix seconds), message `total` at `newest`.
    """

    def __init__(
        self, block: Block, *, first: int, count: int, total: int, span: float, newest: float
    ) -> None:
        if first % BLOCK or count < 1:
            raise ValueError(f"begin with a multiple of {BLOCK} and send at least one message")
        self._block, self._first, self._count = block, first, count
        self._oldest, self._step = newest - span, span / total

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the frames, a block at a time. Each piece is valid until the next one is requested."""
        last = self._first + self._count
        for begin in range(self._first, last, BLOCK):
            times = [stamp(self._oldest + n * self._step) for n in range(begin, begin + BLOCK, GROUP)]
            self._block.number(begin // BLOCK, times)
            here = min(BLOCK, last - begin)
            yield memoryview(self._block.frames)[: self._block.ends[here - 1]]


def stamp(at: float) -> bytes:
    """Return a settlementTime of fixed width; `at` in Unix seconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()


def ping(number: int) -> bytes:
    """Return a frame with a ping message."""
    return frame(orjson.dumps({"pingId": str(number)}))


def number_in(key: bytes) -> int:
    """Return the number that `Block.one` or `Block.number` has written into a betId."""
    return int(key[-ID_DIGITS:])


def _bets(selections: int | None) -> list[dict[str, Any]]:
    world = World(_SEED, _EPOCH)
    bets = [message(world, n, 1, _EPOCH * 1_000_000) for n in range(BLOCK)]
    if selections is not None:
        items = cycle([item for bet in bets for item in bet["data"].get("selections") or ()])
        for bet in bets:
            bet["data"]["selections"] = list(islice(items, selections))
    return bets


def _body(bet: dict[str, Any]) -> bytes:
    bet["data"] |= {"betId": _ID, "settlementTime": _TIME}
    return orjson.dumps(bet)


def frame(body: bytes) -> bytes:
    """Return a text frame as a server sends it: whole and unmasked (RFC 6455, section 5.2)."""
    size = len(body)
    if size <= _MAY_BE_SHORT:
        return bytes((_FIN_TEXT, size)) + body
    if size <= _MAY_BE_MIDDLE:
        return bytes((_FIN_TEXT, 126)) + size.to_bytes(2, "big") + body
    return bytes((_FIN_TEXT, 127)) + size.to_bytes(8, "big") + body
