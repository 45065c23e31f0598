"""Makes the types of `bridge.messages.transcoder` from the model and the Avro schema.

Bounds come from the model, the order of fields and symbols from the schema, names and nullability from both.
If the two disagree, or the model has a rule that is not known here, no transcoder is made: no rule of the
model is ever ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final, NotRequired, get_args, get_origin, get_type_hints

import orjson
from typing_extensions import is_typeddict

from bridge.avro.codec import Codec
from bridge.avro.encoder import UnknownSchema
from bridge.messages import model
from bridge.messages import transcoder as to
from bridge.messages.extras import Extras

parse: Final[Callable[[bytes], Any]] = orjson.loads
"""Parses a JSON document. Raises ValueError."""

_ENUMS: Final = (
    (model.SettlementResult, model.SETTLEMENT_RESULTS),
    (model.BetItemType, model.BET_ITEM_TYPES),
)
_NULLABLE: Final[Any] = model.Nullable
_ITEMS: Final[Any] = model.Items
_ANY_LENGTH: Final = 2**62


def make_transcoder(codec: Codec, zeros: Mapping[str, Any]) -> to.Transcoder:
    """Make a transcoder that writes bets as the codec does; `zeros`: path → JSON value of a missing field.

    Raises UnknownSchema if the codec's schema does not match `bridge.messages.model.SettledBetModel`.
    """
    extras = Extras()
    pairing = _Pairing(codec.named, zeros, extras)
    bet = pairing.type(model.SettledBetModel, codec.schema, "data")
    key = pairing.types["data.betId"]
    version = pairing.types["data.settlementVersion"]
    settled_at = pairing.types["data.settlementTime"]
    assert isinstance(bet, to.Object)
    assert isinstance(key, to.Key)
    assert isinstance(version, to.Integer)
    assert isinstance(settled_at, to.DateTime)
    return to.Transcoder(bet, key, version, settled_at, extras, codec.header)


class _Pairing:
    """One walk down the model and a schema with the named types `named`."""

    def __init__(self, named: Mapping[str, Any], zeros: Mapping[str, Any], extras: Extras) -> None:
        self._named = named
        self._zeros = zeros
        self._extras = extras
        self.types: dict[str, to.Type] = {}
        """The types of all fields, by path."""

    def type(self, hint: Any, schema: Any, path: str) -> to.Type:
        """Return the type for a hint of the model and a schema, both at this path of a message."""
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        if isinstance(schema, list):
            return self._nullable(hint, schema, path)
        kind = schema["type"]
        if is_typeddict(hint) and kind == "record":
            return self._record(hint, schema["fields"], path)
        listed, *_ = get_args(hint) or [hint]
        if get_origin(listed) is list and kind == "array" and hint == _ITEMS[get_args(listed)[0]]:
            return to.Array(self.type(get_args(listed)[0], schema["items"], f"{path}[]"))
        if hint == model.StringMap and kind == "map" and schema["values"] == "string":
            return to.StringMap()
        return _scalar(hint, schema, path)

    def _nullable(self, hint: Any, schema: list[Any], path: str) -> to.Type:
        union, *_ = get_args(hint) or [hint]
        other, *_ = get_args(union) or [union]
        if hint != _NULLABLE[other] or schema[:-1] != ["null"]:
            raise _disagreement(hint, schema, path)
        return to.Nullable(self.type(other, schema[-1], path))

    def _record(self, hint: Any, fields: list[Any], path: str) -> to.Type:
        hints = get_type_hints(hint, include_extras=True)
        if hints.keys() != {field["name"] for field in fields}:
            raise _disagreement(hint, [field["name"] for field in fields], path)
        made = [self._field(hints[field["name"]], field, path) for field in fields]
        return to.Object(made, f"{path}.", self._extras)

    def _field(self, hint: Any, field: Any, path: str) -> to.Field:
        path = f"{path}.{field['name']}"
        optional = get_origin(hint) is NotRequired
        type_ = self.type(get_args(hint)[0] if optional else hint, field["type"], path)
        if optional and not isinstance(type_, to.Nullable):  # a missing field is null
            raise _disagreement(hint, field["type"], path)
        self.types[path] = type_
        zero = self._zeros.get(path) if optional or path in self._zeros else to.REQUIRED
        [name] = orjson.loads(orjson.dumps({field["name"]: None}))  # orjson's own key: found by identity
        return to.Field(name, type_, zero)


def _scalar(hint: Any, schema: Any, path: str) -> to.Type:
    kind = schema["type"]
    if hint == model.Boolean and kind == "boolean":
        return to.Boolean()
    if hint == model.Double and kind == "double":
        return to.Double()
    if hint == model.DateTime and kind == "long":
        return to.DateTime()
    for enum, symbols in _ENUMS:
        if hint == enum and kind == "enum" and {*symbols.values()} <= {*schema["symbols"]}:
            return to.Enum({number: schema["symbols"].index(symbol) for number, symbol in symbols.items()})
    base, *marks = get_args(hint) or [hint]
    bounds = _bounds(marks)
    if base is int and kind == "long" and bounds.keys() == {"ge", "le"}:
        return to.Integer(bounds["ge"], bounds["le"])
    if base is str and kind == "string" and bounds.keys() <= {"min_length", "max_length"}:
        string = to.Key if hint == model.BetId else to.String
        return string(bounds.get("min_length", 0), bounds.get("max_length", _ANY_LENGTH))
    raise _disagreement(hint, schema, path)


def _bounds(marks: Iterable[Any]) -> dict[str, Any]:
    """Return all bounds of an annotated type by name, known here or not."""
    bounds: dict[str, Any] = {}
    for mark in marks:
        if not isinstance(mark, model.Zero):
            for bound in getattr(mark, "metadata", [mark]):  # a pydantic Field has several
                known = is_dataclass(bound) and not isinstance(bound, type)
                bounds |= asdict(bound) if known else {repr(bound): bound}
    return bounds


def _disagreement(hint: Any, schema: Any, path: str) -> UnknownSchema:
    return UnknownSchema(f"{schema} for {path}, which is {hint}")
