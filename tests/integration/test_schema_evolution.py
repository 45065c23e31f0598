"""A new field of the provider, from the schema to its consumers, on a real registry and a real Kafka."""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import polars_avro
import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import Schema, load
from bridge.errors import SchemaError
from bridge.reader import BETS, GAPS, read
from bridge.registry import Registry
from bridge.registry import client as registries
from bridge_sandbox.cluster.downloads import class_path
from examples.jars import compiled, java, joined
from tests.bets import BARE_BET
from tests.harness import Bridge, Place, simulate, until
from tests.integration.publishing import prepared
from tests.older import FIELD

EXAMPLE = Path(__file__).parents[2] / "examples" / "settled-bet.record.json"
AVRO = "org.apache.avro:avro:1.12.1"
CONSUMER = Path(__file__).with_name("OldConsumer.java")
READER = Path(__file__).with_name("ContainerReader.java")


def newer() -> Schema:
    """The schema of settled bets with a field that the provider has added."""
    schema = copy.deepcopy(load("settled-bet"))
    schema["fields"].append({"name": "channel", "type": ["null", "string"], "default": None, "doc": "New."})
    return schema


def registered(place: Place, schema: Schema, monkeypatch: pytest.MonkeyPatch) -> int:
    """Register a version of the schema of settled bets as `bridge run` of that version does."""
    monkeypatch.setattr(registries, "load", lambda _: schema)
    try:
        with Registry(prepared(place).registry) as registry:
            return registry.register(place.prefix, ["settled-bet"])["settled-bet"]
    finally:
        monkeypatch.undo()


@pytest.mark.long
def test_old_and_new_consumers_read_each_others_records(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, current = prepared(place), load("settled-bet")
    ids = [registered(place, schema, monkeypatch) for schema in (current, newer())]
    breaking = newer()
    del breaking["fields"][-1]["default"]
    breaking["fields"][-1]["type"] = "string"
    with pytest.raises(SchemaError, match="not compatible with the registered versions"):
        registered(place, breaking, monkeypatch)

    old, new = (Codec(schema, id_) for schema, id_ in zip((current, newer()), ids, strict=True))
    values = old.encode(BARE_BET), new.encode(BARE_BET | {"betId": "c", "channel": "retail"})
    for key, value in zip("bc", values, strict=True):
        place.write("bets", value, key, 0)

    assert [bet.value for bet in read(BETS, settings=settings)] == [BARE_BET, BARE_BET | {"betId": "c"}]
    with Registry(settings.registry) as registry:
        today = Codec(newer(), ids[1], registry.schema_by_id)
        assert [today.decode(value)["channel"] for value in values] == [None, "retail"]

    libraries = class_path(lambda _: None, AVRO)
    program = compiled([CONSUMER], libraries, tmp_path, lambda _: None)
    files = []
    for name, content in (
        *(("old.avsc", current), ("new.avsc", newer())),
        *(("old.bin", values[0]), ("new.bin", values[1])),
    ):
        files.append(tmp_path / name)
        files[-1].write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    old_schema, new_schema, old_value, new_value = map(str, files)

    def in_java(writer: str, reader: str, value: str) -> dict[str, Any]:
        command = [java(), "-cp", joined(program), "OldConsumer", writer, reader, value]
        found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return found

    assert "channel" not in in_java(new_schema, old_schema, new_value)
    assert in_java(new_schema, old_schema, new_value)["betId"] == "c"
    assert in_java(old_schema, new_schema, old_value)["channel"] is None


@pytest.mark.parametrize("first", ["earlier", "current"])
async def test_an_upgrade_and_a_rollback_publish_nothing_again(place: Place, first: str) -> None:
    async with simulate(rate=40, history_seconds=5, resettle=0.2) as feed:

        def start(version: str) -> Bridge:
            if version == "earlier":
                return place._start(("tests.older", "run"), {"FEED__BASE_URL": feed.url})
            return place.bridge(FEED__BASE_URL=feed.url)

        bridge = start(first)
        await bridge.reaches("Live")
        assert await bridge.end() == 0
        before = place.balanced_counters()
        bridge = start("current" if first == "earlier" else "earlier")
        await bridge.reaches("Live")
        await until(
            lambda: place.balanced_counters()["published"] > before["published"] + 40, "more", every=1
        )
        assert await bridge.end() == 0
    after = place.balanced_counters()
    assert after["duplicates"] > before["duplicates"] + 40
    settings = prepared(place)
    with Registry(settings.registry) as registry:
        written = Counter(
            FIELD in json.dumps(registry.schema_by_id(int.from_bytes((message.value() or b"")[1:5], "big")))
            for message in await asyncio.to_thread(place.read, "bets")
        )
    then = after["published"] - before["published"]
    has_field = first == "current"
    assert written == {has_field: before["published"], not has_field: then}
    bets = Counter((bet.key, bet.version) for bet in read(BETS, settings=settings))
    assert after["corrections"] == 0
    assert {*bets.values()} == {1}
    assert [*read(GAPS, settings=settings)] == []


@pytest.mark.long
def test_a_container_file_is_read_by_others(place: Place, tmp_path: Path) -> None:
    """By Java, Rust (polars-avro, which hands on Arrow) and fastavro."""
    settings, full = prepared(place), json.loads(EXAMPLE.read_text("utf-8"))
    with Registry(settings.registry) as registry:
        codec = registry.codecs_of_owner(place.prefix).bets
    written = [full | {"betId": f"{number}", "settlementVersion": number} for number in range(3)]
    for datum in written:
        place.write("bets", codec.encode(datum), datum["betId"], 0)
    output = tmp_path / "bets.avro"
    ran = place.run("replay", "--output", str(output))
    assert ran.returncode == 0, ran.stderr

    program = compiled([READER], class_path(lambda _: None, AVRO), tmp_path, lambda _: None)
    command = [java(), "-cp", joined(program), "ContainerReader", str(output)]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    in_java = [json.loads(line) for line in lines]
    in_rust = polars_avro.scan_avro(str(output)).collect()
    with output.open("rb") as content:
        in_python: list[Any] = [*fastavro.reader(content)]
    assert [bet["betId"] for bet in in_java] == in_rust["betId"].to_list() == ["0", "1", "2"]
    assert [bet["settlementVersion"] for bet in in_python] == in_rust["settlementVersion"].to_list()
    for found in (in_java[0], in_python[0], in_rust.to_dicts()[0]):
        selections = [item["selectionId"] for item in found["selections"]]
        assert selections == [item["selectionId"] for item in full["selections"]]
        assert found["amount"]["value"] == full["amount"]["value"]
        assert found["payout"] == full["payout"]
