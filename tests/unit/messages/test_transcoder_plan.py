"""A transcoder is made only if model and schema agree in everything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, NotRequired

import pytest
from annotated_types import Gt
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from bridge.avro.codec import Codec
from bridge.avro.encoder import UnknownSchema
from bridge.avro.schemas import load
from bridge.messages import model
from bridge.messages.transcoder_plan import make_transcoder

Fields = dict[str, dict[str, Any]]


def fields(record: Any) -> Fields:
    return {field["name"]: field for field in record["fields"]}


def retyped(name: str, type_: Any) -> Callable[[Any], None]:
    """Return the schema with another type for a field of a bet."""
    return lambda schema: fields(schema)[name].update(type=type_)


SPOILS: dict[str, Callable[[Any], None]] = {
    "a field less": lambda schema: schema["fields"].pop(),
    "a field more": lambda schema: schema["fields"].append({"name": "new", "type": "long", "default": 0}),
    "another name": lambda schema: schema["fields"][0].update(name="BetId"),
    "nullable": retyped("payout", ["null", "double"]),
    "not nullable": lambda schema: schema["fields"].append(
        {"name": "amount", "type": schema["fields"].pop()["type"][1]}
    ),
    "null behind": lambda schema: fields(schema)["amount"]["type"].reverse(),
    "a symbol less": lambda schema: fields(schema)["betSettlement"]["type"]["symbols"].remove("Win"),
    "an integer for a double": retyped("payout", "long"),
    "a number for a string": retyped("betId", "long"),
    "a number for a boolean": retyped("isCancelled", "long"),
    "a string for a time": retyped("settlementTime", "string"),
    "an enum for a boolean": retyped("isCancelled", {"type": "enum", "name": "E", "symbols": ["no", "yes"]}),
    "a map of numbers": lambda schema: fields(fields(schema)["selections"]["type"][1]["items"])[
        "parameters"
    ].update(type=["null", {"type": "map", "values": "long"}]),
    "a map for a record": retyped("amount", ["null", {"type": "map", "values": "long"}]),
    "a map for an array": retyped("selections", ["null", {"type": "map", "values": "string"}]),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_schema_that_differs_from_the_model_is_unknown(spoil: Callable[[Any], None]) -> None:
    schema = json.loads(json.dumps(load("settled-bet")))
    make_transcoder(Codec(schema, 1), {})
    spoil(schema)
    with pytest.raises(UnknownSchema, match=" for data"):
        make_transcoder(Codec(schema, 1), {})


@pytest.mark.parametrize(
    ("hint", "type_"),
    [
        (int, "long"),
        (Annotated[int, Field(ge=0)], "long"),
        (Annotated[int, Field(ge=0, le=9, multiple_of=3)], "long"),
        (Annotated[int, Field(ge=0, le=9), Gt(3)], "long"),
        (Annotated[str, Field(pattern="^x")], "string"),
        (Annotated[str, Field(min_length=1), AfterValidator(str.strip)], "string"),
        (Annotated[float, Field(ge=0)], "double"),
        (Annotated[bool, AfterValidator(bool)], "boolean"),
        (dict[str, str], {"type": "map", "values": "string"}),
        (Annotated[str | None, Field(default="")], ["null", "string"]),
        (NotRequired[model.Double], "double"),
        (bytes, "string"),
    ],
)
def test_a_rule_that_is_not_known_is_never_ignored(
    hint: Any, type_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {"type": "record", "name": "Bet", "fields": [{"name": "new", "type": type_}]}
    monkeypatch.setattr(model, "SettledBetModel", TypedDict("Bet", {"new": hint}))  # type: ignore[operator]
    with pytest.raises(UnknownSchema, match=r"for data\.new"):
        make_transcoder(Codec(schema, 1), {})
