"""What is read of the checkpoint; what is shown of it is in `tests/repo/test_golden.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.config import KafkaSettings, RegistrySettings, Settings
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.inspection import readers
from bridge.inspection.readers import (
    leadership_as_json,
    read_checkpoint,
)
from bridge.kafka.errors import KafkaUnavailable
from bridge.ownership.group import Group, Member
from bridge.records.checkpoint import Checkpoint, State, UnprovenReplay
from bridge.records.counters import Counters
from tests.unit.stored.log import NEVER, Log

CHECKPOINT = Checkpoint(
    feed="settlement-v4",
    revision=1_790_000_000,
    state=State.CATCHING_UP,
    ledger=(
        Attempt(1_790_000_000.0, 0, True),
        Attempt(1_790_000_100.5, 100, False, 1_790_000_101.0, True),
        Attempt(1_790_000_200.0, 200, False, 1_790_000_201.0),
    ),
    counters=Counters(received=1234, published=1200, corrections=3, duplicates=30, pings=4),
    updated_at=1_790_000_300.25,
    owner="host:1:abc",
)
WAITING = replace(
    CHECKPOINT,
    state=State.WAITING_FOR_LIMIT,
    reason="5 large connection attempts in 30m",
    since=1_790_000_290.0,
    until=1_790_001_000.0,
    skew=-1.5,
    catch_up=CatchUp(1_789_996_400.0, 1234.5, 90.0),
    unproven=UnprovenReplay(1_790_000_000, 1_790_000_280.0, 1_790_000_050.5),
)
NOWHERE = Settings(
    kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"), registry=RegistrySettings(url="http://127.0.0.1:1")
)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(readers, "ANSWER_SECONDS", 0.05)
    return Log().installed(monkeypatch)


def test_a_checkpoint_that_cannot_be_reached_is_an_error(log: Log) -> None:
    log.waits = [(NEVER,)]
    log.written, log.stable = [5], [5]
    with pytest.raises(KafkaUnavailable, match=r"^settlement\.checkpoints could not be .* no broker"):
        read_checkpoint(NOWHERE)


LAST = CHECKPOINT.updated_at


def member(name: str, holds: bool = False) -> Member:
    return Member(f"{name}-1", name, "10.0.0.1", holds)


def test_a_script_gets_null_for_what_kafka_does_not_report() -> None:
    nobody = {"owners": [], "standbys": 0, "awaited": [], "freeBy": None, "lastCommitAgeSeconds": 0.0}
    assert leadership_as_json(Group(), CHECKPOINT, 10.0, LAST) == nobody
    unknown = {"owners": None, "standbys": None, "awaited": None, "freeBy": None, "lastCommitAgeSeconds": 0.0}
    assert leadership_as_json(None, CHECKPOINT, 10.0, LAST) == unknown
