"""A schema registry: what `bridge.registry` relies on."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.avro.schemas import TOPICS, load, subject
from bridge.config import RegistrySettings
from bridge.errors import SchemaError, SchemaNotFound
from bridge.registry import Compatibility, Registry


class RegistryContract:
    """The suite; the fixtures `url` and `prefix` say where there are no subjects yet."""

    def test_what_is_registered_keeps_its_id(self, url: str, prefix: str) -> None:
        with Registry(RegistrySettings(url=url)) as registry:
            assert {*registry.compatibility(prefix).values()} == {Compatibility.NEW}
            ids = registry.register(prefix)
        with Registry(RegistrySettings(url=url)) as another:
            assert another.register(prefix) == ids
            assert len({*ids.values()}) == len(TOPICS)
            assert {*another.compatibility(prefix).values()} == {Compatibility.REGISTERED}
        with Registry(RegistrySettings(url=url)) as reading:
            assert {name: reading.schema_by_id(number) for name, number in ids.items()} == {
                name: load(name) for name in TOPICS
            }

    def test_an_unknown_id_is_told_from_one_that_is_somebody_else_s(self, url: str, prefix: str) -> None:
        with Registry(RegistrySettings(url=url)) as registry, pytest.raises(SchemaNotFound):
            registry.schema_by_id(987_654)

    def test_what_is_not_compatible_is_not_registered(self, url: str, prefix: str) -> None:
        name = subject(prefix, "settled-bet")
        other = {"type": "record", "name": "Other", "fields": [{"name": "a", "type": "string"}]}
        with SchemaRegistryClient({"url": url}) as client:
            client.register_schema(name, Schema(json.dumps(other), "AVRO"))
            with Registry(RegistrySettings(url=url)) as registry:
                assert registry.compatibility(prefix)[name] is Compatibility.INCOMPATIBLE
                with pytest.raises(SchemaError, match=name):
                    registry.register(prefix)
            assert client.get_versions(name) == [1]
