"""What comes of the records that are read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bridge.avro.schemas import Schema
from bridge.config import RegistrySettings, Settings
from bridge.snapshots import present
from bridge.snapshots.present import last_snapshot, read_present, topic_of

SETTINGS = Settings(registry=RegistrySettings(url="http://127.0.0.1:1"))
WRITTEN: Schema = {
    "type": "record",
    "name": "SettledBet",
    "namespace": "settlement",
    "fields": [{"name": "betId", "type": "string"}, {"name": "payout", "type": "double"}],
}


class Message(NamedTuple):
    """A record."""

    a_key: bytes
    a_value: bytes | None

    def key(self) -> bytes:
        return self.a_key

    def value(self) -> bytes | None:
        return self.a_value

    def topic(self) -> str:
        return "settlement.bets"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 14


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Message]]:
    """Topic → its records."""
    found: dict[str, list[Message]] = {}

    def read_topic(
        _: Settings, topic: str, take: Callable[[Any], None], *, visible: bool = False, **__: Any
    ) -> dict[int, int]:
        records = found.get(topic, [])
        for message in records[:-1] if visible else records:  # the last is in an open transaction
            take(message)
        return {0: len(found[topic])} if topic in found else {}

    monkeypatch.setattr(present, "read_topic", read_topic)
    monkeypatch.setattr("bridge.avro.registry.Registry.schema_by_id", lambda *_: WRITTEN)
    return found


def test_what_was_removed_is_not_present(topics: dict[str, list[Message]]) -> None:
    """The last value of each key, and no key that has a tombstone."""
    topics["t"] = [
        Message(b"sport:1", b"old"),
        Message(b"sport:2", b"gone"),
        Message(b"sport:1", b"new"),
        Message(b"sport:2", None),
        Message(b"sport:3", None),
    ]
    assert read_present(SETTINGS, "t") == {b"sport:1": b"new"}


def test_what_is_visible_now_can_be_enough(topics: dict[str, list[Message]]) -> None:
    """Otherwise what an open transaction hides is waited for."""
    topics["t"] = [Message(b"sport:1", b"old"), Message(b"sport:1", b"new")]
    assert read_present(SETTINGS, "t", visible=True) == {b"sport:1": b"old"}
    assert read_present(SETTINGS, "t") == {b"sport:1": b"new"}


def test_a_job_reads_its_own_snapshots(topics: dict[str, list[Message]]) -> None:
    """Both jobs share the topic of snapshots, and neither the other's record."""
    topics["settlement.snapshots"] = [Message(b"currencies", b"")]
    assert last_snapshot(SETTINGS, "translations") is None
    assert topic_of(SETTINGS, "currencies") == "settlement.currencies"
