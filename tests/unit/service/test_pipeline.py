"""What becomes of each message: one record or none, one counter, and a place in the position."""

from __future__ import annotations

import asyncio
import hashlib
import json
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bridge.avro.codec import Codec, Codecs
from bridge.avro.schemas import load
from bridge.clock import AnchoredClock, Instant
from bridge.config import BatchSettings, FeedSettings, Settings
from bridge.dedup.deduplicator import Deduplicator
from bridge.feed.received import Oversized, Received
from bridge.kafka.admin import TopicSeen
from bridge.kafka.batch import Record
from bridge.kafka.partitioner import partition_of
from bridge.records.checkpoint import Checkpoint, Move, State
from bridge.records.counters import Counters
from bridge.records.reach import as_seen
from bridge.records.topics import declare
from bridge.service import held
from bridge.service.conversion_log import CAUSES, EXTRA_PATHS, OTHER_CAUSES, SAMPLES
from bridge.service.held import OVER
from bridge.service.pipeline import Pipeline
from bridge.service.status import Status
from bridge.service.term import Term
from bridge.service.timekeeper import Timekeeper
from tests.malformed import MALFORMED

EXAMPLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "examples" / "settled-bet.message.json").read_text()
)
NOW = 1_790_000_000.25
BETS = Codec(load("settled-bet"), 7)
CHECKPOINTS = Codec(load("feed-checkpoint"), 8)
GAPS = Codec(load("feed-gap"), 9)
SETTINGS = Settings(feed=FeedSettings(name="f", max_message_bytes=1000), batch=BatchSettings(max_records=3))


def connect(pipeline: Pipeline, revision: int | None) -> None:
    """Let an attempt succeed."""
    pipeline.replay.asked(revision, NOW)
    pipeline.connected(revision, skew=None, provisional=revision is None)


class Line:
    """A pipeline, and what came out of it."""

    def __init__(
        self,
        bets: Codec = BETS,
        newest: float | None = None,
        settings: Settings = SETTINGS,
        revision: int = int(NOW) - 3600,
        deduplicator: Deduplicator | None = None,
        moved_from: int = 0,
    ) -> None:
        topics, clock = declare(settings), AnchoredClock(lambda: Instant(NOW, 0.0))
        reaches = tuple(as_seen(topic.name, TopicSeen("id", (0,) * 6)) for topic in topics.of_messages())
        moved = Move(moved_from, "me", moved_from, moved_from) if moved_from else None
        start = Checkpoint(
            "f", revision, State.CONNECTING, (), Counters(), NOW, "me", newest=newest, moved=moved
        )
        keeper = Timekeeper(settings.feed, clock, AsyncMock())
        self.term = Term(settings, Status("f", clock), keeper, asyncio.Event(), start, None, reaches)
        codecs = Codecs(bets, CHECKPOINTS, GAPS)
        known = Deduplicator() if deduplicator is None else deduplicator
        self.pipeline = Pipeline(self.term, topics, codecs, known)
        connect(self.pipeline, revision)

    def handle(self, body: bytes | Oversized, at: float = NOW) -> str | None:
        """Take a message; every one keeps the counters in balance."""
        pings = self.pipeline.handle([Received(body, at)], now=0.0)
        assert self.counters.balanced
        assert all(answered == body for _, answered in pings)
        return pings[0][0] if pings else None

    @property
    def counters(self) -> Counters:
        return self.term.counters

    @property
    def records(self) -> list[Record]:
        return self.pipeline.batch.records

    def letters(self) -> list[tuple[bytes, dict[str, str]]]:
        """The dead letters with their headers."""
        return [
            (r.value or b"", {k: v.decode() if isinstance(v, bytes) else str(v) for k, v in r.headers or []})
            for r in self.records
            if r.topic == "settlement.deadletters"
        ]


def bet(
    version: int = 1, payout: float = 1.5, bet_id: str = "b", ping: str | None = None, **extra: Any
) -> bytes:
    """A message with a bet, settled now."""
    data = EXAMPLE["data"] | {"betId": bet_id, "settlementVersion": version, "payout": payout}
    return json.dumps(
        {"pingId": ping, "data": data | {"settlementTime": "2026-09-21T14:13:00Z"} | extra}
    ).encode()


PING = b'{"pingId":"7"}'
BROKEN = b'{"pingId":"8","data":{"betId":""}}'


def test_a_bet_becomes_a_record() -> None:
    line = Line()
    assert line.handle(bet()) is None
    [record] = line.records
    assert (record.topic, record.key, record.timestamp) == ("settlement.bets", b"b", 1_790_000_000_250)
    assert (record.headers, record.partition) == (None, partition_of(b"b", 6))
    datum = BETS.decode(record.value or b"")
    assert (datum["betId"], datum["payout"], datum["settlementVersion"]) == ("b", 1.5, 1)
    assert line.counters == Counters(received=1, published=1)


def test_what_is_published_already_is_dropped_and_counted() -> None:
    line = Line()
    for body in (bet(2), bet(2), bet(1), bet(2, payout=9.0), bet(3), bet(1, bet_id="other")):
        line.handle(body)
    assert [BETS.decode(r.value or b"")["settlementVersion"] for r in line.records] == [2, 2, 3, 1]
    assert line.counters == Counters(received=6, published=4, duplicates=1, stale=1, corrections=1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        MALFORMED[min(MALFORMED)](EXAMPLE, 0),
        (b'{"bet":{"betId":"b"},"pingId":null}', "neither pingId nor data, but: bet"),
    ],
)
def test_a_message_that_is_no_bet_is_a_dead_letter(body: bytes, reason: str) -> None:
    line = Line()
    line.handle(body)
    [(value, headers)] = line.letters()
    assert value == body
    assert reason in headers.pop("reason")
    assert headers == {
        "kind": "error",
        "feed": "f",
        "revision": str(int(NOW) - 3600),
        "received": "1790000000.250000",
        "size": str(len(body)),
    }
    assert line.records[0].key == hashlib.sha256(body).hexdigest().encode()
    assert line.counters == Counters(received=1, dead_lettered=1)


def test_a_bet_that_a_record_cannot_hold_is_a_dead_letter() -> None:
    line = Line()
    data = json.loads(bet())["data"]
    data["selections"][0]["event"]["name"] = "x" * (1 << 20)
    line.handle(json.dumps({"data": data}).encode())
    [(_, headers)] = line.letters()
    assert headers["reason"].endswith(f"than a record: {1000 + (1 << 20) - 1024}")
    assert (line.counters.dead_lettered, line.counters.published) == (1, 0)


def test_of_an_oversized_message_size_hash_and_head_are_kept() -> None:
    line = Line()
    oversized = Oversized(5000, "ab" * 32, b"head")
    for _ in range(2):
        assert line.handle(oversized) is None
    [(value, headers)] = line.letters()
    assert (value, headers["kind"], headers["size"]) == (b"head", "oversized", "5000")
    assert headers["reason"] == "5000 bytes are more than feed.max_message_bytes = 1000"
    assert line.records[0].key == b"ab" * 32
    assert line.counters == Counters(received=2, dead_lettered=1, duplicates=1)


@pytest.mark.parametrize(
    ("body", "ping_id", "counters"),
    [
        (PING, "7", Counters(received=1, pings=1)),
        (bet(ping="9"), "9", Counters(received=1, published=1)),
        (BROKEN, "8", Counters(received=1, dead_lettered=1)),
        (b'{"pingId":"8","data":[', None, Counters(received=1, dead_lettered=1)),
        (b"{}", None, Counters(received=1, empty=1)),
        (b'{"pingId":null,"data":null}', None, Counters(received=1, empty=1)),
    ],
    ids=["ping", "ping and bet", "ping and broken bet", "broken JSON", "nothing", "nulls"],
)
def test_a_ping_is_to_be_answered_whatever_comes_with_it(
    body: bytes, ping_id: str | None, counters: Counters
) -> None:
    line = Line()
    assert line.handle(body) == ping_id
    assert line.counters == counters


def test_a_bet_with_unknown_fields_is_published_and_its_original_kept() -> None:
    line = Line()
    with capture_logs() as logged:
        for number in range(SAMPLES + 2):
            line.handle(bet(bet_id=str(number), novelty=1))
        for _ in range(2):
            line.handle(bet(bet_id="more", novelty=1, another={"deep": 1}))
    samples = line.letters()
    assert [value for value, _ in samples] == [
        *(bet(bet_id=str(number), novelty=1) for number in range(SAMPLES)),
        *[bet(bet_id="more", novelty=1, another={"deep": 1})] * 2,
    ]
    assert {headers["kind"] for _, headers in samples} == {"sample"}
    assert samples[0][1]["reason"] == "unknown fields: data.novelty"
    assert samples[-1][1]["reason"] == "unknown fields: data.another"
    assert [(line["path"], line["log_level"]) for line in logged] == [
        ("data.novelty", "warning"),
        ("data.another", "warning"),
    ]
    assert line.pipeline.conversion_log.extras == {"data.novelty": SAMPLES + 4, "data.another": 2}
    assert line.counters == Counters(received=7, published=6, duplicates=1)


@pytest.mark.parametrize(
    ("body", "counters"),
    [
        (b'{"pingId":"7","novelty":{"deep":1}}', Counters(received=2, pings=2)),
        (b'{"novelty":null}', Counters(received=2, empty=2)),
        (bet(novelty=1), Counters(received=2, published=1, duplicates=1)),
    ],
    ids=["ping", "empty", "duplicate"],
)
def test_unknown_fields_are_counted_and_sampled_wherever_they_come(body: bytes, counters: Counters) -> None:
    line = Line()
    line.handle(body)
    line.handle(body)
    assert [(value, headers["kind"]) for value, headers in line.letters()] == [(body, "sample")] * 2
    assert list(line.pipeline.conversion_log.extras.values()) == [2]
    assert line.counters == counters


def test_of_messages_of_nothing_but_unknown_fields_each_is_kept() -> None:
    line = Line()
    bodies = [b'{"bet":{"betId":"%d"},"pingId":null}' % number for number in range(SAMPLES + 2)]
    for body in bodies:
        assert line.handle(body) is None
    assert [(value, headers["kind"]) for value, headers in line.letters()] == [(it, "error") for it in bodies]
    assert line.pipeline.conversion_log.extras == {"bet": SAMPLES + 2}
    assert line.counters == Counters(received=SAMPLES + 2, dead_lettered=SAMPLES + 2)


def test_fields_without_number_do_not_fill_the_memory() -> None:
    line = Line()
    for number in range(EXTRA_PATHS + 5):
        extra: dict[str, Any] = {f"field{number}": 1}
        line.handle(bet(bet_id=str(number), **extra))
    assert len(line.pipeline.conversion_log.extras) == EXTRA_PATHS
    assert line.counters.published == EXTRA_PATHS + 5


def live() -> Line:
    """One that is live at `NOW`; `bet(2)` is published."""
    line = Line()
    for version in range(3):
        line.handle(bet(version))
    return line


def test_whatever_is_understood_moves_the_position() -> None:
    for body in (bet(), bet(1, payout=2.0), PING):
        line = live()
        line.handle(body, at=NOW + 30)
        assert line.term.position.revision == int(NOW + 30) - 90


NOT_UNDERSTOOD: dict[str, bytes | Oversized] = {
    "broken": BROKEN,
    "too large": Oversized(5000, "ab" * 32, b""),
    "unknown envelope": b'{"bet":{"betId":"b"},"pingId":null}',
    "ping with an unknown field": b'{"pingId":"7","bet":{}}',
    "empty": b"{}",
}


@pytest.mark.parametrize("kind", NOT_UNDERSTOOD)
def test_what_is_not_understood_never_moves_the_position(kind: str) -> None:
    line = live()
    line.handle(NOT_UNDERSTOOD[kind], at=NOW + 30)
    assert line.term.position.revision == int(NOW) - 90


@pytest.mark.parametrize("kind", sorted(NOT_UNDERSTOOD.keys() - {"empty"}))
def test_pings_do_not_move_it_past_what_is_not_understood(kind: str) -> None:
    line, body = live(), NOT_UNDERSTOOD[kind]
    line.handle(body, at=NOW + 1)
    line.handle(PING, at=NOW + 2)
    assert line.term.position.revision == int(NOW) - 90
    line.handle(bet(9), at=NOW + 3)
    line.handle(PING, at=NOW + 30)
    assert line.term.position.revision == int(NOW + 30) - 90
    line.handle(body, at=NOW + 40)
    for seconds in range(45, 166, 5):
        line.handle(PING, at=NOW + seconds)
    assert line.term.position.revision == int(NOW + 165) - 90


def test_the_position_learns_of_a_stall_before_the_message() -> None:
    line = live()
    assert line.term.position.live
    line.pipeline.handle([Received(PING, NOW + 500, after_read_pause=True)], now=0.0)
    assert not line.term.position.live
    assert line.term.position.revision == int(NOW) - 90


def test_a_replay_reaches_back_until_something_new_comes() -> None:
    line = live()
    connect(line.pipeline, int(NOW) - 3600)
    for body in (bet(2), bet(1), BROKEN, PING):
        line.handle(body)
        assert line.pipeline.replay.since == int(NOW) - 3600
    line.handle(bet(3))
    assert line.pipeline.replay.since == inf


def test_a_batch_is_sealed_with_all_that_it_settles() -> None:
    line = Line()
    for body in (bet(1), bet(1), PING, BROKEN):
        line.handle(body)
    assert not line.pipeline.full
    line.handle(bet(2))
    assert line.pipeline.full
    taken = line.pipeline.take_batch()
    assert len(taken.records) == 3
    assert (line.records, line.pipeline.full, line.pipeline.batch.opened_at) == ([], False, None)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.one_of(
            st.builds(bet, st.integers(1, 3), st.sampled_from([1.0, 2.0]), st.sampled_from("abc")),
            st.builds(bet, ping=st.sampled_from(["1", None]), novelty=st.integers(0, 1)),
            st.sampled_from(sorted(MALFORMED)).map(lambda kind: MALFORMED[kind](EXAMPLE, 0)[0]),
            st.sampled_from([PING, BROKEN, b"{}", b'{"pingId":""}']),
            st.just(Oversized(5000, "ab" * 32, b"head")),
            st.binary(max_size=20),
        ),
        max_size=30,
    )
)
def test_each_message_ends_in_exactly_one_counter(messages: list[bytes | Oversized]) -> None:
    line = Line()
    for body in messages:
        before = line.counters.copy()
        line.handle(body)
        assert line.counters.received == before.received + 1
    letters = [headers["kind"] for _, headers in line.letters()]
    assert line.counters.received == len(messages)
    assert line.counters.dead_lettered == len(letters) - letters.count("sample")
    assert line.counters.published == len(line.records) - len(letters)


def test_each_new_cause_of_dead_letters_is_logged_once() -> None:
    line = Line()
    with capture_logs() as logged:
        for number in range(3):
            line.handle(bet(bet_id=f"b{number}", betSettlement=90 + number))
            line.handle(b"{" * (number + 1))
    assert logged == [
        {
            "event": "dead letters of a new kind",
            "log_level": "warning",
            "field": "data.betSettlement",
            "reason": "Input should be 0, 1, 2, 3, 4, 5, 6 or 7",
            "see": "bridge deadletters list",
        },
        {
            "event": "dead letters of a new kind",
            "log_level": "warning",
            "field": "",
            "reason": "Invalid JSON",
            "see": "bridge deadletters list",
        },
    ]


def test_a_provider_that_invents_reasons_does_not_fill_the_log() -> None:
    line = Line()
    with capture_logs() as logged:
        for number in range(CAUSES + 5):
            selection = EXAMPLE["data"]["selections"][0] | {"parameters": {f"k{number}": 1}}
            line.handle(bet(selections=[selection]))
    assert len(logged) == CAUSES
    assert logged[7]["field"] == "data.selections[].parameters.k7"
    assert len(line.pipeline.conversion_log.causes) == CAUSES + 1
    assert line.pipeline.conversion_log.causes[OTHER_CAUSES] == 5


def changed_back(line: Line, count: int) -> None:
    """Have A and B of these bets published, and connect to a replay that brings A."""
    for payout in (1.0, 2.0):
        for number in range(count):
            line.handle(bet(bet_id=f"{number}", payout=payout))
    line.pipeline.take_batch()
    connect(line.pipeline, int(NOW) - 3600)
    for number in range(count):
        line.handle(bet(bet_id=f"{number}", payout=1.0))


def test_an_earlier_content_is_held_and_counted_with_its_outcome() -> None:
    line = Line()
    changed_back(line, 2)
    before = line.counters.received
    assert (line.records, line.term.position.held) == ([], True)
    line.handle(bet(bet_id="0", payout=2.0))
    assert (line.counters.received, line.counters.duplicates) == (before + 2, 2)
    assert line.term.position.held
    line.handle(bet(version=2, bet_id="1"))
    assert [(r.key, BETS.decode(r.value or b"")["settlementVersion"]) for r in line.records] == [
        (b"1", 1),
        (b"1", 2),
    ]
    assert (line.counters.received, line.counters.duplicates) == (before + 4, 2)
    assert not line.term.position.held


def test_what_is_held_is_published_once_the_replay_is_over() -> None:
    line = Line()
    changed_back(line, 1)
    for number in range(OVER):
        line.handle(bet(bet_id=f"new-{number}"))
        assert line.term.position.held
    assert len(line.records) == OVER
    line.handle(bet(bet_id="one more"))
    keys = [record.key for record in line.records if record.topic == "settlement.bets"]
    assert keys[OVER:] == [b"0", b"one more"]
    line = Line()
    changed_back(line, 1)
    for seconds in range(0, 3900, 10):
        line.handle(PING, at=NOW + seconds)
        assert not line.records or seconds > 3600
    assert line.term.position.revision > NOW
    assert BETS.decode(line.records[0].value or b"")["payout"] == 1.0
    assert line.records[0].timestamp == int(NOW * 1000)


def test_what_is_held_comes_again_with_the_next_connection() -> None:
    line = Line()
    changed_back(line, 1)
    received = line.counters.received
    connect(line.pipeline, int(NOW) - 3600)
    assert not line.term.position.held
    line.handle(bet(bet_id="0", payout=1.0))
    line.handle(bet(bet_id="0", payout=2.0))
    assert (line.records, line.counters.received) == ([], received + 2)


def test_more_than_can_be_held_are_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_BYTES", 3000)
    line = Line(settings=SETTINGS.model_copy(update={"feed": FeedSettings(name="f")}))
    changed_back(line, 10)
    assert 0 < len(line.letters()) < 10
    assert {text["reason"] for _, text in line.letters()} == {
        "more corrections than can be held: it repeats, or changes a bet back"
    }


def test_before_a_position_that_was_moved_back_nothing_is_held() -> None:
    line = Line(moved_from=int(NOW))
    changed_back(line, 1)
    assert (line.records, line.counters.duplicates, line.term.position.held) == ([], 1, False)
