"""Every field of the interface is in the model and in Avro, with its type and nullability, and no other."""

from __future__ import annotations

from typing import Any, NotRequired, get_type_hints

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
SCALARS: dict[str, tuple[Any, Any]] = {
    "string": (str, "string"),
    "boolean": (model.Boolean, "boolean"),
    "int32": (model.Int32, "long"),
    "int64": (model.Int64, "long"),
    "double": (model.Double, "double"),
    "date-time": (model.DateTime, {"type": "long", "logicalType": "timestamp-micros"}),
    "map": (model.StringMap, {"type": "map", "values": "string"}),
    "SettlementResult": (model.SettlementResult, "SettlementResult"),
    "BetItemType": (model.BetItemType, "BetItemType"),
}
"""Type in the tables → in the model, and in Avro."""
NULLABLE: Any = model.Nullable
ITEMS: Any = model.Items
KEY = "betId"
"""Nullable in the interface, but a bet without one is no record: the one exception."""


def avro_name(record: type) -> str:
    return record.__name__.removesuffix("Model")


def in_model(kind: str) -> Any:
    """The type that a field of this type in the tables has in the model."""
    if kind.endswith("?"):
        return NotRequired[NULLABLE[in_model(kind[:-1])]]
    if kind.endswith("[]"):
        return ITEMS[in_model(kind[:-2])]
    return RECORDS.get(kind) or SCALARS[kind][0]


def in_avro(kind: str) -> Any:
    """The same in Avro, with the names of records and enums."""
    if kind.endswith("?"):
        return ["null", in_avro(kind[:-1])]
    if kind.endswith("[]"):
        return {"type": "array", "items": in_avro(kind[:-2])}
    return avro_name(RECORDS[kind]) if kind in RECORDS else SCALARS[kind][1]


def by_name(node: Any) -> Any:
    """An Avro type with the names of what it defines."""
    if isinstance(node, list):
        return [by_name(part) for part in node]
    if not isinstance(node, dict) or "name" in node:
        return node["name"] if isinstance(node, dict) else node
    return {key: by_name(part) for key, part in node.items()}


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
def test_the_model_has_the_interfaces_fields_and_the_nullable_ones_may_be_missing(table: str) -> None:
    expected = {name: in_model(kind) for name, kind in fields_of(table).items()}
    expected |= {KEY: model.BetId} if KEY in expected else {}
    assert get_type_hints(RECORDS[table], include_extras=True) == expected


@pytest.mark.parametrize("table", [table for table in TABLES if table != "SettlementFeedMessageDto"])
def test_avro_has_the_interfaces_fields(table: str) -> None:
    expected = [(name, in_avro("string" if name == KEY else kind)) for name, kind in fields_of(table).items()]
    fields = NAMED[avro_name(RECORDS[table])]["fields"]
    assert [(field["name"], by_name(field["type"])) for field in fields] == expected


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
