"""A schema registry: what `bridge.registry` relies on, and in what registries may differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import httpx2
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from bridge.avro.schemas import TOPICS, load, subject
from bridge.config import RegistrySettings
from bridge.errors import SchemaError, SchemaNotFound, TopologyError
from bridge.registry import Compatibility, Registry
from bridge.registry import client as module
from tests.fake_registry import Profile

OTHER = Schema(
    json.dumps({"type": "record", "name": "Other", "fields": [{"name": "a", "type": "string"}]}), "AVRO"
)
Change = Callable[[dict[str, Any]], object]


def with_alias(schema: dict[str, Any]) -> None:
    schema["fields"][0]["aliases"] = ["former"]


def with_default(schema: dict[str, Any]) -> None:
    [enum] = (
        f["type"] for f in schema["fields"] if isinstance(f["type"], dict) and f["type"]["type"] == "enum"
    )
    enum["default"] = enum["symbols"][-1]


def at(url: str) -> Registry:
    """A new client, which has asked nothing yet."""
    return Registry(RegistrySettings(url=url))


def registered(url: str, prefix: str, *names: str) -> dict[str, int]:
    """The ids of these schemas, by default of all, once they are registered."""
    with at(url) as registry:
        return registry.register(prefix, names or TOPICS)


class RegistryContract:
    """The suite; `url` and `prefix` say where there are no subjects yet, `profile` how it answers."""

    @pytest.fixture
    def client(self, url: str) -> Iterator[SchemaRegistryClient]:
        with SchemaRegistryClient({"url": url}) as client:
            yield client

    def test_what_is_registered_keeps_its_id(self, url: str, prefix: str) -> None:
        with at(url) as registry:
            assert {*registry.compatibility(prefix).values()} == {Compatibility.NEW}
            ids = registry.register(prefix)
        with at(url) as another:
            assert another.register(prefix) == ids
            assert len({*ids.values()}) == len(TOPICS)
            assert {*another.compatibility(prefix).values()} == {Compatibility.REGISTERED}
        with at(url) as reading:
            assert {name: reading.schema_by_id(number) for name, number in ids.items()} == {
                name: load(name) for name in TOPICS
            }

    def test_an_unknown_id_is_told_from_one_that_is_somebody_else_s(self, url: str, prefix: str) -> None:
        with (
            at(url) as registry,
            pytest.raises(SchemaNotFound, match="schema 987654"),
        ):
            registry.schema_by_id(987_654)

    def test_what_is_not_compatible_is_not_registered(
        self, url: str, prefix: str, client: SchemaRegistryClient
    ) -> None:
        name = subject(prefix, "settled-bet")
        client.register_schema(name, OTHER)
        with at(url) as registry:
            assert registry.compatibility(prefix)[name] is Compatibility.INCOMPATIBLE
            with pytest.raises(SchemaError, match=name):
                registry.register(prefix)
        assert client.get_versions(name) == [1]

    def test_others_are_held_to_the_rule(
        self, url: str, prefix: str, client: SchemaRegistryClient, profile: Profile
    ) -> None:
        assert client.get_compatibility() == profile.level
        registered(url, prefix)
        for name in TOPICS:
            assert client.get_compatibility(subject(prefix, name)) == "FULL_TRANSITIVE"
        with pytest.raises(SchemaRegistryError) as refused:
            client.register_schema(subject(prefix, "settled-bet"), OTHER)
        assert refused.value.http_status_code == 409

    @pytest.mark.parametrize(
        ("change", "key", "is_told"),
        [
            (lambda schema: schema.update(doc="in other words"), "doc", False),
            (lambda schema: schema.update(mine=1), "mine", False),
            (with_alias, "aliases", True),
            (with_default, "default", True),
        ],
    )
    def test_what_is_not_kept_apart_is_refused_if_it_means_something_else(
        self,
        url: str,
        prefix: str,
        profile: Profile,
        monkeypatch: pytest.MonkeyPatch,
        change: Change,
        key: str,
        is_told: bool,
    ) -> None:
        name = subject(prefix, "currency")
        before = registered(url, prefix, "currency")
        change(changed := deepcopy(load("currency")))
        monkeypatch.setattr(module, "load", lambda _: changed)
        with at(url) as registry:
            how = registry.compatibility(prefix, ["currency"])[name]
            if key in profile.ignored and is_told:
                assert how is Compatibility.ALTERED
                told = rf"{name}: .* {before['currency']}; it differs at .*{key}"
                with pytest.raises(SchemaError, match=told):
                    registry.register(prefix, ["currency"])
            else:
                kept = key not in profile.ignored
                assert how is (Compatibility.COMPATIBLE if kept else Compatibility.REGISTERED)
                assert (registry.register(prefix, ["currency"]) != before) is kept

    def test_names_may_be_written_out(
        self, url: str, prefix: str, client: SchemaRegistryClient, profile: Profile
    ) -> None:
        full = deepcopy(load("currency"))
        full["name"] = f"{full.pop('namespace')}.{full['name']}"
        written = client.register_schema(subject(prefix, "currency"), Schema(json.dumps(full), "AVRO"))
        [ours] = registered(url, prefix, "currency").values()
        assert (ours == written) is profile.normalizes

    def test_a_subject_that_was_deleted_is_registered_again(
        self, url: str, prefix: str, client: SchemaRegistryClient
    ) -> None:
        name = subject(prefix, "currency")
        before = registered(url, prefix, "currency")
        client.delete_subject(name)
        with at(url) as registry:
            assert registry.compatibility(prefix, ["currency"]) == {name: Compatibility.NEW}
            assert registry.register(prefix, ["currency"]) == before
        with at(url) as reading:
            assert reading.schema_by_id(before["currency"]) == load("currency")

    def test_a_registry_that_takes_no_writes_gives_what_it_has(
        self, url: str, prefix: str, profile: Profile
    ) -> None:
        before = registered(url, prefix, "currency")
        answer = httpx2.put(f"{url}/mode", json={"mode": "READONLY"})
        assert answer.is_success is (profile.read_only != "refused")
        try:
            with at(url) as registry:
                assert registry.register(prefix, ["currency"]) == before
                if profile.read_only == "kept":
                    with pytest.raises(TopologyError, match=r"bets-value.*`bridge schemas register`"):
                        registry.register(prefix)
                else:
                    assert set(registry.register(prefix)) == set(TOPICS)
        finally:
            httpx2.put(f"{url}/mode", json={"mode": "READWRITE"})
