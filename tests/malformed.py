"""Messages that are no settled bets, by kind, made from ones that are.

`MALFORMED[kind](message, n)` spoils a valid message (a dict as `json.loads` gives it, with `data`) and
returns its bytes and what the reason has to contain: the path of the field, or the parser's complaint.
Where there are several items, `n` says which one is spoilt. The message itself is left as it is.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

Malform = Callable[[dict[str, Any], int], tuple[bytes, str]]

AN_ITEM: dict[str, Any] = {
    "selectionId": 1,
    "competitionId": 2,
    "countryId": 3,
    "sportId": 4,
    "limitsFactor": 1,
    "hasLineDeviation": False,
    "isOutright": False,
    "version": 1,
    "type": 1,
}
"""The least an item can be, for messages that have none."""

A_BET: dict[str, Any] = {
    "betId": "b",
    "betSettlement": 1,
    "payoutMultiplier": 1,
    "isCancelled": False,
    "isRejected": False,
    "settlementTime": "2026-01-31T12:00:00",
    "payout": 1,
    "partialRefund": 0,
    "settlementVersion": 2,
}
"""The same of a bet."""
AN_AMOUNT: dict[str, Any] = {"value": 1000, "precision": 2, "placementExchangeRate": 1}

_MARK = "\ue000spoilt\ue000"


def _bytes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def _whole(change: Callable[[bytes], bytes], reason: str) -> Malform:
    """Spoil the bytes rather than a field."""
    return lambda message, n: (change(_bytes(message)), reason)


def _field(path: str, value: str | None) -> Malform:
    """Put a piece of JSON, valid or not, where a field is; None takes the field out.

    `[n]` in the path stands for one of the items.
    """

    def malform(message: dict[str, Any], n: int) -> tuple[bytes, str]:
        document = copy.deepcopy(message)
        bet = document["data"]
        bet["selections"] = bet.get("selections") or [AN_ITEM.copy()]
        bet["amount"] = bet.get("amount") or AN_AMOUNT.copy()
        index = n % len(bet["selections"])
        *parents, last = path.replace("[n]", ".[n]").split(".")
        place: Any = document
        for parent in parents:
            place = place[index if parent == "[n]" else parent]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = _MARK
        text = json.dumps(document, ensure_ascii=False).replace(f'"{_MARK}"', value or "")
        return text.encode("utf-8", "surrogatepass"), path.replace("[n]", f"[{index}]")

    return malform


MALFORMED: dict[str, Malform] = {
    # no JSON
    "no bytes": _whole(lambda data: b"", "Invalid JSON"),
    "cut off": _whole(lambda data: data[:-1], "Invalid JSON"),
    "text after the end": _whole(lambda data: data + b"}", "Invalid JSON"),
    "byte order mark": _whole(lambda data: b"\xef\xbb\xbf" + data, "Invalid JSON"),
    "UTF-16": _whole(lambda data: data.decode().encode("utf-16-le"), "Invalid JSON"),
    "not UTF-8": _whole(lambda data: data.replace(b'"betId"', b'"betId\xff"'), "Invalid JSON"),
    "lone surrogate": lambda message, n: (_field("data.betId", '"\\ud800"')(message, n)[0], "Invalid JSON"),
    "control character": lambda message, n: (_field("data.betId", '"\n"')(message, n)[0], "Invalid JSON"),
    "nested too deep": lambda message, n: (
        _field("data.extra", "[" * 5000 + "]" * 5000)(message, n)[0],
        "Invalid JSON",
    ),
    "number of 5,000 digits": lambda message, n: (
        _field("data.payout", "9" * 5000)(message, n)[0],
        "Invalid JSON",
    ),
    # JSON, but no message
    "array": _whole(lambda data: b"[" + data + b"]", "the message: Input should be an object"),
    "string": _whole(lambda data: b'"hello"', "the message: Input should be an object"),
    "null": _whole(lambda data: b"null", "the message: Input should be an object"),
    "data is an array": _field("data", "[]"),
    "ping id is a number": _field("pingId", "7"),
    # a bet that cannot be distinguished from others
    "no bet id": _field("data.betId", None),
    "bet id is null": _field("data.betId", "null"),
    "bet id is empty": _field("data.betId", '""'),
    "bet id is a number": _field("data.betId", "12"),
    # wrong values
    "unknown result": _field("data.betSettlement", "8"),
    "result by name": _field("data.betSettlement", '"Win"'),
    "result is true": _field("data.betSettlement", "true"),
    "unknown item type": _field("data.selections[n].type", "0"),
    "NaN": _field("data.payout", "NaN"),
    "infinite": _field("data.payoutMultiplier", "-Infinity"),
    "beyond double": _field("data.payout", "1e999"),
    "number in quotes": _field("data.selections[n].limitsFactor", '"1.5"'),
    "nullable number in quotes": _field("data.selections[n].price", '"1.5"'),
    "beyond int32": _field("data.settlementVersion", str(2**31)),
    "beyond int64": _field("data.amount.value", str(-(2**63) - 1)),
    "fraction for an integer": _field("data.amount.value", "5.0"),
    "exponent for an integer": _field("data.amount.precision", "1e0"),
    "true for an integer": _field("data.selections[n].sportId", "true"),
    "number for a boolean": _field("data.isCancelled", "0"),
    "yes for a boolean": _field("data.selections[n].isOutright", '"yes"'),
    "bare date": _field("data.settlementTime", '"2026-01-31"'),
    "time as a number": _field("data.settlementTime", "1769860800"),
    "time as a number in quotes": _field("data.settlementTime", '"1769860800"'),
    "day that is not": _field("data.settlementTime", '"2026-02-30T00:00:00Z"'),
    "leap second": _field("data.settlementTime", '"2016-12-31T23:59:60Z"'),
    "number in a map": _field("data.selections[n].parameters", '{"total": 2.5}'),
    # wrong shape
    "selections is an object": _field("data.selections", "{}"),
    "selection is null": lambda message, n: (
        _field("data.selections", "[null]")(message, n)[0],
        "data.selections[0]",
    ),
    "event is an array": _field("data.selections[n].event", "[1]"),
    "event without its id": lambda message, n: (
        _field("data.selections[n].event", '{"isLive": true}')(message, n)[0],
        "event.id: Field required",
    ),
    # missing or null where it must not be
    "no payout": _field("data.payout", None),
    "payout is null": _field("data.payout", "null"),
    "no sport": _field("data.selections[n].sportId", None),
    "no amount value": _field("data.amount.value", None),
    "name in other case": lambda message, n: (
        _bytes({"Data": message["data"], "data": {"BetId": "x"}}),
        "data.betId: Field required",
    ),
}
