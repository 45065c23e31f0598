"""`bridge schemas check` on wrong schemas, one error at a time."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.avro.evolution import check, unlike

RESULT: dict[str, Any] = {
    "type": "enum",
    "name": "Result",
    "doc": "R.",
    "symbols": ["Win", "Unknown"],
    "default": "Unknown",
}
GOOD: dict[str, Any] = {
    "type": "record",
    "name": "SettledBet",
    "namespace": "settlement",
    "doc": "A bet.",
    "fields": [
        {"name": "betId", "type": "string", "doc": "Its id."},
        {"name": "price", "type": ["null", "double"], "default": None, "doc": "Its price."},
        {"name": "result", "type": RESULT, "doc": "Its result."},
    ],
}


def write(root: Path, current: Any, *history: Any) -> None:
    folder = root / "history" / "settled-bet"
    folder.mkdir(parents=True)
    (root / "settled-bet.avsc").write_text(json.dumps(current))
    for number, version in enumerate(history, 1):
        (folder / f"v{number}.avsc").write_text(json.dumps(version))


def problems(root: Path) -> list[str]:
    return check(root, ["settled-bet"])


def changed(**fields: Any) -> dict[str, Any]:
    """Return the good schema with a part of this field changed, or the field added."""
    schema = copy.deepcopy(GOOD)
    for name, change in fields.items():
        for field in schema["fields"]:
            if field["name"] == name:
                field.update(change)
                break
        else:
            schema["fields"].append({"name": name, **change})
    return schema


def added(kind: Any, **more: Any) -> dict[str, Any]:
    """Return the good schema with a field `x` of this type."""
    return changed(x={"type": kind, "doc": "X.", **more})


def test_the_shipped_schemas_have_no_problem() -> None:
    assert check() == []


def test_a_new_nullable_field_and_a_new_symbol_are_compatible(tmp_path: Path) -> None:
    enum = RESULT | {"symbols": ["Win", "Lose", "Unknown"]}
    second = changed(result={"type": enum}, extra={"type": ["null", "long"], "default": None, "doc": "New."})
    write(tmp_path, second, GOOD, second)
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (GOOD | {"doc": ""}, "settled-bet.avsc: SettledBet: SettledBet has no doc"),
        (GOOD | {"name": "Bet"}, "settled-bet.avsc: must be the record SettledBet in the namespace"),
        (GOOD | {"namespace": "other"}, "must be the record SettledBet in the namespace settlement"),
        (changed(betId={"doc": ""}), "SettledBet.betId: has no doc"),
        (changed(betId={"type": ["string", "null"], "default": ""}), 'a union must be ["null", X]'),
        (changed(price={"default": 1.0}), "SettledBet.price: may be null, so its default must be null"),
        (added(["null", "long"]), "SettledBet.x: may be null, so its default"),
        (added({"type": "array", "items": ["long", "null"]}), "SettledBet.x[]: a union"),
        (added({"type": "map", "values": ["long", "null"]}), "SettledBet.x{}: a union"),
        (changed(**{"a-b": {"doc": "X", "type": "long"}}), "'a-b' is not an Avro name"),
        (added("lng"), "SettledBet is not an Avro schema: settlement.lng"),
        (changed(result={"type": {**RESULT, "default": "Win"}}), "Result needs the default Unknown"),
        (changed(result={"type": {**RESULT, "doc": ""}}), "SettledBet.result: Result has no doc"),
        (GOOD | {"fields": GOOD["fields"] + GOOD["fields"][:1]}, "betId occurs twice"),
        ([], "settled-bet.avsc must hold a JSON object, not list"),
        ({}, "is not an Avro schema"),
    ],
)
def test_an_error_is_reported_with_its_place(tmp_path: Path, schema: Any, text: str) -> None:
    write(tmp_path, schema, schema)
    found = problems(tmp_path)
    assert any(text in problem for problem in found), found


REWORDED = changed(betId={"doc": "Other words."})


@pytest.mark.parametrize(
    ("schema", "history", "missing"),
    [
        (GOOD, [], "v1"),
        (REWORDED, [GOOD], "v2"),
        (GOOD, [GOOD, REWORDED], "v3"),  # going back to an older version is a change, too
    ],
)
def test_a_change_must_be_added_to_the_history(
    tmp_path: Path, schema: Any, history: list[Any], missing: str
) -> None:
    write(tmp_path, schema, *history)
    assert problems(tmp_path) == [
        f"settled-bet.avsc: is not the latest version in the history: add it as {missing}.avsc"
    ]


def test_versions_are_numbered_without_gaps(tmp_path: Path) -> None:
    write(tmp_path, GOOD, GOOD, GOOD)
    (tmp_path / "history/settled-bet/v1.avsc").unlink()
    assert problems(tmp_path) == [
        "history/settled-bet: versions must be numbered from v1 without gaps, not [2]"
    ]


def test_compatibility_with_every_version_both_ways(tmp_path: Path) -> None:
    second = added("long", default=0)
    third = added("string", default="")
    write(tmp_path, third, GOOD, second, third)
    assert problems(tmp_path) == [
        "settled-bet.avsc: is not compatible with history/settled-bet/v2.avsc: SettledBet.x: was long and is "
        "string"
    ]


def test_a_version_does_not_add_a_field_and_drop_another(tmp_path: Path) -> None:
    nested = {"type": "record", "name": "In", "doc": "I.", "fields": []}
    field = {"type": ["null", "long"], "default": None, "doc": "D."}

    def version(*names: str, inner: str) -> dict[str, Any]:
        inside = {**nested, "fields": [{"name": inner, **field}]}
        return changed(inside={"type": inside, "doc": "D."}, **dict.fromkeys(names, field))

    one, other = version(inner="a"), version("x", inner="b")
    write(tmp_path / "both", other, one, other)
    assert problems(tmp_path / "both") == [
        "history/settled-bet/v2.avsc: adds inside.b and drops inside.a: drop it in a later release"
    ]
    between = version("x", inner="a")
    between["fields"][-2]["type"]["fields"].append({"name": "b", **field})
    write(tmp_path / "later", other, one, between, other)
    assert problems(tmp_path / "later") == []


def test_unreadable_files_are_problems(tmp_path: Path) -> None:
    assert "settled-bet.avsc cannot be read" in problems(tmp_path)[0]
    (tmp_path / "settled-bet.avsc").write_text("{")
    assert "settled-bet.avsc cannot be read" in problems(tmp_path)[0]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"betId": {"aliases": ["id"]}}, "SettledBet.betId: aliases"),
        ({"price": {"default": 0.0, "type": ["double", "null"]}}, "SettledBet.price"),
        ({"result": {"type": {**RESULT, "default": "Win"}}}, "SettledBet.result: default"),
        ({"result": {"type": {**RESULT, "symbols": ["Unknown", "Win"]}}}, "SettledBet.result: symbols"),
        ({"betId": {"type": {"type": "string", "logicalType": "uuid"}}}, "SettledBet.betId"),
        ({"betId": {"type": {"type": "string"}, "doc": "In other words.", "mine": 1}}, ""),
        ({"betId": {"aliases": []}}, ""),
        ({"x": {"type": "long", "default": 0}}, "SettledBet"),
    ],
)
def test_where_two_schemas_mean_something_else(change: dict[str, Any], path: str) -> None:
    assert unlike(GOOD, changed(**change)) == path == unlike(changed(**change), GOOD)
    assert unlike(changed(**change), changed(**change)) == ""


def test_no_default_is_another_than_null() -> None:
    del (without := changed())["fields"][1]["default"]
    assert unlike(GOOD, without) == "SettledBet.price: default"
