"""A topic as a reader of it sees it, in virtual time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.errors import TopologyError
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import Outage
from bridge.reader import BETS, Place, changes, names, source
from tests.unit.inspection.test_readers import NOWHERE
from tests.unit.stored.log import NEVER, Client, Log


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(source, "IN_VAIN_SECONDS", 0.05)
    return Log().installed(monkeypatch)


def test_bets_are_read_until_the_end(log: Log) -> None:
    bets = list(changes(BETS, settings=NOWHERE))
    assert {(bet.partition, bet.offset) for bet in bets} == {(p, o) for p in range(2) for o in range(5)}


def test_a_quota_is_no_reason_to_give_up(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "IN_VAIN_SECONDS", 0)
    monkeypatch.setattr(Outage, "throttled", property(lambda _: log.now < 3))
    log.waits = [(2,)]
    assert len(list(changes(BETS, settings=NOWHERE))) == 10


def test_records_not_written_by_a_bridge_are_skipped_and_counted(log: Log) -> None:
    log.content = lambda offset: b"foreign" if offset == 2 else None
    with capture_logs() as lines:
        bets = list(changes(BETS, settings=NOWHERE))
    assert sorted(bet.offset for bet in bets) == [0, 0, 1, 1, 3, 3, 4, 4]
    assert [line["count"] for line in lines] == [2]


def test_a_client_is_replaced_as_soon_as_one_can_be_made(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()

    def connected(number: int) -> None:
        made.append(number)
        if number in (2, 3):
            raise KafkaUnavailable("no client can be made: on purpose")

    log.connected = connected
    monkeypatch.setattr(Client, "stranded", property(lambda _: "refused" if 2 <= len(log.given) < 8 else ""))
    monkeypatch.setattr(source, "RETRY_SECONDS", 0)
    with capture_logs() as lines:
        bets = list(changes(BETS, settings=NOWHERE))
    assert sorted((bet.partition, bet.offset) for bet in bets) == [(p, o) for p in range(2) for o in range(5)]
    assert made[:4] == [1, 2, 3, 4]
    told = [(line["event"], line["reason"]) for line in lines]
    assert told[:3] == [
        ("Kafka client cannot be replaced yet", "no client can be made: on purpose"),
        ("Kafka client cannot be replaced yet", "no client can be made: on purpose"),
        ("Kafka client is replaced", "refused"),
    ]


@pytest.mark.parametrize("change", ["more partitions", "recreated"])
def test_a_topic_that_has_changed_is_read_once_a_client_can_be_made(
    log: Log, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(source, "LOOK_SECONDS", 0)
    monkeypatch.setattr(source, "RETRY_SECONDS", 0)
    reading = source.Source(NOWHERE, "bets", "start", None)
    read = [(m.partition(), m.offset()) for _ in range(6) for m in reading.messages(0)]
    assert len(read) == 10

    def connected(number: int) -> None:
        if number == 2:
            raise KafkaUnavailable("no client can be made: on purpose")

    log.connected = connected
    if change == "recreated":
        log.id, log.written, log.stable = "another", [3, 3], [3, 3]
    else:
        log.written, log.stable = [5, 5, 3], [5, 5, 3]
    with capture_logs() as lines:
        read = [(m.partition(), m.offset()) for _ in range(6) for m in reading.messages(0)]
    partitions = range(2) if change == "recreated" else [2]
    assert sorted(read) == [(p, o) for p in partitions for o in range(3)]
    assert lines[0]["event"] == "Kafka client cannot be replaced yet"


def test_a_topic_that_seems_gone_for_a_moment_is_not_read_again(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LOOK_SECONDS", 0)
    follows = source.Source(NOWHERE, "bets", "start", None)
    ends = source.Source(NOWHERE, "bets", "start", "end")
    read = [message.offset() for _ in range(6) for message in follows.messages(0)]
    assert len(read) == 10
    for there in (False, True, False):
        log.there = there
        assert [*follows.messages(0)] == []
        assert len([*ends.messages(0)]) <= 10
    with pytest.raises(TopologyError, match="deleted or recreated"):
        list(ends.messages(0))


def test_a_snapshot_can_be_read_as_soon_as_it_is_seen(log: Log) -> None:
    """The end of its transaction may be seen in its own topic first, and among the names a moment later."""
    log.stable = [5, 3]
    reading = source.Source(NOWHERE, "bets", "start", {0: 5, 1: 5})
    assert reading.progress == (0, 10)


def test_an_end_that_cannot_be_reached_is_an_error(log: Log) -> None:
    log.waits = [(0, 0, NEVER)]
    with pytest.raises(KafkaUnavailable, match=r"^settlement\.bets could not be read to its end"):
        list(changes(BETS, settings=NOWHERE))


def test_an_end_that_cannot_be_reached_is_an_error_though_others_go_on(log: Log) -> None:
    log.leaderless = {0}

    def connected(_: int) -> None:
        log.stable = [5, 10**9]

    log.connected = connected
    given = list[Place]()
    with pytest.raises(KafkaUnavailable, match=r"^settlement\.bets could not be read to its end"):
        given.extend(changes(BETS, settings=NOWHERE))
    assert [bet.offset for bet in given if bet.partition == 1] == [0, 1, 2, 3, 4]


def test_names_that_a_recreated_topic_lacks_are_forgotten(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LOOK_SECONDS", 0)
    monkeypatch.setattr(names, "LOOK_SECONDS", 0)
    codec = Codec(load("translation"), 7, lambda _: load("translation"))
    monkeypatch.setattr(
        names, "Registry", lambda _: SimpleNamespace(codec=lambda _: codec, close=lambda: None)
    )
    empty = dict.fromkeys(("eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId"))

    def written(*texts: str) -> None:
        values = [
            codec.encode({**empty, "kind": "sport", "id": n, "translations": {"en": text}, "snapshotId": "s"})
            for n, text in enumerate(texts)
        ]
        log.keys = [b"sport:%d" % n for n in range(len(values))]
        log.content = lambda offset: values[offset]
        log.written = log.stable = [len(values)]

    def known() -> list[str | None]:
        for _ in range(6):
            found = [followed.text(f"sport:{n}", "en") for n in range(2)]
        return found

    written("Football", "Tennis")
    with names.Names(NOWHERE) as followed:
        assert known() == ["Football", "Tennis"]
        log.id = "another"
        written()
        assert known() == ["Football", "Tennis"]
        written("Soccer")
        assert (known(), len(followed)) == (["Soccer", None], 1)
