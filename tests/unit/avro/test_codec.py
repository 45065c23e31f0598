"""Records in the wire format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from bridge.avro.codec import Codec, schema_id_of
from bridge.avro.schemas import load
from bridge.errors import ForeignRecord, SchemaError

RECORD: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "examples/settled-bet.record.json").read_text("utf-8")
)

ID = {"name": "id", "type": "string"}


def kind(*symbols: str) -> dict[str, Any]:
    enum = {"type": "enum", "name": "K", "symbols": [*symbols, "Unknown"], "default": "Unknown"}
    return {"name": "kind", "type": enum}


NEW = {"name": "new", "type": ["null", "long"], "default": None}
V1 = {"type": "record", "name": "R", "fields": [ID, kind("A")]}
V2 = {"type": "record", "name": "R", "fields": [ID, kind("A", "B"), NEW]}


def test_an_id_that_no_registry_assigns_is_not_read() -> None:
    assert schema_id_of(b"\x00\x7f\xff\xff\xff") == 2**31 - 1
    with pytest.raises(ForeignRecord):
        schema_id_of(b"\x00\x80\x00\x00\x00")


def test_the_bytes_are_the_header_and_plain_avro() -> None:
    data = Codec(load("settled-bet"), 0x01020304).encode(RECORD)
    assert data[:5] == b"\x00\x01\x02\x03\x04"
    assert schema_id_of(data) == 0x01020304
    read: Any = fastavro.schemaless_reader(
        io.BytesIO(data[5:]), fastavro.parse_schema(load("settled-bet")), None
    )
    assert read["betId"] == RECORD["betId"]
    assert read["settlementTime"].isoformat() == "2026-01-31T15:52:11+00:00"


@pytest.mark.parametrize("micros", [-62_135_647_200_000_000, 253_402_351_199_999_999])
def test_times_outside_the_calendar_survive(micros: int) -> None:
    """An offset can make a time before year 1 or after 9999."""
    codec = Codec(load("settled-bet"), 1)
    assert codec.decode(codec.encode(RECORD | {"settlementTime": micros}))["settlementTime"] == micros


def test_the_codec_of_another_version_is_made_once() -> None:
    asked: list[int] = []

    def by_id(schema_id: int) -> dict[str, Any]:
        asked.append(schema_id)
        return V1

    codec, datum = Codec(V2, 2, by_id), {"id": "a", "kind": "A", "new": 5}
    assert codec.in_schema(2) is codec
    assert codec.in_schema(1) is codec.in_schema(1)
    assert codec.in_schema(1).encode(datum) == Codec(V1, 1).encode(datum)
    assert asked == [1]


def test_other_versions_are_read_through_this_one() -> None:
    old, new = Codec(V1, 1, {2: V2}.__getitem__), Codec(V2, 2, {1: V1}.__getitem__)
    assert new.decode(old.encode({"id": "x", "kind": "A"})) == {"id": "x", "kind": "A", "new": None}
    assert old.decode(new.encode({"id": "x", "kind": "B", "new": 5})) == {"id": "x", "kind": "Unknown"}


def test_only_a_record_of_a_later_version_is_written_anew() -> None:
    both = {1: V1, 2: V2}.__getitem__
    old, new = Codec(V1, 1, both), Codec(V2, 2, both)
    for known in (old.encode({"id": "x", "kind": "A"}), new.encode({"id": "x", "kind": "A", "new": 5})):
        assert new.as_ours(known) is known
    later = new.encode({"id": "x", "kind": "B", "new": 5})
    assert old.as_ours(later) == old.encode({"id": "x", "kind": "Unknown"})
    assert old.as_ours(later + b"x") == later + b"x"


def test_a_newer_datum_is_written_with_an_older_schema() -> None:
    old = Codec(V1, 1)
    assert old.encode({"id": "x", "kind": "A", "new": 5}) == old.encode({"id": "x", "kind": "A"})


def test_a_record_of_an_unknown_schema_is_refused_with_both_ids() -> None:
    with pytest.raises(SchemaError, match="not a R of schema 1 but of schema 2"):
        Codec(V1, 1).decode(Codec(V2, 2).encode({"id": "x", "kind": "A", "new": None}))


@pytest.mark.parametrize(
    "datum",
    [
        {},
        {"id": None, "kind": "A"},
        {"id": "x", "kind": "C"},
        {"id": "x", "kind": "A", "new": "5"},
        None,
        {"id": 5},
    ],
)
def test_a_datum_that_does_not_fit_is_an_error_that_names_the_record(datum: Any) -> None:
    with pytest.raises(SchemaError, match="not a R"):
        Codec(V2, 2).encode(datum)


def test_an_error_has_the_path_of_the_first_wrong_field() -> None:
    spoilt: dict[str, Any] = json.loads(json.dumps(RECORD))
    spoilt["selections"][0]["settlement"]["settlementResult"] = "Foo"
    with pytest.raises(
        SchemaError, match=r"^not a SettledBet: selections\[0\]\.settlement\.settlementResult: .*'Foo'$"
    ):
        Codec(load("settled-bet"), 1).encode(spoilt)


def test_a_schema_that_the_encoder_does_not_support_is_refused_at_once() -> None:
    fields = [{"name": "value", "type": ["null", "string", "long"]}]
    with pytest.raises(SchemaError, match="the schema of Node is not supported: a union"):
        Codec({"type": "record", "name": "Node", "fields": fields}, 1)


WHOLE = Codec(V1, 1).encode({"id": "x", "kind": "A"})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *((data, "wire format") for data in (b"", WHOLE[:4], b"\x01" + WHOLE[1:], b'{"a": 1}')),
        *((data, "not a R") for data in (WHOLE[:-1], WHOLE + b"\x00", WHOLE[:5] + b"\xff" * 12)),
    ],
)
def test_bytes_that_are_no_record_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Codec(V1, 1).decode(data)
