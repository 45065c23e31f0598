"""What people are shown of the checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.config import KafkaSettings, RegistrySettings, Settings
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.inspection import readers
from bridge.inspection.readers import (
    LATELY_SECONDS,
    checkpoint_as_lines,
    leadership_as_json,
    leadership_as_lines,
    read_checkpoint,
)
from bridge.kafka.errors import KafkaUnavailable
from bridge.ownership.group import Group, Member
from bridge.records.checkpoint import Checkpoint, State
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


def test_a_checkpoint_for_people() -> None:
    lines = checkpoint_as_lines(CHECKPOINT, 1_790_000_302.25).splitlines()
    assert "state       CatchingUp" in lines
    assert "committed   2026-09-21T14:18:20.250000Z (2s ago)" in lines
    assert "position    1790000000 (2026-09-21T14:13:20Z)" in lines
    assert "  published     1,200 (3 of them corrections)" in lines
    assert lines[-3:] == [
        "  2026-09-21T14:13:20Z  initial connection (revision=0), no answer",
        "  2026-09-21T14:15:00.500000Z  1m 40s of recovery, refused",
        "  2026-09-21T14:16:40Z  3m 20s of recovery, accepted",
    ]
    bare = replace(CHECKPOINT, ledger=())
    assert checkpoint_as_lines(bare, 1_790_000_302.25).splitlines()[-1] == "attempts"


def test_a_checkpoint_says_why_and_how_long() -> None:
    lines = checkpoint_as_lines(WAITING, 1_790_000_300.0).splitlines()
    assert lines[1:6] == [
        "state       WaitingForLimit since 2026-09-21T14:18:10Z",
        "reason      5 large connection attempts in 30m",
        "until       2026-09-21T14:30:00Z",
        "catching up 1h 5m behind, at 2026-09-21T13:13:20Z, 1,234 messages/s, 1m 30s left",
        "clock       the provider's is at least 1.5s behind ours",
    ]
    nothing = replace(WAITING, catch_up=CatchUp(None, 0.0, None))
    assert "no message with a plausible" in checkpoint_as_lines(nothing, 1_790_000_300.0)


LAST = CHECKPOINT.updated_at
SEEN = "2026-09-21T14:18:31Z"
"""Ten seconds after the checkpoint, in whole seconds."""
DEAD = f"            if it is dead, its place is free by {SEEN}"


def member(name: str, holds: bool = False) -> Member:
    return Member(f"{name}-1", name, "10.0.0.1", holds)


@pytest.mark.parametrize(
    ("group", "lines"),
    [
        (None, "unknown: the right to describe the group is missing"),
        (Group(), "no owner, 0 standbys"),
        (
            Group((member("host:1:abc", True), member("b"))),
            "owned by host:1:abc from 10.0.0.1, 1 standby",
        ),
        (
            Group((member("host:1:abc"), member("b")), True),
            f"a rebalance waits for host:1:abc from 10.0.0.1, 1 standby\n{DEAD}",
        ),
        (
            Group((member("a"), member("b"))),
            "a rebalance waits for a from 10.0.0.1, b from 10.0.0.1, 0 standbys\n"
            f"            the places of those that are dead are free by {SEEN}",
        ),
    ],
)
def test_a_person_sees_who_owns_the_feed_or_is_waited_for(group: Group | None, lines: str) -> None:
    assert leadership_as_lines(group, CHECKPOINT, 10.0, LAST) == f"leadership  {lines}"


def test_an_owner_that_has_not_committed_lately_may_be_dead() -> None:
    group, later = Group((member("a", True),)), CHECKPOINT.updated_at + LATELY_SECONDS
    assert leadership_as_lines(group, CHECKPOINT, 10.0, later) == (
        "leadership  owned by a from 10.0.0.1, 0 standbys\n"
        "            if it is dead, its place is free by 2026-09-21T14:18:41Z"
    )


def test_a_script_gets_null_for_what_kafka_does_not_report() -> None:
    nobody = {"owners": [], "standbys": 0, "awaited": [], "freeBy": None, "lastCommitAgeSeconds": 0.0}
    assert leadership_as_json(Group(), CHECKPOINT, 10.0, LAST) == nobody
    unknown = {"owners": None, "standbys": None, "awaited": None, "freeBy": None, "lastCommitAgeSeconds": 0.0}
    assert leadership_as_json(None, CHECKPOINT, 10.0, LAST) == unknown
