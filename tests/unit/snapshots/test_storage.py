"""What comes of the records that are read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from bridge.avro.schemas import Schema
from bridge.config import RegistrySettings, Settings
from bridge.errors import NotOurs
from bridge.snapshots import storage
from bridge.snapshots.model import is_key
from bridge.snapshots.storage import last_snapshot, read_compacted, topic_of

SETTINGS = Settings(registry=RegistrySettings(url="http://127.0.0.1:1"))
WRITTEN: Schema = {
    "type": "record",
    "name": "SettledBet",
    "namespace": "settlement",
    "fields": [{"name": "betId", "type": "string"}, {"name": "payout", "type": "double"}],
}
VALUE = bytes(5)


class Message(NamedTuple):
    """A record."""

    a_key: bytes | None
    a_value: bytes | None

    def key(self) -> bytes | None:
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

    monkeypatch.setattr(storage, "read_topic", read_topic)
    monkeypatch.setattr("bridge.avro.registry.Registry.schema_by_id", lambda *_: WRITTEN)
    return found


def test_what_was_removed_is_not_present(topics: dict[str, list[Message]]) -> None:
    """The last value of each key, and no key that has a tombstone."""
    topics["t"] = [
        Message(b"sport:1", VALUE + b"old"),
        Message(b"sport:2", VALUE + b"gone"),
        Message(b"sport:1", VALUE + b"new"),
        Message(b"sport:2", None),
        Message(b"sport:3", None),
    ]
    assert read_compacted(SETTINGS, "t") == {b"sport:1": VALUE + b"new"}


def test_what_is_visible_now_can_be_enough(topics: dict[str, list[Message]]) -> None:
    """Otherwise what an open transaction hides is waited for."""
    topics["t"] = [Message(b"sport:1", VALUE + b"old"), Message(b"sport:1", VALUE + b"new")]
    assert read_compacted(SETTINGS, "t", visible=True) == {b"sport:1": VALUE + b"old"}
    assert read_compacted(SETTINGS, "t") == {b"sport:1": VALUE + b"new"}


def test_what_has_no_key_of_ours_is_not_present(topics: dict[str, list[Message]]) -> None:
    """Nor what is in another format under a key of ours: it is asked for, and written over."""
    ours = [b"sport:1", b"region:0", b"market:-1:9223372036854775807", b"venue:5", b"newer-kind:1:2"]
    others = [
        b"\xff",
        None,
        b"",
        b"sport",
        b"sport:",
        b"sport:99999999999999999999",
        b"sport:01",
        b"sport:1:2",
    ]
    others += [
        b"market:1",
        b"sport:9223372036854775808",
        "sport:٣".encode(),
        b"Sport:1",
        b" sport:1",
        b"x" * 10**6,
    ]
    topics["t"] = [
        *(Message(key, b"\0\0\0\0\7") for key in [*ours, *others]),
        Message(b"league:1", b"\0\0\0\0\7"),
        Message(b"league:1", b"{}"),
    ]
    with capture_logs() as lines:
        assert [*read_compacted(SETTINGS, "t", accepts=is_key)] == ours
    [told] = lines
    assert told["count"] == len(others) + 1
    assert len(told["first"]) < 500


def test_a_snapshot_that_is_none_is_named_by_its_place(topics: dict[str, list[Message]]) -> None:
    """The one before it would be a position of long ago."""
    topics["settlement.snapshots"] = [Message(b"currencies", b"{}"), Message(b"x", b"y")]
    with pytest.raises(NotOurs, match=r"^settlement\.bets partition 3 offset 14 was not written by"):
        last_snapshot(SETTINGS, "currencies")


def test_a_job_reads_its_own_snapshots(topics: dict[str, list[Message]]) -> None:
    """Both jobs share the topic of snapshots, and neither the other's record."""
    topics["settlement.snapshots"] = [Message(b"currencies", b"")]
    assert last_snapshot(SETTINGS, "translations") is None
    assert topic_of(SETTINGS, "currencies") == "settlement.currencies"
