"""Messages and sequences of frames that are meant to exhaust a bridge: its memory, its time, its patience.

Each is what a provider could send once it has accepted a connection, with permessage-deflate, and says what
has to become of it. One table for the test, which sends each to a bridge in a process of its own, and for
`make chaos CAMPAIGN=bombs`, which measures them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from websockets.frames import Opcode

from bridge.config import FeedSettings
from bridge.messages.parser import BET_BYTES, SMALL_BYTES
from tests.frames import frame
from tests.malformed import A_BET, AN_AMOUNT, AN_ITEM

MIB: Final = 1024 * 1024
LIMIT: Final = FeedSettings().max_message_bytes
"""What the largest of them are made for."""
_CHUNK: Final = 256 * 1024
_NAME: Final = "Łódź United – Torino Athletic " * 3
_MARK: Final = "MARK"
"""The string in a message that something else takes the place of."""
_SETTLED_AT: Final = "2026-01-31T12:00:00.1234567Z"

Wire = Callable[[], Iterable[bytes]]
"""The bytes to send, in pieces."""


@dataclass(frozen=True)
class Bomb:
    """`letters`: expected dead letters, kind → number. `published`: expected number of bets."""

    name: str
    wire: Wire
    letters: dict[str, int]
    published: int = 0


# What bombs are made of.


def bet(bet_id: str, **changes: Any) -> dict[str, Any]:
    """A message with a bet, as a dict."""
    data = {"betId": bet_id, "settlementTime": _SETTLED_AT, "selections": [AN_ITEM], "amount": AN_AMOUNT}
    return {"data": A_BET | data | changes}


def item(**changes: Any) -> dict[str, Any]:
    """A bet item as providers send them, with all its fields."""
    settlement = {
        "settlementResult": 1,
        "settlementTime": _SETTLED_AT,
        "settlementVersion": 1,
        "isManualSettlement": False,
    }
    market = {"id": 1, "type": 2, "name": _NAME, "properties": {"total": "2.5", "period": "0"}}
    event = {"id": 1, "name": _NAME, "isLive": True, "startTime": _SETTLED_AT}
    return {**AN_ITEM, "event": event, "market": market, "settlement": settlement, **changes}


def text(document: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def spliced(message: dict[str, Any], piece: bytes) -> bytes:
    """A message with a piece of JSON, valid or not, in place of the mark."""
    return text(message).replace(f'"{_MARK}"'.encode(), piece)


def filled(message: dict[str, Any], one: bytes, size: int) -> bytes:
    """A message of almost this size: the mark becomes a list of repeated items."""
    room = size - len(text(message))
    return spliced(message, b"[" + (one + b",") * (room // (len(one) + 1) - 1) + one + b"]")


def keys(count: int, value: str = "0", width: int = 6) -> bytes:
    """An object with this many different keys."""
    return b"{" + ",".join(f'"{n:0{width}x}":{value}' for n in range(count)).encode() + b"}"


def whole(body: bytes) -> Iterator[bytes]:
    """One text message in one frame."""
    return chopped([frame(Opcode.TEXT, body)])


def chopped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks of a convenient size."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        while len(gathered) >= _CHUNK:
            yield bytes(gathered[:_CHUNK])
            del gathered[:_CHUNK]
    yield bytes(gathered)


def fragments(body: bytes, step: int, between: bytes = b"") -> Iterator[bytes]:
    """A text message in fragments of this many bytes, with other frames between them."""
    yield frame(Opcode.TEXT, body[:step], fin=False)
    for at in range(step, len(body), step):
        yield between
        yield frame(Opcode.CONT, body[at : at + step], fin=False)
    yield frame(Opcode.CONT, b"")


def deflated(pieces: Iterable[bytes], step: int | None = None) -> Iterator[bytes]:
    """A compressed text message, in one frame or in fragments of this many compressed bytes."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = b"".join(squeezed.compress(piece) for piece in pieces) + squeezed.flush(zlib.Z_SYNC_FLUSH)
    data = data.removesuffix(b"\x00\x00\xff\xff")
    sent = list(fragments(data, step)) if step else [frame(Opcode.TEXT, data)]
    yield bytes([sent[0][0] | 0x40]) + sent[0][1:]
    yield from sent[1:]


def spaces(size: int, first: bytes = b"") -> Iterator[bytes]:
    """That many blanks after a prefix, in chunks."""
    yield first
    yield from [b" " * MIB] * (size // MIB)


def _items(message: dict[str, Any], one: Any, size: int = LIMIT) -> bytes:
    message["data"]["selections"] = _MARK
    return filled(message, text(one), size)


def _long(size: int) -> str:
    """A text that takes four bytes a character in memory because of one emoji."""
    return "x" * size + "😀"


def _without_payout() -> bytes:
    message = bet("no payout")
    del message["data"]["payout"]
    return _items(message, item())


def _last_item_wrong() -> bytes:
    good, _, rest = _items(bet("the last one is wrong"), item(), LIMIT - 2_000).rpartition(b"}]")
    return good + b"}," + text(item(sportId="1")) + b"]" + rest


def _huge_numbers() -> bytes:
    return filled(bet("numbers", selections=_MARK), b"9" * 4299, LIMIT)


def _many_small_ones() -> Iterator[bytes]:
    """Invalid messages just small enough for pydantic, each as expensive as possible."""
    inside = b",".join([b"[]"] * ((SMALL_BYTES - 100) // 3))
    for number in range(60):
        yield frame(Opcode.TEXT, b'{"data":{"betId":%d,"selections":[{"a":[%s]}]}}' % (number, inside))


def _large_ones_with_all_missing() -> Iterator[bytes]:
    """As large as the largest bet, so that pydantic sees them, and copies the text for each missing field."""
    filler = _long(BET_BYTES - 200)
    for number in range(50):
        yield frame(Opcode.TEXT, text({"data": {"betId": number, "selections": [{"x": filler}]}}))


def _new_fields() -> Iterator[bytes]:
    """Large messages, each with new unknown fields."""
    for number in range(40):
        message = bet(
            f"new-fields-{number}", selections=[AN_ITEM | {f"new{number}-{n}": 0 for n in range(10)}]
        )
        yield frame(Opcode.TEXT, text({**message, "filler": "x" * MIB}))


def _largest_in_a_row() -> Iterator[bytes]:
    """Of what takes most memory, one behind the other: published, refused, mended and answered."""
    for number in range(4):
        long = _long(LIMIT - 700)
        yield frame(Opcode.TEXT, text(bet(f"long-{number}", amount={**AN_AMOUNT, "currency": long})))
        yield frame(Opcode.TEXT, text({"data": {"x": long, "n": number}}))
        yield frame(Opcode.TEXT, text(bet(f"strange-{number}", strange=long)))
        yield frame(Opcode.TEXT, text({"pingId": long}))


def _inflating_messages() -> Iterator[bytes]:
    """Whole messages of 8 KB each, all in a read or two, that become as large as one may be."""
    for number in range(32):
        yield from deflated(spaces(LIMIT - MIB, b"%d" % number))


def _empty_fragments() -> Iterator[bytes]:
    """A message of empty fragments: it never ends, and does not reset the idle timeout."""
    yield frame(Opcode.TEXT, b"", fin=False)
    while True:
        yield b"\x00\x00" * 1_000


def _pings() -> Iterator[bytes]:
    while True:
        yield frame(Opcode.PING, b"?" * 125) * 1_000


_ERROR: Final = {"error": 1}
_OVERSIZED: Final = {"oversized": 1}
_SAMPLE: Final = {"sample": 1}
_NONE: Final[dict[str, int]] = {}
_EMPTY: Final = frame(Opcode.CONT, b"", fin=False)
_MANY: Final = 100_000


def _properties(bet_id: str, value: str, width: int) -> bytes:
    return spliced(bet(bet_id, selections=[item(parameters=_MARK)]), keys(_MANY, value, width))


# What JSON can be.
MESSAGES: Final = [
    Bomb("300 KB of empty items", lambda: whole(filled(bet("e", selections=_MARK), b"{}", 300_000)), _ERROR),
    Bomb("items to the limit, and a field of the bet missing", lambda: whole(_without_payout()), _ERROR),
    Bomb("items to the limit, the last one wrong", lambda: whole(_last_item_wrong()), _ERROR),
    Bomb("items to the limit, each with a wrong enum", lambda: whole(_items(bet("w"), item(type=9))), _ERROR),
    Bomb("zeros to the limit", lambda: whole(filled({"data": _MARK}, b"0", LIMIT)), _ERROR),
    Bomb("empty lists to the limit", lambda: whole(filled({"data": _MARK}, b"[]", LIMIT)), _ERROR),
    Bomb("a nest to the limit", lambda: whole(b"[" * (LIMIT // 2) + b"]" * (LIMIT // 2)), _ERROR),
    Bomb(
        "100,000 unknown fields in one of them",
        lambda: whole(spliced(bet("unknown", new=_MARK), keys(_MANY))),
        _SAMPLE,
        published=1,
    ),
    Bomb(
        "100,000 unknown fields",
        lambda: whole(spliced(bet("fields", new=_MARK), b"0," + keys(_MANY)[1:-1])),
        _SAMPLE,
        published=1,
    ),
    Bomb(
        "one key a million times",
        lambda: whole(spliced(bet("key", new=_MARK), b"{" + b",".join([b'"a":0'] * 1_000_000) + b"}")),
        _ERROR,
    ),
    Bomb("100,000 properties", lambda: whole(_properties("map", f'"{"v" * 60}"', 6)), _NONE, published=1),
    Bomb("100,000 properties, all wrong", lambda: whole(_properties("wrong", "1", 40)), _ERROR),
    Bomb("a betId to the limit, with one emoji", lambda: whole(text(bet(_long(LIMIT - 600)))), _ERROR),
    Bomb(
        "escapes to the limit",
        lambda: whole(spliced(bet("escapes", new=_MARK), b'"%s"' % (b"\\u0142" * (LIMIT // 6 - 100)))),
        _SAMPLE,
        published=1,
    ),
    Bomb(
        "a number to the limit", lambda: whole(spliced(bet("n", payout=_MARK), b"9" * (LIMIT - 600))), _ERROR
    ),
    Bomb(
        "a fraction to the limit",
        lambda: whole(spliced(bet("fraction", payout=_MARK), b"0." + b"9" * (LIMIT - 600))),
        _NONE,
        published=1,
    ),
    Bomb("numbers of 4,299 digits to the limit", lambda: whole(_huge_numbers()), _ERROR),
    Bomb("what is not UTF-8, to the limit", lambda: whole(b'"' + b"\xc3\x28" * (LIMIT // 2 - 1)), _ERROR),
    Bomb("a ping id of 4 MiB, echoed", lambda: whole(text({"pingId": _long(4 * MIB)})), _NONE),
    Bomb("60 bad messages of 32 KB", lambda: chopped(_many_small_ones()), {"error": 60}),
    Bomb("50 bad messages of 800 KB", lambda: chopped(_large_ones_with_all_missing()), {"error": 50}),
    Bomb("40 messages of 1 MiB, each with 10 new fields", lambda: chopped(_new_fields()), {"sample": 40}, 40),
    Bomb(
        "16 of the largest, in every way",
        lambda: chopped(_largest_in_a_row()),
        {"error": 4, "sample": 3},
        published=8,
    ),
    Bomb(
        "20,000 tiny messages that are no JSON",
        lambda: chopped(frame(Opcode.TEXT, b"?%d" % n) for n in range(20_000)),
        {"error": 20_000},
    ),
]
# What frames can be.
FRAMES: Final = [
    Bomb("64 MiB of zeros in one frame", lambda: whole(filled({"data": _MARK}, b"0", 64 * MIB)), _OVERSIZED),
    Bomb("1 MiB in fragments of two bytes", lambda: chopped(fragments(b" " * MIB, 2)), _ERROR),
    Bomb(
        "300,000 empty fragments",
        lambda: chopped([frame(Opcode.TEXT, b"", fin=False), _EMPTY * 300_000, frame(Opcode.CONT, b"{")]),
        _ERROR,
    ),
    Bomb(
        "a ping behind each of 4,096 fragments",
        lambda: chopped(fragments(b" " * 4 * MIB + b"1", 1024, frame(Opcode.PING, b"?" * 125))),
        _ERROR,
    ),
    Bomb("200,000 pings", lambda: chopped([b"\x89\x00" * 200_000]), _NONE),
    Bomb("a frame that inflates to 256 MiB", lambda: chopped(deflated(spaces(256 * MIB))), _OVERSIZED),
    Bomb(
        "the same in fragments of 100 bytes",
        lambda: chopped(deflated(spaces(256 * MIB, b"2"), 100)),
        _OVERSIZED,
    ),
    Bomb(
        "32 frames of 8 KB that inflate to the limit", lambda: chopped(_inflating_messages()), {"error": 32}
    ),
]
BOMBS: Final = [*MESSAGES, *FRAMES]
# What the bridge has to end by itself.
ENDLESS: Final = [
    Bomb("empty fragments without end", _empty_fragments, _NONE),
    Bomb("pings without end, no answer read", _pings, _NONE),
]
