"""What arrived is what was sent, and any single change is found."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.messages.parser import MessageParser
from bridge_sandbox.demo.verify import WriterSchema, differences
from bridge_sandbox.provider.stream import Log, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World

EXAMPLE = (Path(__file__).parents[4] / "examples" / "settled-bet.message.json").read_bytes()
SCHEMA = WriterSchema(json.dumps(load("settled-bet")))
CODEC = Codec(load("settled-bet"), 1)
ORIGIN = 1_790_000_000.0
SENT = [
    EXAMPLE,
    *(m.body for m in Log(Stream(World(3, ORIGIN), ORIGIN, StreamSettings())).read(ORIGIN, ORIGIN + 1.999)),
]
Path_ = tuple[str | int, ...]


def arrived(sent: bytes) -> dict[str, Any]:
    """The record that the bridge makes of a message, as a reader of the topic sees it."""
    bet = MessageParser().parse(sent).bet
    assert bet is not None
    return SCHEMA.read(CODEC.encode(bet)[5:])


def places(node: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value with its path."""
    yield path, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def changed(record: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """The record with another value at one place."""
    found = copy.deepcopy(record)
    node: Any = found
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return found


def others(value: Any) -> list[Any]:
    """The values nearest to this one that are not this one, in value or in type."""
    match value:
        case None:
            return [0, "", False]
        case bool():
            return [not value, int(value), None]
        case int():
            return [value + 1, float(value), None]
        case float():
            return [
                math.nextafter(value, math.inf),
                math.nan,
                None,
                *([int(value)] if value.is_integer() else []),
            ]
        case _:
            return [f"{value} ", f"x{value}", None]


def test_what_the_bridge_writes_is_what_was_sent() -> None:
    assert len(SENT) == 401
    for sent in SENT:
        assert list(differences(sent, arrived(sent), SCHEMA)) == []


@pytest.mark.parametrize("sent", SENT[:20])
def test_any_single_change_is_one_difference(sent: bytes) -> None:
    record = arrived(sent)
    for path, value in places(record):
        if isinstance(value, dict | list):
            continue
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
        for other in others(value):
            found = list(differences(sent, changed(record, path, other), SCHEMA))
            assert len(found) == 1, (path, value, other)
            # A map is compared as a whole.
            assert f"data{place}".startswith(found[0].partition(": ")[0])


@pytest.mark.parametrize("sent", SENT[:5])
def test_an_element_more_or_less_or_no_list_is_a_difference(sent: bytes) -> None:
    record = arrived(sent)
    for path, node in places(record):
        for other in (node[1:], [*node, node[0]], None) if isinstance(node, list) else ():
            assert list(differences(sent, changed(record, path, other), SCHEMA))


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2026-01-31T12:00:00Z", 1_769_860_800_000_000),
        ("2026-01-31T12:00:00.1234567+02:00", 1_769_853_600_123_456),
        ("2026-01-31T12:00:00.5-00:30", 1_769_862_600_500_000),
        ("1969-12-31T23:59:59.999999", -1),
        ("0001-01-01T00:00:00", -62_135_596_800_000_000),
    ],
)
def test_it_reads_times_for_itself(text: str, micros: int) -> None:
    message = json.loads(EXAMPLE)
    message["data"]["settlementTime"] = text
    sent = json.dumps(message).encode()
    record = arrived(EXAMPLE)
    assert list(differences(sent, record | {"settlementTime": micros}, SCHEMA)) == []
    assert len(list(differences(sent, record | {"settlementTime": micros + 1}, SCHEMA))) == 1
