"""How gaps are read."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import SchemaNotFound
from bridge.inspection import gaps
from bridge.records.gap import Cause, FeedGap
from tests.fake_registry import FakeRegistry, served

GAP = FeedGap("settlement-v4", 1_790_000_000, 1_790_086_461, Cause.TOO_OLD, 1_790_345_600.5)


@pytest.mark.parametrize("body", [Codec(load("feed-gap"), 7).encode(GAP.to_avro())[5:], b"no gap"])
def test_a_registry_that_does_not_know_a_gap_hides_none(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class Scan:
        def __init__(self, _: str, take: Any, **__: Any) -> None:
            self._take = take

        def read(self, _: Any) -> None:
            self._take(Message("settlement.gaps", 0, 3, value=b"\0\0\0\0\x07" + body))

    monkeypatch.setattr(gaps, "TopicScan", Scan)
    monkeypatch.setattr("bridge.registry.client._LAG_SECONDS", 0.1)
    monkeypatch.setattr("bridge.kafka.admin.require_topic", lambda *_: None)
    with served(FakeRegistry()) as url:
        monkeypatch.setenv("BRIDGE_REGISTRY__URL", url)
        monkeypatch.setenv("BRIDGE_KAFKA__BOOTSTRAP_SERVERS", "unused:1")
        with pytest.raises(SchemaNotFound, match="schema 7") if body != b"no gap" else nullcontext():
            assert gaps.read_gaps(Settings(), None) == []
