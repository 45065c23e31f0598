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
from itertools import islice
from typing import Any, Final

from websockets.frames import Opcode

from bridge.config import FeedSettings
from tests.frames import frame
from tests.malformed import AN_AMOUNT, AN_ITEM

MIB: Final = 1024 * 1024
LIMIT: Final = FeedSettings().max_message_bytes
"""What the largest of them are made for."""
_CHUNK: Final = 256 * 1024
_NAME: Final = "Łódź United – Torino Athletic " * 3
_SETTLED_AT: Final = "2026-01-31T12:00:00.1234567Z"

Wire = Callable[[], Iterable[bytes]]
"""The bytes to send, in pieces."""


@dataclass(frozen=True)
class Bomb:
    """`letters` are the dead letters that come of it: kind → how many. `ends`: the connection does not live."""

    name: str
    wire: Wire
    letters: dict[str, int]
    ends: bool = False
    published: int = 0


# What bombs are made of.


def bet(bet_id: str, **changes: Any) -> dict[str, Any]:
    """A message with a bet, as a dict."""
    data = {
        "betId": bet_id,
        "betSettlement": 1,
        "payoutMultiplier": 2.5,
        "isCancelled": False,
        "selections": [AN_ITEM],
        "isRejected": False,
        "settlementTime": _SETTLED_AT,
        "payout": 1,
        "partialRefund": 0,
        "settlementVersion": 1,
        "amount": AN_AMOUNT,
    }
    return {"data": {**data, **changes}}


def item(**changes: Any) -> dict[str, Any]:
    """A bet item as providers send them, with all that belongs to it."""
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
    """JSON, as short as can be."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def spliced(message: dict[str, Any], mark: str, piece: bytes) -> bytes:
    """A message with a piece of JSON, valid or not, where it has the string `mark`."""
    return text(message).replace(f'"{mark}"'.encode(), piece)


def filled(message: dict[str, Any], one: bytes, size: int, between: bytes = b",") -> bytes:
    """A message of this size: the string "MARK" becomes a list of the same again and again."""
    room = size - len(text(message)) - 2
    return spliced(message, "MARK", b"[" + between.join([one] * (room // (len(one) + len(between)))) + b"]")


def keys(count: int, value: str = "0", width: int = 6) -> bytes:
    """An object with so many different keys."""
    return b"{" + ",".join(f'"{n:0{width}x}":{value}' for n in range(count)).encode() + b"}"


def whole(body: bytes) -> Wire:
    """One text message in one frame."""
    return lambda: chopped([frame(Opcode.TEXT, body)])


def chopped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces as they suit a socket."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        while len(gathered) >= _CHUNK:
            yield bytes(gathered[:_CHUNK])
            del gathered[:_CHUNK]
    yield bytes(gathered)


def fragments(body: bytes, step: int, between: bytes = b"") -> Iterator[bytes]:
    """A text message in fragments of so many bytes, with other frames between them."""
    yield frame(Opcode.TEXT, body[:step], fin=False)
    for at in range(step, len(body), step):
        yield between
        yield frame(Opcode.CONT, body[at : at + step], fin=False)
    yield frame(Opcode.CONT, b"")


def deflated(pieces: Iterable[bytes], step: int | None = None) -> Iterator[bytes]:
    """A compressed text message, in one frame or in fragments of so many compressed bytes."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = b"".join(squeezed.compress(piece) for piece in pieces) + squeezed.flush(zlib.Z_SYNC_FLUSH)
    data = data.removesuffix(b"\x00\x00\xff\xff")
    sent = list(fragments(data, step)) if step else [frame(Opcode.TEXT, data)]
    yield bytes([sent[0][0] | 0x40]) + sent[0][1:]
    yield from sent[1:]


def spaces(size: int, first: bytes = b"") -> Iterator[bytes]:
    """That many blanks behind something else, in pieces."""
    yield first
    yield from [b" " * MIB] * (size // MIB)


# The bombs.

_ERROR: Final = {"error": 1}
_OVERSIZED: Final = {"oversized": 1}
_NONE: Final[dict[str, int]] = {}


def _items(message: dict[str, Any], size: int) -> bytes:
    message["data"]["selections"] = "MARK"
    return filled(message, text(item()), size)


def _without_payout() -> bytes:
    message = bet("no payout")
    del message["data"]["payout"]
    return _items(message, LIMIT)


def _last_item_wrong() -> bytes:
    body = _items(bet("the last one is wrong"), LIMIT - 100)
    return body.replace(b"}]", b"}," + text({**item(), "sportId": "1"}) + b"]") if False else (
        b"}," + text({**item(), "sportId": "1"}) + b"]"
    ).join(body.rsplit(b"}]", 1))


def _every_enum_wrong() -> bytes:
    message = bet("wrong results")
    message["data"]["selections"] = "MARK"
    return filled(message, text(item(type=9)), LIMIT)


def _many_small_ones() -> Iterator[bytes]:
    """As many bad messages as fit one read, each as dear as one of its size can be."""
    for number in range(200):
        inside = b",".join([b"[]"] * 20_000)
        body = b'{"data":{"betId":%d,"selections":[{"a":[%s]}]}}' % (number, inside)
        yield frame(Opcode.TEXT, body)


def _new_fields() -> Iterator[bytes]:
    """Large messages, each with fields that nobody has seen yet."""
    for number in range(40):
        message = bet(f"new-fields-{number}")
        message["data"]["selections"][0] = AN_ITEM | {f"new{number}-{n}": "x" * 20 for n in range(10)}
        message["filler"] = "x" * MIB
        yield frame(Opcode.TEXT, text(message))


def _inflating_messages() -> Iterator[bytes]:
    """Whole messages of 8 KB each, all in a read or two, that become 8 MiB each."""
    for number in range(32):
        yield from deflated(spaces(8 * MIB - MIB, b"%d" % number))


def _huge_numbers() -> bytes:
    number = b"9" * 4299
    return b'{"data":{"betId":"n","selections":[%s]}}' % b",".join([number] * (LIMIT // 4300 - 1))


BOMBS: Final = [
    # What JSON can be.
    Bomb("300 KB of empty items", whole(filled(bet("e", selections="MARK"), b"{}", 300_000)), _ERROR),
    Bomb("items without end, and a field missing", lambda: whole(_without_payout())(), _ERROR),
    Bomb("the last of many items is wrong", lambda: whole(_last_item_wrong())(), _ERROR),
    Bomb("a wrong enum in each item", lambda: whole(_every_enum_wrong())(), _ERROR),
    Bomb("zeros to the limit", lambda: whole(filled({"data": "MARK"}, b"0", LIMIT))(), _ERROR),
    Bomb("empty lists to the limit", lambda: whole(filled({"data": "MARK"}, b"[]", LIMIT))(), _ERROR),
    Bomb("one nest to the limit", lambda: whole(b"[" * (LIMIT // 2) + b"]" * (LIMIT // 2))(), _ERROR),
    Bomb("100,000 unknown fields", lambda: whole(spliced(bet("u", x="M"), "M", keys(100_000)))(), {"sample": 1}, published=1),
    Bomb(
        "100,000 unknown fields beside the known",
        lambda: whole(spliced(bet("ub", zzz="M"), "M", b"0," + keys(100_000)[1:-1]))(),
        {"sample": 1},
        published=1,
    ),
    Bomb(
        "one key a million times",
        lambda: whole(spliced(bet("k", x="M"), "M", b"{" + b",".join([b'"a":0'] * 1_000_000) + b"}"))(),
        _ERROR,
    ),
    Bomb(
        "100,000 properties",
        lambda: whole(spliced(bet("p", selections=[item(parameters="M")]), "M", keys(100_000, '"' + "v" * 60 + '"')))(),
        _NONE,
        published=1,
    ),
    Bomb(
        "100,000 wrong properties",
        lambda: whole(spliced(bet("w", selections=[item(parameters="M")]), "M", keys(100_000, "1", 40)))(),
        _ERROR,
    ),
    Bomb("a long name with one emoji", lambda: whole(text(bet("em", amount={**AN_AMOUNT, "currency": "x" * (LIMIT - 600) + "😀"})))(), _NONE, published=1),
    Bomb("a long betId with one emoji", lambda: whole(text(bet("x" * (LIMIT - 600) + "😀")))(), _ERROR),
    Bomb("long unknown text with one emoji, and all is missing", lambda: whole(text({"data": {"x": "x" * (LIMIT - 100) + "😀"}}))(), _ERROR),
    Bomb("escapes to the limit", lambda: whole(spliced(bet("es", x="M"), "M", b'"' + b"\\u0142" * (LIMIT // 6 - 100) + b'"'))(), {"sample": 1}, published=1),
    Bomb("a number of millions of digits", lambda: whole(spliced(bet("d", payout="M"), "M", b"9" * (LIMIT - 600)))(), _ERROR),
    Bomb("a fraction of millions of digits", lambda: whole(spliced(bet("f", payout="M"), "M", b"0." + b"9" * (LIMIT - 600)))(), _NONE, published=1),
    Bomb("as many numbers of 4,299 digits as fit", lambda: whole(_huge_numbers())(), _ERROR),
    Bomb("text that is not UTF-8", lambda: whole(b'{"data":"' + b"\xc3\x28" * (LIMIT // 2 - 10) + b'"}')(), _ERROR),
    Bomb("a ping id of 4 MiB, echoed", lambda: whole(text({"pingId": "p" * 4 * MIB + "😀"}))(), _NONE),
    Bomb("200 bad messages of 60 KB at once", lambda: chopped(_many_small_ones()), {"error": 200}),
    Bomb("40 messages of 1 MiB, 10 new fields in each", lambda: chopped(_new_fields()), {"sample": 40}, published=40),
    # What frames can be.
    Bomb("64 MiB of zeros", lambda: whole(filled({"data": "MARK"}, b"0", 64 * MIB))(), _OVERSIZED),
    Bomb("1 MiB in fragments of two bytes", lambda: chopped(fragments(b" " * MIB, 2)), _ERROR),
    Bomb("300,000 empty fragments", lambda: chopped(fragments(b"", 1, b"\x00\x00" * 300_000)) if False else chopped([frame(Opcode.TEXT, b"", fin=False), b"\x00\x00" * 300_000, frame(Opcode.CONT, b"{")]), _ERROR),
    Bomb("pings between all fragments", lambda: chopped(fragments(b" " * 4 * MIB + b"1", 1024, frame(Opcode.PING, b"?" * 125))), _ERROR),
    Bomb("200,000 pings", lambda: chopped([b"\x89\x00" * 200_000]), _NONE),
    Bomb("one frame that inflates to 256 MiB", lambda: chopped(deflated(spaces(256 * MIB))), _OVERSIZED),
    Bomb("the same in many fragments", lambda: chopped(deflated(spaces(256 * MIB, b"2"), 100)), _OVERSIZED),
    Bomb("32 small frames that inflate to the limit each", lambda: chopped(_inflating_messages()), {"error": 32}),
    Bomb("20,000 tiny messages that are no JSON", lambda: chopped([frame(Opcode.TEXT, b"%d" % n) for n in range(20_000)]), {"error": 20_000}),
]


def endless_empty_fragments() -> Iterator[bytes]:
    """A message that never goes on and never ends: no sign of life."""
    yield frame(Opcode.TEXT, b"", fin=False)
    while True:
        yield b"\x00\x00" * 100


def endless_pings() -> Iterator[bytes]:
    """Each wants an answer."""
    while True:
        yield frame(Opcode.PING, b"?" * 125) * 100
