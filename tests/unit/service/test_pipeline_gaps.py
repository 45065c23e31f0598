"""Gaps that a replay shows, and bets that were published with an earlier schema."""

from __future__ import annotations

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, Settings
from bridge.dedup.deduplicator import Deduplicator, fingerprint
from bridge.feed.position import WINDOW
from bridge.feed.received import Received
from bridge.records.checkpoint import UnprovenReplay
from bridge.records.counters import Counters
from bridge.records.dead_letter import identity
from bridge.records.gap import Cause, FeedGap
from bridge.service.pipeline import Pipeline
from tests.unit.service.test_pipeline import BETS, BROKEN, GAPS, NOW, Line, bet, connect

SETTINGS = Settings(feed=FeedSettings(name="f"))
POSITION = int(NOW) - 7200
SETTLED = NOW - 20.25
"""When the bets of these tests were settled."""


def pipeline(
    newest: float | None,
    *,
    bets: Codec = BETS,
    deduplicator: Deduplicator | None = None,
    moved_from: int = 0,
) -> Pipeline:
    """One whose connection has just begun, from a position of two hours ago."""
    made = Line(bets, newest, SETTINGS, POSITION, deduplicator, moved_from).pipeline
    connect(made, POSITION)
    return made


def handle(made: Pipeline, *bodies: bytes, at: float = NOW) -> None:
    made.handle([Received(body, at) for body in bodies], now=0.0)


def gaps(made: Pipeline) -> list[FeedGap]:
    """What is in the batch for the topic of gaps."""
    records = [r for r in made.batch.records if r.topic == "settlement.gaps"]
    assert all((r.key, r.partition) == (b"f", 0) for r in records)
    return [FeedGap.from_avro(GAPS.decode(r.value or b"")) for r in records]


def fresh(count: int) -> list[bytes]:
    return [bet(bet_id=f"new-{number}") for number in range(count)]


def test_a_replay_without_anything_known_is_a_gap() -> None:
    made = pipeline(newest=POSITION + 600)
    handle(made, *fresh(2))
    assert (gaps(made), made.missing_in_replay, made.gaps) == ([], None, 0)
    handle(made, *fresh(5)[2:])
    declared = FeedGap("f", POSITION, min(NOW, SETTLED + 60), Cause.MISSING_IN_REPLAY, NOW)
    assert (gaps(made), made.missing_in_replay, made.gaps) == ([declared], declared, 1)
    handle(made, *fresh(10)[5:], at=NOW + 100)
    assert made.gaps == 1


def test_what_an_operator_asks_for_again_need_not_be_known() -> None:
    left = int(SETTLED) - 100
    made = pipeline(newest=left + 60.0, moved_from=left)
    old = [bet(bet_id=f"old-{n}", settlementTime="2026-09-21T12:30:00Z") for n in range(WINDOW)]
    handle(made, *old)
    assert POSITION < made.term.position.revision < left
    assert gaps(made) == []
    handle(made, *fresh(5))
    assert made.term.position.revision > left
    [declared] = gaps(made)
    assert (declared.start, declared.cause) == (POSITION, Cause.MISSING_IN_REPLAY)


def test_nothing_is_missed_if_nothing_was_published_behind_the_position_that_an_operator_left() -> None:
    left = int(SETTLED) - 100
    made = pipeline(newest=left - 1.0, moved_from=left)
    handle(made, *fresh(5))
    assert made.term.position.revision > left
    assert gaps(made) == []


def test_it_goes_up_to_what_came_at_the_latest() -> None:
    made = pipeline(newest=POSITION + 600)
    late = bet(bet_id="late", settlementTime="2026-09-21T12:30:00Z")
    handle(made, late, *fresh(WINDOW), at=NOW + 6000)
    [declared] = gaps(made)
    assert (declared.start, declared.end) == (POSITION, SETTLED + 60)


def test_pings_alone_show_it_too() -> None:
    made = pipeline(newest=POSITION + 600)
    for number in range(61):
        handle(made, b'{"pingId":"%d"}' % number, at=NOW + 60 * number)
    [declared] = gaps(made)
    assert (declared.start, declared.end) == (POSITION, NOW + 3600)


HEARTBEAT = b'{"type":"heartbeat"}'


@pytest.mark.parametrize(
    ("known", "again", "is_witness"),
    [
        ([bet(1)], [bet(1)], True),
        ([bet(2)], [bet(1)], True),
        ([bet(1)], [bet(1, payout=2.0)], False),
        ([bet(1)], [bet(2)], False),
        ([BROKEN], [BROKEN], False),
        ([HEARTBEAT], [HEARTBEAT], False),
        ([], [bet(1), bet(1)], False),
        ([], [bet(2), bet(1)], False),
    ],
    ids=[
        *("the same", "an older version", "a correction", "the next version"),
        *("still invalid", "still no bet", "of this connection", "of this connection, older"),
    ],
)
def test_one_thing_that_was_known_before_is_a_witness(
    known: list[bytes], again: list[bytes], is_witness: bool
) -> None:
    deduplicator = Deduplicator()
    handle(pipeline(newest=None, deduplicator=deduplicator), *known, at=NOW - 1)
    made = pipeline(newest=POSITION + 600, deduplicator=deduplicator)
    handle(made, *again, *fresh(5), at=NOW + 1)
    assert len(gaps(made)) == (not is_witness)


@pytest.mark.parametrize(
    ("at", "is_witness"),
    [(NOW - 60, True), (POSITION - 1, False), (None, False)],
    ids=["known", "from before the revision", "of this connection"],
)
def test_a_bet_that_was_a_dead_letter_is_a_witness(at: float | None, is_witness: bool) -> None:
    """An earlier version could not convert it."""
    deduplicator = Deduplicator()
    if at is not None:
        deduplicator.record_dead_letter(identity(bet(1)), at)
    made = pipeline(newest=POSITION + 600, deduplicator=deduplicator)
    if at is None:
        deduplicator.record_dead_letter(identity(bet(1)), NOW)
    handle(made, bet(1), *fresh(5))
    assert (len(gaps(made)), made.term.counters.published) == (not is_witness, 6)


@pytest.mark.parametrize(("first", "second"), [(bet(1), bet(1)), (bet(2), bet(1))])
def test_what_an_earlier_connection_has_brought_in_vain_is_no_witness(first: bytes, second: bytes) -> None:
    made = pipeline(newest=POSITION + 600)
    handle(made, first, at=NOW + 1)
    for _ in range(2):
        connect(made, POSITION)
        handle(made, second, at=NOW + 3)
    handle(made, *fresh(5), at=NOW + 3)
    assert len(gaps(made)) == 1


def test_what_an_attempt_awaits_does_not_change_until_it_comes_or_lies_in_a_gap() -> None:
    made = pipeline(newest=POSITION + 600)
    handle(made, *fresh(2), at=NOW + 1)
    assert made.replay.newest == SETTLED
    made.replay.asked(POSITION + 1, NOW + 2)
    assert made.replay.unproven == UnprovenReplay(POSITION + 1, NOW, POSITION + 600)
    made.replay.asked(POSITION + 600, NOW + 3)
    assert made.replay.unproven == UnprovenReplay(POSITION + 600, NOW + 3, SETTLED)


def test_what_lies_before_the_position_that_an_operator_left_is_not_awaited_any_more() -> None:
    made = pipeline(newest=POSITION + 600, moved_from=POSITION + 700)
    made.replay.unproven = UnprovenReplay(POSITION, NOW, POSITION + 600)
    made.replay.asked(POSITION, NOW)
    assert made.replay.unproven is None


def test_an_attempt_by_a_clock_that_was_ahead_does_not_make_known_what_comes_after_the_next() -> None:
    made = pipeline(newest=POSITION + 600)
    made.replay.unproven = UnprovenReplay(POSITION, NOW + 3600, POSITION + 600)
    made.replay.asked(POSITION, NOW)
    assert made.replay.unproven == UnprovenReplay(POSITION, NOW, POSITION + 600)


def test_all_that_is_known_may_come_again_even_if_the_clock_was_set_back_since() -> None:
    made = pipeline(newest=None)
    handle(made, *fresh(2), at=NOW + 1)
    made.replay.asked(POSITION, NOW - 100)
    assert made.replay.unproven == UnprovenReplay(POSITION, NOW + 1 + 0.001, SETTLED)


def test_what_an_earlier_connection_has_brought_is_not_awaited() -> None:
    made = pipeline(newest=POSITION + 20)
    handle(made, *fresh(2), at=NOW + 1)
    made.term.position.skip(POSITION + 100)
    connect(made, POSITION + 100)
    handle(made, *fresh(5), at=NOW + 3)
    assert gaps(made) == []


def test_where_nothing_is_known_from_after_the_revision_nothing_is_awaited() -> None:
    for newest in (None, POSITION - 1.0, float(POSITION)):
        made = pipeline(newest=newest)
        handle(made, *fresh(5))
        assert gaps(made) == []
    made = pipeline(newest=POSITION + 600)
    connect(made, None)
    handle(made, *fresh(5))
    assert gaps(made) == []


def test_the_newest_settlement_published_is_remembered() -> None:
    made = pipeline(newest=POSITION + 600)
    handle(made, bet(), at=SETTLED - 1)
    assert made.replay.newest == POSITION + 600
    handle(made, bet(), at=SETTLED + 1)
    assert made.replay.newest == POSITION + 600
    handle(made, bet(2))
    assert made.replay.newest == SETTLED


def test_what_an_earlier_schema_cannot_hold_is_another_content() -> None:
    schema = load("settled-bet")
    impossible = {**schema, "fields": [{"name": "nothingLikeIt", "type": "string"}, *schema["fields"]]}
    deduplicator = Deduplicator()
    codec = Codec(impossible, 6)
    first = pipeline(newest=None, deduplicator=deduplicator)
    handle(first, bet())
    content = codec.encode({"nothingLikeIt": "x", **BETS.decode(first.batch.records[0].value or b"")})
    deduplicator = Deduplicator()
    deduplicator.publish(b"b", 1, fingerprint(content), NOW)
    made = pipeline(
        newest=None, bets=Codec(load("settled-bet"), 7, lambda _: impossible), deduplicator=deduplicator
    )
    handle(made, bet())
    assert made.term.counters == Counters(received=1, published=1, corrections=1)
