"""Settled bets, held against the interface's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from bridge_sandbox.provider.bets import timestamp
from bridge_sandbox.provider.stream import Published, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World
from tests.interface import TABLES, fields_of
from tests.unit.sandbox.provider.conftest import ORIGIN


def shape(kind: str) -> Any:
    """A type of the interface: the name of a scalar, a dict for a record, a list of one for an array."""
    kind = kind.rstrip("?")
    if kind.endswith("[]"):
        return [shape(kind[:-2])]
    if kind not in TABLES:
        return kind
    return {f"{name}{'?' * inner.endswith('?')}": shape(inner) for name, inner in fields_of(kind).items()}


MESSAGE = shape("SettlementFeedMessageDto")
"""A nullable field ends in "?"."""
TIME_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?(Z|[+-]\d\d:\d\d)?")


def fits(value: Any, kind: Any) -> bool:
    """Whether a JSON value is of a scalar kind of the interface."""
    match kind:
        case "int32" | "int64":
            return type(value) is int and abs(value) < 2 ** (31 if kind == "int32" else 63)
        case "SettlementResult" | "BetItemType":
            return type(value) is int and value in (range(8) if kind == "SettlementResult" else range(1, 9))
        case "map":
            return type(value) is dict and all(type(v) is str for v in value.values())
        case "date-time":
            return type(value) is str and TIME_PATTERN.fullmatch(value) is not None
    return type(value) in {"double": (int, float), "boolean": (bool,), "string": (str,)}[kind]


def walk(value: Any, shape: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every field's path and value; fails on what the interface does not allow."""
    if isinstance(shape, list):
        assert isinstance(value, list), path
        for element in value:
            yield from walk(element, shape[0], path)
    elif isinstance(shape, dict):
        names = {name.rstrip("?"): name for name in shape}
        assert isinstance(value, dict), path
        assert set(value) <= set(names), path
        for name, marked in names.items():
            place = f"{path}.{name}"
            if name not in value:
                assert marked.endswith("?"), f"{place} is missing"
                yield place, "missing"
            elif value[name] is None:
                assert marked.endswith("?"), f"{place} is null"
                yield place, None
            else:
                yield from walk(value[name], shape[marked], place)
    else:
        assert fits(value, shape), f"{path} = {value!r}"
        yield path, value


@pytest.fixture(scope="module")
def messages(stream: Stream) -> list[Published]:
    return [stream.message(slot) for slot in range(3000)]


@pytest.fixture(scope="module")
def fields(messages: list[Published]) -> dict[str, set[Any]]:
    """Path → all values seen there, maps as their keys."""
    return seen_in(messages)


def seen_in(messages: list[Published]) -> dict[str, set[Any]]:
    """Path → all values seen there, maps as their keys."""
    seen: dict[str, set[Any]] = {}
    for message in messages:
        for path, value in walk(orjson.loads(message.body), MESSAGE, ""):
            seen.setdefault(path, set()).add(tuple(value) if isinstance(value, dict) else value)
    return seen


def places(shape: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """Path of every field of a shape, and whether it is nullable."""
    if isinstance(shape, list):
        yield from places(shape[0], path)
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            place = f"{path}.{name.rstrip('?')}"
            yield place, name.endswith("?")
            yield from places(inner, place)


NULLABLE = {path for path, is_nullable in places(MESSAGE) if is_nullable}
RECORDS = {path.rpartition(".")[0] for path, _ in places(MESSAGE)}


def test_every_message_follows_the_interface_and_has_each_field(fields: dict[str, set[Any]]) -> None:
    assert {path for path, _ in places(MESSAGE)} - RECORDS <= set(fields)


ENVELOPE = {".data", ".data.betId"}
"""What is null or missing in odd messages only: without these there is no bet."""


def test_nullable_fields_are_null_missing_or_set(fields: dict[str, set[Any]]) -> None:
    assert {path for path in NULLABLE - ENVELOPE if not fields[path] >= {None, "missing"}} == set()


def test_odd_messages_have_null_and_missing_everywhere(world: World) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, odd=0.1))
    seen = seen_in([stream.message(slot) for slot in range(3000)])
    assert {path for path in NULLABLE if not seen[path] >= {None, "missing"}} == set()
    assert len(seen[".pingId"]) > 100


def test_values_take_every_form_that_the_interface_allows(fields: dict[str, set[Any]]) -> None:
    assert fields[".data.betSettlement"] == set(range(8))
    assert fields[".data.selections.settlement.settlementResult"] == set(range(8))
    assert fields[".data.selections.type"] == set(range(1, 9))
    values = fields[".data.amount.value"]
    assert any(value > 2**53 and int(float(value)) != value for value in values)
    assert max(values) < 2**63
    assert {0, 2, 3, 8, 18} <= fields[".data.amount.precision"]
    assert {"EUR", "BTC", "ETH"} <= fields[".data.amount.currency"]
    times = fields[".data.settlementTime"]
    assert any(re.search(r"\.\d{7}Z$", time) for time in times)
    assert any(time.endswith("+02:00") for time in times)
    assert any(re.fullmatch(r"[^Z+]*", time) for time in times)


def test_a_payout_has_no_more_decimals_than_its_currency(messages: list[Published]) -> None:
    paid = [bet for message in messages if (bet := orjson.loads(message.body)["data"]).get("amount")]
    yen = [bet["payout"] for bet in paid if bet["amount"].get("currency") == "JPY"]
    assert len(yen) > 50
    assert all(float(payout).is_integer() for payout in yen)


def test_the_mix_is_that_of_a_provider(messages: list[Published]) -> None:
    items = [orjson.loads(message.body)["data"].get("selections") or [] for message in messages]
    builders = [any(item.get("betBuilderItems") for item in bet) for bet in items]
    assert sum(len(message.body) for message in messages) / len(messages) == pytest.approx(2048, rel=0.1)
    assert sum(map(len, items)) / len(items) == pytest.approx(2.4, abs=0.1)
    assert sum(builders) / len(builders) == pytest.approx(0.1, abs=0.015)


@pytest.mark.parametrize("zone", [0, 5, 50])
def test_every_form_of_a_time_means_the_same_moment(zone: int) -> None:
    text = timestamp(1_790_000_000_123_456, zone, tick=7)
    assert "7" in text
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    assert moment == datetime(2026, 9, 21, 14, 13, 20, 123456, UTC)
