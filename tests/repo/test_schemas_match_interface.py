"""Every field of the interface is in the model and in Avro, with its type and nullability, and no other."""

from __future__ import annotations

from types import NoneType
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest

from bridge.avro.schemas import load
from bridge.messages import model
from tests.interface import ENUMS, TABLES, fields_of

RECORDS = {
    "SettlementFeedMessageDto": model.FeedMessage,
    "SettledBetViewModelV3": model.SettledBetModel,
    "SettledBetItemViewModel": model.SettledBetItemModel,
    "EventInfoViewModel": model.EventInfoModel,
    "MarketViewModel": model.MarketModel,
    "SettlementInfoViewModel": model.SettlementInfoModel,
    "EachWayPriceModel": model.EachWayPriceModel,
    "SettledBetBuilderItemViewModel": model.BetBuilderItemModel,
    "BetAmountViewModel": model.BetAmountModel,
}
SCALARS = [
    ("string", str, "string"),
    ("boolean", model.Boolean, "boolean"),
    ("int32", model.Int32, "long"),
    ("int64", model.Int64, "long"),
    ("double", model.Double, "double"),
    ("date-time", model.DateTime, {"type": "long", "logicalType": "timestamp-micros"}),
    ("map", model.StringMap, {"type": "map", "values": "string"}),
    ("SettlementResult", model.SettlementResult, "SettlementResult"),
    ("BetItemType", model.BetItemType, "BetItemType"),
]
KEY = "betId"
"""Nullable in the interface, but a bet without one is no record: the one exception."""


def avro_name(record: type) -> str:
    return record.__name__.removesuffix("Model")


def expected(table: str) -> dict[str, str]:
    fields = fields_of(table)
    return fields | {KEY: "string"} if KEY in fields else fields


def described_model(hint: Any) -> str:
    """A model's type in the tables' words."""
    if get_origin(hint) is NotRequired:
        return described_model(get_args(hint)[0])
    if hint == model.BetId:
        return "string"
    for name, type_, _ in SCALARS:
        if hint == type_:
            return name
    for name, record in RECORDS.items():
        if hint is record:
            return name
    inner = get_args(hint)[0]
    items: Any = model.Items
    if get_origin(inner) is list and hint == items[get_args(inner)[0]]:
        return described_model(get_args(inner)[0]) + "[]"
    is_nullable = get_args(inner)[1:] == (NoneType,)
    return described_model(get_args(inner)[0]) + "?" if is_nullable else repr(hint)


def described_avro(node: Any, wanted: str) -> str:
    """An Avro type in the tables' words: in the wanted one where several become the same in Avro."""
    if isinstance(node, list):
        return described_avro(node[1], wanted) + "?" if node[0] == "null" else repr(node)
    if isinstance(node, dict) and node["type"] == "array":
        return described_avro(node["items"], wanted) + "[]"
    name = node["name"] if isinstance(node, dict) and "name" in node else node
    words = [word for word, _, avro in SCALARS if avro == name]
    words += [table for table, record in RECORDS.items() if avro_name(record) == name]
    return next((word for word in words if word == wanted.rstrip("?[]")), repr(words or name))


def named_types(node: Any) -> dict[str, Any]:
    """Every record and enum that a schema defines, by name."""
    if isinstance(node, list):
        return {name: type_ for part in node for name, type_ in named_types(part).items()}
    if not isinstance(node, dict):
        return {}
    found = {node["name"]: node} if node["type"] in ("record", "enum") else {}
    for part in [node.get("items"), *(field["type"] for field in node.get("fields", ()))]:
        found |= named_types(part)
    return found


NAMED = named_types(load("settled-bet"))


@pytest.mark.parametrize("table", TABLES)
def test_the_model_has_the_interfaces_fields(table: str) -> None:
    hints = get_type_hints(RECORDS[table], include_extras=True)
    assert {name: described_model(hint) for name, hint in hints.items()} == expected(table)


@pytest.mark.parametrize("table", TABLES)
def test_exactly_the_nullable_fields_may_be_missing(table: str) -> None:
    hints = get_type_hints(RECORDS[table], include_extras=True)
    nullable = {name for name, type_ in expected(table).items() if type_.endswith("?")}
    assert {name for name, hint in hints.items() if get_origin(hint) is NotRequired} == nullable


@pytest.mark.parametrize("table", [table for table in TABLES if table != "SettlementFeedMessageDto"])
def test_avro_has_the_interfaces_fields(table: str) -> None:
    wanted = expected(table)
    fields = NAMED[avro_name(RECORDS[table])]["fields"]
    assert [field["name"] for field in fields] == list(wanted)
    found = {field["name"]: described_avro(field["type"], wanted[field["name"]]) for field in fields}
    assert found == wanted


def test_avro_has_no_other_record() -> None:
    records = {name for name, node in NAMED.items() if node["type"] == "record"}
    assert records | {"FeedMessage"} == {avro_name(record) for record in RECORDS.values()}


@pytest.mark.parametrize("enum", ENUMS)
def test_enums_have_the_interfaces_names(enum: str) -> None:
    words = ENUMS[enum].split()
    table = dict(zip(map(int, words[::2]), words[1::2], strict=True))
    in_model = {"SettlementResult": model.SETTLEMENT_RESULTS, "BetItemType": model.BET_ITEM_TYPES}
    assert in_model[enum] == table
    assert NAMED[enum]["symbols"] == [*table.values(), "Unknown"]
    assert NAMED[enum]["default"] == "Unknown"
