"""Compares what arrived with what was sent, field by field, without any of the bridge's own code.

The bytes that the provider sent are read with the standard library, records by their schema in the registry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final

import fastavro

RESULTS: Final = ["None", "Win", "Lose", "Refund", "HalfWin", "HalfLose", "CashOut", "PlaceWin"]
_ITEM_TYPES: Final = (
    "Standard StartingPrice ToteExotics FixedExotics BetBuilder Pickem EachWay ToteSingleRunner"
)
ENUMS: Final = {
    "settlement.SettlementResult": dict(enumerate(RESULTS)),
    "settlement.BetItemType": dict(enumerate(_ITEM_TYPES.split(), 1)),
}
Key = tuple[str, int] | bytes
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class WriterSchema:
    """A schema from the registry; date-times are read as integers of microseconds."""

    def __init__(self, text: str) -> None:
        self.named: dict[str, Any] = {}
        self.parsed: Any = fastavro.parse_schema(_plain(json.loads(text)), named_schemas=self.named)

    def read(self, body: bytes) -> dict[str, Any]:
        """Return the record encoded in the bytes after the wire format's header."""
        datum: Any = fastavro.schemaless_reader(BytesIO(body), self.parsed, None)
        return dict(datum)

    def resolve(self, schema: Any) -> Any:
        """Return the branch that is not null, with a name replaced by its definition."""
        if isinstance(schema, list):
            schema = next(branch for branch in schema if branch != "null")
        return self.named.get(schema, {"type": schema}) if isinstance(schema, str) else schema


def differences(sent: bytes, record: dict[str, Any], schema: WriterSchema) -> Iterator[str]:
    """Yield every place where a record differs from the provider's message."""
    yield from _compare("data", json.loads(sent)["data"], record, schema.parsed, schema)


def _plain(node: Any) -> Any:
    """Replace each logical type, which fastavro would convert, by the mark `micros`."""
    if isinstance(node, dict):
        kept = {key: _plain(value) for key, value in node.items() if key != "logicalType"}
        return {**kept, "micros": True} if "logicalType" in node else kept
    return [_plain(item) for item in node] if isinstance(node, list) else node


def identity(sent: bytes) -> Key | None:
    """Return the betId and version of a message, its bytes if it has no betId, None without a bet."""
    data = json.loads(sent).get("data")
    if data is None:
        return None
    return sent if data.get("betId") is None else (data["betId"], data["settlementVersion"])


def _compare(path: str, sent: Any, got: Any, schema: Any, names: WriterSchema) -> Iterator[str]:
    if isinstance(schema, list) and (sent is None or got is None):
        if sent is not got:
            yield f"{path}: {sent!r} became {got!r}"
        return
    schema = names.resolve(schema)
    match schema["type"]:
        case "record":
            for field in schema["fields"]:
                name = field["name"]
                yield from _compare(f"{path}.{name}", sent.get(name), got[name], field["type"], names)
        case "array":
            if len(sent) != len(got):
                yield f"{path}: {len(sent)} elements became {len(got)}"
            for index, (one, other) in enumerate(zip(sent, got, strict=False)):
                yield from _compare(f"{path}[{index}]", one, other, schema["items"], names)
        case _:
            wanted = _wanted(sent, schema)
            # True is not 1, and 1 is not 1.0.
            if type(wanted) is not type(got) or wanted != got:
                yield f"{path}: {sent!r} became {got!r}"


def _wanted(sent: Any, schema: Any) -> Any:
    """Return what a value that is neither a record nor an array must become."""
    if schema["type"] == "enum":
        return ENUMS[schema["name"]].get(sent)
    if schema.get("micros"):
        return micros(sent)
    return float(sent) if schema["type"] == "double" else sent


def micros(text: str) -> int:
    """Return a date-time of the provider as microseconds since 1970 in UTC."""
    moment = datetime.fromisoformat(text)  # drops what is finer than a microsecond
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


class Tally:
    """Compares each record with the message that it came from, and counts both. Keeps only what is missing.

    `fresh` yields the messages that the provider has published since the last call: time of publication
    (Unix seconds) and bytes.
    """

    def __init__(self, fresh: Callable[[], Iterable[tuple[float, bytes]]]) -> None:
        self._fresh = fresh
        self._awaited: dict[Key, tuple[float, bytes]] = {}
        self._seen: set[int] = set()
        self._latest: dict[str, int] = {}
        self.sent = 0
        self.published = 0
        self.duplicates = 0
        self.wrong: list[str] = []
        """Differences, records that were never sent, and bets whose version fell."""

    @property
    def missing(self) -> int:
        """Number of messages that were sent and have not arrived, as of the last `catch_up`."""
        return len(self._awaited)

    def catch_up(self) -> None:
        """Take what the provider has published since the last call."""
        for at, body in self._fresh():
            if key := identity(body):  # without a bet nothing is published
                self.sent += 1
                self._awaited[key] = at, body

    def dead_letter(self, body: bytes) -> None:
        """Take a dead letter."""
        self._take(body, f"a dead letter of a bet with an id, or never sent: {body[:80]!r}")

    def arrived(self, key: tuple[str, int], record: dict[str, Any], schema: WriterSchema) -> float | None:
        """Take a record of the topic; returns when its message was published, in Unix seconds."""
        self.published += 1
        found = self._take(key, f"{key[0]} version {key[1]} was never sent")
        if found is None:
            return None
        at, sent = found
        self.wrong += [f"{key[0]}: {difference}" for difference in differences(sent, record, schema)]
        if key[1] < self._latest.get(key[0], key[1]):
            self.wrong.append(f"{key[0]} went back to version {key[1]}")
        self._latest[key[0]] = key[1]
        return at

    def _take(self, key: Key, unknown: str) -> tuple[float, bytes] | None:
        if hash(key) in self._seen:
            self.duplicates += 1
            return None
        if key not in self._awaited:
            self.catch_up()
        if key not in self._awaited:
            self.wrong.append(unknown)
            return None
        self._seen.add(hash(key))
        return self._awaited.pop(key)
