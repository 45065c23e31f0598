"""Bets as somebody sees them who follows their topic."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from bridge.config import KafkaSettings, RegistrySettings, Settings
from bridge.inspection import tail
from bridge.inspection.readers import Bet
from bridge.inspection.tail import follow_bets
from bridge.kafka.errors import KafkaUnavailable
from tests.unit.state.log import NEVER, Log

NOWHERE = Settings(
    kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"), registry=RegistrySettings(url="http://127.0.0.1:1")
)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(tail, "ANSWER_SECONDS", 0.05)
    return Log().installed(monkeypatch)


def test_bets_are_read_until_the_end(log: Log) -> None:
    """Of each partition."""
    bets = [bet for bet in follow_bets(NOWHERE, from_beginning=True, until_end=True) if bet]
    assert {(bet.record.partition, bet.offset) for bet in bets} == {
        (p, o) for p in range(2) for o in range(5)
    }


def test_records_not_written_by_a_bridge_are_skipped_and_counted(log: Log) -> None:
    log.content = lambda offset: b"foreign" if offset == 2 else None
    with capture_logs() as lines:
        bets = [bet for bet in follow_bets(NOWHERE, from_beginning=True, until_end=True) if bet]
    assert sorted(bet.offset for bet in bets) == [0, 0, 1, 1, 3, 3, 4, 4]
    assert [line["count"] for line in lines] == [2]


def test_an_end_that_cannot_be_reached_is_an_error(log: Log) -> None:
    """The command does not wait for ever, and reports the cause."""
    log.waits = [(0, 0, NEVER)]
    with pytest.raises(KafkaUnavailable, match=r"^settlement\.bets could not be read to its end"):
        list(follow_bets(NOWHERE, from_beginning=True, until_end=True))


def test_an_end_that_cannot_be_reached_is_an_error_though_others_go_on(log: Log) -> None:
    """Of a partition that is written to, no more is given than there was when the command began."""
    log.leaderless = {0}

    def connected(_: int) -> None:
        log.stable = [5, 10**9]

    log.connected = connected
    given = list[Bet | None]()
    with pytest.raises(KafkaUnavailable, match=r"^settlement\.bets could not be read to its end"):
        given.extend(follow_bets(NOWHERE, from_beginning=True, until_end=True))
    assert [bet.offset for bet in given if bet and bet.record.partition == 1] == [0, 1, 2, 3, 4]
