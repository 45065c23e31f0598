"""Whether what arrived is what was sent: field by field, by other means than the bridge's own.

Imports nothing of the bridge's model or encoder: the bytes that the provider sent are read with the
standard library, the record by the schema that the registry has for it.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

import fastavro

RESULTS: Final = ["None", "Win", "Lose", "Refund", "HalfWin", "HalfLose", "CashOut", "PlaceWin"]
ITEM_TYPES: Final = [
    "Standard",
    "StartingPrice",
    "ToteExotics",
    "FixedExotics",
    "BetBuilder",
    "Pickem",
    "EachWay",
    "ToteSingleRunner",
]
ENUMS: Final = {
    "settlement.SettlementResult": dict(enumerate(RESULTS)),
    "settlement.BetItemType": dict(enumerate(ITEM_TYPES, 1)),
}
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))?")
_EPOCH = datetime.date(1970, 1, 1).toordinal()


class WriterSchema:
    """A schema as the registry gives it; date-times are read as integers of microseconds."""

    def __init__(self, text: str) -> None:
        self.parsed: Any = fastavro.parse_schema(_plain(json.loads(text)))
        self.named: dict[str, Any] = {}
        self._collect(self.parsed)

    def read(self, body: bytes) -> dict[str, Any]:
        """The record in the bytes behind the wire format's header."""
        datum: Any = fastavro.schemaless_reader(BytesIO(body), self.parsed, None)
        return dict(datum)

    def resolve(self, schema: Any) -> Any:
        """The schema in full: the one branch that is not null, and what a name stands for."""
        if isinstance(schema, list):
            schema = next(branch for branch in schema if branch != "null")
        return self.named.get(schema, {"type": schema}) if isinstance(schema, str) else schema

    def _collect(self, node: Any) -> None:
        if isinstance(node, dict):
            if "name" in node and node["type"] in ("record", "enum"):
                self.named[node["name"]] = node
            for value in node.values():
                self._collect(value)
        elif isinstance(node, list):
            for item in node:
                self._collect(item)


def differences(sent: bytes, record: dict[str, Any], schema: WriterSchema) -> Iterator[str]:
    """Every place where a record is not what the provider's message said."""
    yield from _compare("data", json.loads(sent)["data"], record, schema.parsed, schema)


def _plain(node: Any) -> Any:
    """The schema with a mark of our own in place of each logical type, which fastavro would convert."""
    if isinstance(node, dict):
        kept = {key: _plain(value) for key, value in node.items() if key != "logicalType"}
        return {**kept, "micros": True} if "logicalType" in node else kept
    return [_plain(item) for item in node] if isinstance(node, list) else node


def identity(sent: bytes) -> tuple[str | None, int] | None:
    """betId, if any, and settlementVersion of a message: what makes it one of a kind. None without a bet."""
    data = json.loads(sent).get("data")
    return None if data is None else (data.get("betId"), data["settlementVersion"])


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
    """What a value that is neither a record nor an array has to become."""
    if schema["type"] == "enum":
        return ENUMS[schema["name"]].get(sent)
    if schema.get("micros"):
        return _micros(sent)
    return float(sent) if schema["type"] == "double" else sent


def _micros(text: str) -> int:
    match = _TIME.fullmatch(text)
    assert match is not None, f"the provider sent a time that is none: {text}"
    day, hour, minute, second, fraction, sign, off_hours, off_minutes = match.groups()
    days = datetime.date.fromisoformat(day).toordinal() - _EPOCH
    offset = (int(off_hours or 0) * 3600 + int(off_minutes or 0) * 60) * (-1 if sign == "-" else 1)
    seconds = days * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second) - offset
    return seconds * 1_000_000 + int(((fraction or "") + "000000")[:6])
