"""Reading the topics of a job, whatever is in them, and learning what bets mention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import ApiSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import ForeignRecord, SchemaNotFound
from bridge.kafka import admin, clients
from bridge.kafka.reader import TopicScan, cursor_over
from bridge.messages.parser import MessageParser
from bridge.records.message import received_at
from bridge.snapshots import storage
from bridge.snapshots.model import Job
from bridge.snapshots.state import JobState
from bridge.snapshots.storage import JobStorage, last_snapshot, topic_of
from bridge.snapshots.usage import HOUR_SECONDS
from bridge_sandbox.provider.stream import Stream, StreamSettings
from tests.unit.snapshots.world import DAY, NOW, WORLD

SETTINGS = Settings(
    kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"), registry=RegistrySettings(url="http://127.0.0.1:1")
)
BETS = "settlement.bets"
TRANSLATIONS = "settlement.translations"
HEADER = bytes(5)


def record(key: bytes | None, value: bytes | None, at: float = NOW, offset: int = 14) -> Message:
    """A record of partition 0."""
    return Message(BETS, 0, offset, key, value, timestamp=(1, round(at * 1000)))


class Topics(defaultdict[str, list[Message]]):
    """Topic → its records, the last of them in an open transaction; and a registry of one schema, 1."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(list)
        self.read: list[int] = []
        """Offsets read from a position on."""
        monkeypatch.setattr(clients, "admin", lambda _: None)
        monkeypatch.setattr(admin, "topic_id", lambda *_: "id")
        monkeypatch.setattr(TopicScan, "read", lambda scan, _: self._read(scan))
        monkeypatch.setattr("bridge.registry.client.Registry.schema_by_id", self._schema)

    def add_bet(self, currency: str = "EUR", at: float = NOW, schema_id: int = 1) -> None:
        """Add a settled bet."""
        bet: Any = MessageParser().parse(Stream(WORLD, NOW, StreamSettings(rate=100)).message(0).body).bet
        datum = bet | {"selections": None, "amount": bet["amount"] | {"currency": currency}}
        self.add(Codec(load("settled-bet"), schema_id).encode(datum), at)

    def add(self, value: bytes, at: float = NOW) -> None:
        """Add a record to the topic of bets."""
        self[BETS].append(record(b"key", value, at, len(self[BETS])))

    def learn(
        self, state: JobState, job: Job = "currencies", save: Callable[[], None] = lambda: None, **api: Any
    ) -> Any:
        """Learn from the bets."""
        settings = SETTINGS.model_copy(update={"api": ApiSettings(**api)})
        return JobStorage(settings, job).learn(state, NOW, save)

    def _schema(self, number: int) -> Any:
        if number > 1:
            raise SchemaNotFound(f"the registry refuses schema {number}: 404")
        return load("settled-bet")

    def _read(self, scan: TopicScan) -> dict[int, int]:
        messages = self[scan.topic]
        start, end = scan.start, len(messages)
        if start is None:
            for message in messages[: end - scan.visible]:
                scan.take(message)
            return {0: end}
        if isinstance(start, float):
            start = {0: next((n for n, m in enumerate(messages) if received_at(m) >= start), end)}
        scan.cursor = cursor_over(scan.topic, [start[0]], [end])
        for message in scan.cursor.records(messages[start[0] :]):
            self.read.append(message.offset() or 0)
            scan.take(message)
        return {0: end}


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    return Topics(monkeypatch)


@pytest.mark.parametrize(
    ("visible", "last"), [(False, {b"sport:1": HEADER + b"new"}), (True, {b"sport:1": HEADER + b"old"})]
)
def test_a_compacted_topic_is_its_last_values_or_those_that_are_visible(
    topics: Topics, visible: bool, last: dict[bytes, bytes]
) -> None:
    topics[TRANSLATIONS] = [
        record(b"sport:1", HEADER + b"old"),
        record(b"sport:2", HEADER + b"gone"),
        record(b"sport:2", None),
        record(b"sport:3", None),
        record(b"sport:1", HEADER + b"new"),
    ]
    assert JobStorage(SETTINGS, "translations", visible=visible).published() == last


def test_foreign_records_are_skipped_and_counted(topics: Topics) -> None:
    ours = [b"sport:1", b"region:0", b"market:-1:9223372036854775807", b"venue:5", b"newer-kind:1:2"]
    others = [b"\xff", None, b"", b"sport", b"sport:", b"sport:99999999999999999999", b"sport:01"]
    others += [b"sport:1:2", b"market:1", b"sport:9223372036854775808", "sport:٣".encode(), b"Sport:1"]
    others += [b" sport:1", b"x" * 10**6]
    topics[TRANSLATIONS] = [record(key, b"\0\0\0\0\7") for key in [*ours, *others, b"league:1"]]
    topics[TRANSLATIONS].append(record(b"league:1", b"{}"))
    with capture_logs() as lines:
        assert [*JobStorage(SETTINGS, "translations").published()] == ours
    [line] = lines
    assert line["count"] == len(others) + 1
    assert len(line["first"]) < 500


def test_an_invalid_snapshot_record_is_named_by_its_place(topics: Topics) -> None:
    topics["settlement.snapshots"] = [record(b"currencies", b"{}"), record(b"x", b"y")]
    with pytest.raises(ForeignRecord, match=r"^settlement\.bets partition 0 offset 14 was not written by"):
        last_snapshot(SETTINGS, "currencies")


def test_a_job_reads_only_its_own_snapshots(topics: Topics) -> None:
    topics["settlement.snapshots"] = [record(b"currencies", b"")]
    assert last_snapshot(SETTINGS, "translations") is None
    assert topic_of(SETTINGS, "currencies") == "settlement.currencies"


def test_older_bets_are_read_when_names_are_kept_for_longer(topics: Topics) -> None:
    topics.add_bet(at=NOW - 20 * DAY)
    topics.add_bet(at=NOW - DAY)
    state = JobState("currencies", {})
    topics.learn(state, keep_days=5)
    assert topics.read == [1]
    topics.learn(state, keep_days=30)
    assert topics.read == [1, 0, 1]


def test_bets_of_an_unknown_schema_are_not_passed_over(topics: Topics) -> None:
    topics.add_bet()
    state = JobState("currencies", {})
    topics.learn(state)
    topics.add_bet(schema_id=7)
    topics.add_bet(schema_id=7)
    with pytest.raises(SchemaNotFound, match=r"partition 0 offset 1 .*404"):
        topics.learn(state)
    assert state.position == {0: 1}


def test_a_bet_without_a_time_counts_as_of_1970(topics: Topics) -> None:
    topics.add_bet()
    state = JobState("currencies", {})
    topics.learn(state)
    topics.add_bet("SEK", at=-0.001)
    topics.learn(state)
    assert state.usage.of["currency"].keys() == {"EUR", "SEK"}
    state.usage.forget(HOUR_SECONDS + 1)
    assert state.usage.of["currency"].keys() == {"EUR"}


def test_foreign_records_after_all_bets_do_not_end_the_job(topics: Topics) -> None:
    topics.add_bet()
    state = JobState("translations", {})
    topics.learn(state, "translations")
    topics.add(b"junk")
    _, note = topics.learn(state, "translations")
    assert note.startswith("1 records are not bets")


class Died(Exception):
    """The process did."""


@pytest.mark.parametrize("saves", [0, 1, 2, 3])
def test_a_run_that_dies_while_it_learns_goes_on_from_what_it_saved(
    topics: Topics, monkeypatch: pytest.MonkeyPatch, saves: int
) -> None:
    monkeypatch.setattr(storage, "LEARNT_AT_ONCE", 2)
    for n in range(7):
        topics.add_bet(f"C{n % 4}", NOW - 3600 * (7 - n))
    kept: dict[bytes, bytes | None] = {}
    left = [None] * saves

    def save() -> None:
        if not left:
            raise Died
        left.pop()
        kept.update(state.changes())

    state = JobState("currencies", {})
    with pytest.raises(Died):
        topics.learn(state, save=save)
    topics.read.clear()
    state = JobState("currencies", {key: value for key, value in kept.items() if value is not None})
    topics.learn(state)
    assert topics.read == [*range(2 * saves, 7)]
    whole = JobState("currencies", {})
    topics.learn(whole)
    assert state.usage.of["currency"].keys() == whole.usage.of["currency"].keys() == {"C0", "C1", "C2", "C3"}
    recent = [x.used(NOW - 3600 * 2, full=True).of["currency"].keys() for x in (state, whole)]
    assert recent[0] == recent[1]
    assert state.usage.newest == whole.usage.newest
