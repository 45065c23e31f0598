"""A new owner finds the last checkpoint of its feed, whatever its clients do."""

from __future__ import annotations

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, Settings
from bridge.errors import SchemaError
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.stored import checkpoint_reader
from bridge.stored.checkpoint_reader import CheckpointReader
from tests.bets import BARE_BET
from tests.unit.stored.log import NEVER, Log, never, nobody

SCHEMAS = {7: load("settled-bet"), 8: load("feed-checkpoint")}
BET = Codec(SCHEMAS[7], 7).encode(BARE_BET)
CHECKPOINT = Codec(SCHEMAS[8], 8).encode(Checkpoint("f", 1, State.LIVE, (), Counters(), 1.0, "me").to_avro())


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(written=[5], stable=[5], content=CHECKPOINT).installed(monkeypatch)


def checkpoints_in(log: Log, feed: str) -> CheckpointReader:
    settings = Settings(feed=FeedSettings(name=feed))
    return CheckpointReader(settings, topics.declare(settings), SCHEMAS.__getitem__, log.clock)


def test_the_last_checkpoint_of_the_feed_is_found(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_reader, "LOOKBACK", 2)
    log.waits = [(0, NEVER)]
    assert checkpoints_in(log, "0-0").last(never, nobody) == CHECKPOINT
    assert len(log.prompt) == 2
    assert checkpoints_in(log, "somebody-else").last(never, nobody) is None


def test_new_clients_keep_looking_for_a_checkpoint_hidden_by_a_transaction(log: Log) -> None:
    log.stable = [3]
    statuses: list[str] = []
    asked_at: list[float] = []

    def connected(number: int) -> None:
        asked_at.append(log.now)
        log.stable = [3] if number < 20 else [5]

    log.connected = connected
    assert checkpoints_in(log, "0-4").last(never, statuses.append) == CHECKPOINT
    assert asked_at == pytest.approx([30 * n for n in range(20)], abs=8)
    assert {reason for reason in statuses if reason} == {
        "an open transaction hides what is in settlement.checkpoints: partition 0 from offset 3"
    }
    assert statuses[-1] == "", "nothing is in the way any more"


def test_a_visible_checkpoint_is_read_without_waiting_for_transactions(log: Log) -> None:
    log.stable = [3]
    assert checkpoints_in(log, "0-2").last(never, nobody, visible=True) == CHECKPOINT
    assert checkpoints_in(log, "0-4").last(never, nobody, visible=True) is None
    assert log.now == 0


@pytest.mark.parametrize("value", [b"{}", b"", BET, CHECKPOINT[:-1]])
def test_an_unreadable_checkpoint_is_an_error(log: Log, value: bytes) -> None:
    log.content = lambda offset: value if offset == 4 else CHECKPOINT
    with pytest.raises(SchemaError, match=r"^settlement\.checkpoints partition 0 offset 4 "):
        checkpoints_in(log, "0-4").last(never, nobody)


def test_reading_ends_when_the_feed_is_lost(log: Log) -> None:
    log.waits = [(NEVER,)] * 9
    gone = 45.0
    assert checkpoints_in(log, "0-0").last(lambda: log.now >= gone, nobody) is None
    assert log.now == pytest.approx(gone, abs=1)
