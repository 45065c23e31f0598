"""What `bridge replay --to-topic` says when Kafka does not take the copy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from bridge import clock
from bridge.config import Settings
from bridge.errors import BridgeError, SettingsError, SinkBroken, TopologyError
from bridge.inspection.copying import TopicCopy
from bridge.inspection.replay import Window
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.records import topics

TARGET, ID = "test-bets", "settlement.replay.test-bets."
TAKEN_OVER = "another process has started a copy to it and taken over"
AGAIN = "What was copied stays: repeat the command to resume."
NOTHING: Any = SimpleNamespace(offsets={0: 0}, messages=list)
"""A replay."""


class Refused:
    """A consumer and producer in one, whose transactions end with an error."""

    error: KafkaError | None = None
    """None for the SystemError of a fenced one (decision 0009)."""

    def init_transactions(self, _seconds: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def send_offsets_to_transaction(self, *_: Any) -> None:
        raise SystemError("fenced") if self.error is None else KafkaException(self.error)

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        return places

    def consumer_group_metadata(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Refused:
    kafka = Refused()
    monkeypatch.setattr(admin, "require_topic", lambda *_: None)
    monkeypatch.setattr(admin, "topic_id", lambda *_: "an id")
    monkeypatch.setattr(admin, "partition_count", lambda *_: 2)
    monkeypatch.setattr(admin, "end_offsets", lambda *_: [0, 0])
    monkeypatch.setattr(clients, "reader", lambda *_, **__: kafka)
    monkeypatch.setattr(clients, "producer", lambda *_, **__: kafka)
    return kafka


def copy(*, create: bool = False, **options: Any) -> TopicCopy:
    return TopicCopy(Settings(), TARGET, options, Window(0, None), create=create)


@pytest.mark.parametrize(
    ("code", "raised", "named"),
    [
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            SinkBroken,
            f"no right to Write the topic {TARGET}; grant it",
        ),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, SinkBroken, f"Write the transactional id {ID}"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, TopologyError, f"no right to Read the group {ID}"),
        (KafkaError.MSG_SIZE_TOO_LARGE, SinkBroken, AGAIN),
        (KafkaError._FENCED, SinkBroken, f"{TAKEN_OVER}. {AGAIN}"),
        (KafkaError._FATAL, SinkBroken, f"{TAKEN_OVER}. {AGAIN}"),
        (None, SinkBroken, f"{TAKEN_OVER}. {AGAIN}"),
        (KafkaError._TRANSPORT, KafkaUnavailable, AGAIN),
        (KafkaError._TIMED_OUT, KafkaUnavailable, AGAIN),
    ],
)
def test_a_copy_that_fails_says_what_to_do(
    kafka: Refused, code: int | None, raised: type[BridgeError], named: str
) -> None:
    kafka.error = None if code is None else KafkaError(code)
    with pytest.raises(raised) as caught:
        copy().run(NOTHING)
    assert type(caught.value) is raised
    assert named in str(caught.value)
    assert (AGAIN in str(caught.value)) == (named.endswith(AGAIN))


def test_the_error_behind_another_is_told(kafka: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.error = KafkaError(KafkaError._STATE)
    begins = iter([None, KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))])

    def begin() -> None:
        if error := next(begins):
            raise error

    monkeypatch.setattr(kafka, "begin_transaction", begin)
    with pytest.raises(SinkBroken, match=f"no right to Write the topic {TARGET}; grant it"):
        copy().run(NOTHING)


def test_a_group_that_may_not_be_read_is_told_before_anything_is_copied(
    kafka: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    def committed(places: list[Any], timeout: float) -> list[Any]:
        class Denied:
            error = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)

        return [Denied(), *places[1:]]

    monkeypatch.setattr(kafka, "committed", committed)
    with pytest.raises(TopologyError, match="no right to Read the group"):
        copy()


def test_a_cluster_without_groups_has_time_to_make_their_topic(
    kafka: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))] * 2

    def committed(places: list[Any], timeout: float) -> list[Any]:
        if answers:
            raise answers.pop()
        return places

    monkeypatch.setattr(kafka, "committed", committed)
    assert copy().offsets is None


def test_a_copy_that_is_refused_does_not_end_the_one_that_runs(
    kafka: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced: list[float] = []
    monkeypatch.setattr(kafka, "init_transactions", fenced.append)
    note = orjson.dumps(copy(bet=["a"])._note).decode()
    monkeypatch.setattr(
        kafka,
        "committed",
        lambda places, timeout: [TopicPartition(it.topic, it.partition, 5, metadata=note) for it in places],
    )
    assert copy(bet=["a"]).offsets == {0: 5, 1: 5}
    assert len(fenced) == 2
    with pytest.raises(SettingsError, match="has another copy"):
        copy(bet=["b"])
    assert len(fenced) == 2


def test_a_copy_takes_as_much_at_once_as_kafka_does_in_time(
    kafka: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, opened, taken = 0.0, list[bytes](), list[bytes]()

    def commit(_seconds: float) -> None:
        nonlocal now
        took = sum(map(len, opened)) / 20_000
        assert took < 30
        now += took
        taken.extend(opened)
        opened.clear()

    monkeypatch.setattr(clock, "now", lambda: clock.Instant(0, now))
    monkeypatch.setattr(kafka, "send_offsets_to_transaction", lambda *_: None)
    monkeypatch.setattr(kafka, "commit_transaction", commit, raising=False)
    monkeypatch.setattr(kafka, "produce", lambda _topic, value, *_, **__: opened.append(value), raising=False)
    bets = [Message("bets", 0, n, b"key", b"%500d" % n, timestamp=(1, 0)) for n in range(3000)]
    replay: Any = SimpleNamespace(offsets={0: 0}, messages=lambda: iter(bets))
    (of_bets := copy()).run(replay)
    assert taken == [bet.value() for bet in bets]
    assert of_bets.copied == len(bets)


def test_nobody_asks_for_the_ends_of_a_topic_that_was_just_made(
    kafka: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter([None, "an id"])
    monkeypatch.setattr(admin, "topic_id", lambda *_: next(ids))
    monkeypatch.setattr(topics, "apply", lambda *_, **__: None)
    monkeypatch.setattr(admin, "end_offsets", lambda *_: pytest.fail("a leader is asked"))
    assert copy(create=True).offsets is None
