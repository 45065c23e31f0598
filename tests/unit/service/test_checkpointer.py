"""Which batches are committed, when, and with which checkpoint."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from itertools import pairwise

import pytest

from bridge.clock_skew import Skew
from bridge.config import BatchSettings
from bridge.feed.received import Received
from bridge.kafka.batch import BACKLOG, Batch, Record, batch_linger
from bridge.records.checkpoint import State, UnprovenReplay
from bridge.records.gap import Cause, FeedGap
from bridge.service.checkpointer import LARGEST_SHOWN_BYTES, SHOWN_BETS, VisibilityDelays
from bridge.service.committer import REST_SECONDS
from tests.virtual.desk import Desk, with_desk
from tests.virtual.world import EPOCH, settled


def receive(desk: Desk, count: int) -> None:
    """Handle this number of new bets."""
    now = desk.clock()
    for number in range(count):
        desk.pipeline.handle([Received(settled(number, now.wall), now.wall)], now.monotonic)


async def begun(desk: Desk, state: State) -> None:
    """Be in this state, with a first checkpoint."""
    desk.status.become(state)
    await desk.checkpointer.commit()


@with_desk()
async def test_a_checkpoint_has_the_whole_state(desk: Desk) -> None:
    desk.status.become(State.WAITING_FOR_LIMIT, "a limit", until=EPOCH + 7)
    desk.term.limiter.attempt(desk.clock(), int(EPOCH) - 100)
    desk.term.timekeeper.skew = Skew(2.5, 3.5)
    receive(desk, 3)
    await desk.checkpointer.commit()
    [checkpoint] = desk.kafka.checkpoints
    assert (checkpoint.feed, checkpoint.owner, checkpoint.updated_at) == ("f", "me", EPOCH)
    assert (checkpoint.state, checkpoint.reason) == (State.WAITING_FOR_LIMIT, "a limit")
    assert (checkpoint.since, checkpoint.until) == (EPOCH, EPOCH + 7)
    assert checkpoint.revision == desk.term.position.revision == EPOCH - 90
    assert checkpoint.ledger == desk.term.limiter.ledger
    assert checkpoint.counters == desk.term.counters
    assert (checkpoint.counters.published, checkpoint.newest) == (3, EPOCH)
    assert (checkpoint.skew, checkpoint.catch_up) == (2.5, None)
    assert desk.term.committed == checkpoint


@with_desk()
async def test_topics_that_were_taken_as_a_copy_are_those_of_the_next_checkpoint(desk: Desk) -> None:
    await desk.checkpointer.commit()
    [last] = desk.kafka.checkpoints
    desk.term.topics = copies = tuple(replace(topic, id="a copy") for topic in last.topics)
    desk.checkpointer.advance(0)
    assert desk.term.topics == copies
    await desk.checkpointer.commit()
    assert {topic.id for topic in desk.kafka.checkpoints[-1].topics} == {"a copy"}


@with_desk()
async def test_a_commit_is_due_when_the_batch_is_old_enough(desk: Desk) -> None:
    await begun(desk, State.LIVE)
    assert (desk.checkpointer.due_at(0), desk.checkpointer.visibility.last_bets) == (None, None)
    await asyncio.sleep(1)
    receive(desk, 1)
    assert desk.checkpointer.due_at(0) == 1.02
    assert desk.checkpointer.due_at(1_000) == 1 + batch_linger(BatchSettings(), 1_000)
    await asyncio.sleep(0.015)
    receive(desk, 1)
    assert desk.checkpointer.due_at(0) == 1.02
    desk.checkpointer.advance(0)
    assert desk.kafka.transactions == 1


@with_desk()
async def test_a_transaction_begins_a_moment_after_the_last(desk: Desk) -> None:
    await begun(desk, State.LIVE)
    receive(desk, 1)
    desk.checkpointer.advance(0)
    assert desk.kafka.handed_over == []
    assert desk.checkpointer.due_at(0) == REST_SECONDS
    await asyncio.sleep(REST_SECONDS)
    desk.checkpointer.advance(0)
    assert len(desk.kafka.handed_over) == 1
    assert desk.checkpointer.due_at(0) == REST_SECONDS + 0.02


@with_desk()
async def test_a_batch_grows_while_messages_wait(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    receive(desk, 10)
    await asyncio.sleep(0.9)
    desk.checkpointer.advance(5_000)
    assert desk.kafka.transactions == 1
    assert desk.kafka.handed_over == []
    await asyncio.sleep(0.2)
    desk.checkpointer.advance(5_000)
    assert len(desk.kafka.handed_over) == 10
    assert desk.kafka.transactions == 2
    await desk.committer.finish()
    receive(desk, 5_010)  # of which the first ten are known
    desk.checkpointer.advance(5_000)
    assert desk.kafka.transactions == 2, "a moment after the last"
    await asyncio.sleep(REST_SECONDS)
    desk.checkpointer.advance(5_000)
    assert desk.kafka.transactions == 3


@with_desk()
async def test_the_records_of_a_burst_are_produced_as_soon_as_no_message_waits(desk: Desk) -> None:
    await begun(desk, State.LIVE)
    await asyncio.sleep(REST_SECONDS)
    receive(desk, 120)
    for backlog in (120, BACKLOG):
        desk.checkpointer.advance(backlog)
        assert desk.kafka.handed_over == []
    desk.checkpointer.advance(BACKLOG - 1)
    assert len(desk.kafka.handed_over) == 120
    assert desk.checkpointer.due_at(0) == REST_SECONDS + 0.02
    await asyncio.sleep(0.021)
    desk.checkpointer.advance(0)
    assert desk.kafka.transactions == 2


@with_desk()
async def test_delivery_reports_are_taken_off_a_commit_while_a_backlog_waits(desk: Desk) -> None:
    desk.kafka.away(10)
    desk.status.become(State.CATCHING_UP)
    for backlog in (BACKLOG, BACKLOG, BACKLOG - 1):
        desk.checkpointer.advance(backlog)
    assert desk.kafka.polls == 1, "the first began the commit"


@with_desk()
async def test_a_full_batch_is_committed_as_soon_as_the_last_commit_has_ended(desk: Desk) -> None:
    desk.kafka.away(10)
    desk.status.become(State.CATCHING_UP)
    desk.checkpointer.advance(0)
    receive(desk, 5_000)
    desk.checkpointer.advance(5_000)
    assert desk.checkpointer.due_at(5_000) is None
    await desk.committer.finish()
    assert desk.checkpointer.due_at(5_000) == desk.clock().monotonic + REST_SECONDS
    await asyncio.sleep(REST_SECONDS)
    assert desk.checkpointer.due_at(5_000) == 0
    desk.checkpointer.advance(5_000)
    assert desk.kafka.transactions == 2


@with_desk()
async def test_a_new_state_is_due_at_once(desk: Desk) -> None:
    await desk.checkpointer.commit()
    desk.status.become(State.IDLE_TIMEOUT)
    assert desk.checkpointer.due_at(0) == 0.0
    desk.checkpointer.advance(0)
    await desk.committer.finish()
    assert desk.kafka.checkpoints[-1].state is State.IDLE_TIMEOUT
    assert desk.checkpointer.due_at(0) is None


@with_desk()
async def test_nothing_is_due_during_a_commit(desk: Desk) -> None:
    desk.kafka.away(10)
    desk.status.become(State.LIVE)
    receive(desk, 1)
    desk.checkpointer.advance(0)
    receive(desk, 1)
    assert desk.checkpointer.due_at(0) is None
    desk.checkpointer.advance(0)
    assert desk.term.committed is None
    receive(desk, 2)
    assert desk.checkpointer.uncommitted == 1 + 1
    await desk.committer.finish()
    desk.checkpointer.advance(0)
    assert desk.term.committed is not None
    assert desk.term.committed.counters.received == 1
    assert desk.checkpointer.uncommitted == 1


@with_desk()
async def test_a_checkpoint_never_goes_back(desk: Desk) -> None:
    receive(desk, 2)
    await desk.checkpointer.commit()
    desk.term.counters.published -= 1
    desk.term.counters.received -= 1
    with pytest.raises(AssertionError, match="go back"):
        await desk.checkpointer.commit()
    desk.term.counters.published += 1
    with pytest.raises(AssertionError, match="unaccounted"):
        await desk.checkpointer.commit()
    assert desk.kafka.transactions == 1


@with_desk(show_bets=True)
async def test_the_last_bets_are_those_that_are_committed(desk: Desk) -> None:
    last = desk.checkpointer.visibility.last_bets
    assert last is not None
    for count in (3, SHOWN_BETS + 5):
        receive(desk, count)
        sent, before = [record.value for record in desk.pipeline.batch.records], [*last]
        await asyncio.sleep(1)
        assert [*last] == before
        await desk.checkpointer.commit()
        await desk.checkpointer.commit()  # an empty one
        assert [*last] == sent[-SHOWN_BETS:]


def test_neither_dead_letters_nor_huge_bets_are_shown() -> None:
    visibility, batch = VisibilityDelays("bets", show_bets=True), Batch()
    large = b"c" * (LARGEST_SHOWN_BYTES + 1)
    values = [("bets", b"a"), ("deadletters", b"b"), ("bets", large), ("bets", b"d")]
    for topic, value in values:
        batch.add(Record(topic, b"key", value, 0))
    visibility.observe(batch, 0.0, None)
    assert visibility.last_bets == deque([b"a", b"d"])


async def written(desk: Desk) -> list[int]:
    """Commit, as the feed loop does, until nothing is left; return how many bets each transaction had."""
    bets, counts = desk.kafka.topics.bets.name, list[int]()
    before = len(desk.kafka.records(bets))
    while desk.checkpointer.uncommitted or desk.committer.busy:
        desk.checkpointer.advance(BACKLOG)
        await asyncio.sleep(0.05)
        after = len(desk.kafka.records(bets))
        counts += [after - before] if after > before else []
        before = after
    return counts


@with_desk()
async def test_what_is_more_than_one_transaction_is_committed_in_parts(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    first = desk.term.committed
    receive(desk, 2_000)
    desk.pipeline.handle([Received(b"?", EPOCH)], 0.0)
    counts = await written(desk)
    assert len(counts) > 2
    assert all(3 * a < b < 5 * a for a, b in pairwise(counts[:-1]))
    assert sum(counts) == 2_000
    total = 0
    *parts, last = desk.kafka.checkpoints[1:]
    for part, count in zip(parts, counts, strict=False):
        total += count
        assert first is not None
        assert (part.revision, part.newest) == (first.revision, first.newest)
        assert part.counters.balanced
        assert part.counters.published == total
    assert last.counters == desk.term.counters
    assert last.revision == desk.term.position.revision


@pytest.mark.parametrize("is_gap", [False, True])
def test_a_part_awaits_the_same_if_a_gap_follows_and_nothing_once_it_has_come(is_gap: bool) -> None:
    @with_desk()
    async def story(desk: Desk) -> None:
        awaited = UnprovenReplay(int(EPOCH) - 100, EPOCH, EPOCH - 1)
        desk.pipeline.replay.unproven = awaited
        await begun(desk, State.CATCHING_UP)
        desk.pipeline.replay.unproven = None
        receive(desk, 2_000)
        if is_gap:
            desk.pipeline.declare(FeedGap("f", int(EPOCH) - 50, EPOCH, Cause.MISSING_IN_REPLAY, EPOCH))
        await written(desk)
        first, *parts, last = desk.kafka.checkpoints
        assert first.unproven == awaited
        assert [part.unproven for part in parts] == [awaited if is_gap else None] * len(parts)
        assert len(parts) > 1
        assert last.unproven is None

    story()


@with_desk()
async def test_an_awaited_commit_that_is_too_much_goes_on_in_parts(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    desk.committer.writer.pace.bytes = 8 * 1024 * 1024
    desk.kafka.bytes_per_second = 20_000
    receive(desk, 2_000)
    await desk.checkpointer.commit()
    assert desk.term.committed is not None
    assert desk.term.committed.counters.published == 2_000
    assert len(desk.kafka.records("settlement.bets")) == 2_000


@with_desk(start="0")
async def test_a_part_of_the_first_replay_is_still_at_the_start(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    receive(desk, 2_000)
    desk.term.starting = False  # the connection is live
    await written(desk)
    *parts, last = desk.kafka.checkpoints[1:]
    assert parts
    assert all(part.starting for part in parts)
    assert not last.starting


@with_desk()
async def test_one_record_is_never_given_up(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    desk.kafka.bytes_per_second = 20_000
    desk.pipeline.handle([Received(b"x" * 700_000, EPOCH)], 0.0)
    await desk.checkpointer.commit()
    assert len(desk.kafka.records("settlement.deadletters")) == 1


@with_desk()
async def test_what_was_produced_is_not_parted_by_a_gap(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    receive(desk, 3)
    desk.pipeline.declare(FeedGap("f", int(EPOCH) - 50, EPOCH, Cause.MISSING_IN_REPLAY, EPOCH))
    receive(desk, 3)
    assert desk.pipeline.batch.split(1, least=7, last=desk.kafka.topics.gaps.name) is None


@with_desk()
async def test_a_part_has_neither_a_gap_nor_what_is_behind_it(desk: Desk) -> None:
    await begun(desk, State.CATCHING_UP)
    receive(desk, 10)
    desk.pipeline.declare(FeedGap("f", int(EPOCH) - 50, EPOCH, Cause.MISSING_IN_REPLAY, EPOCH))
    desk.committer.writer.pace.bytes = 3_000
    receive(desk, 20)
    await desk.checkpointer.commit()
    assert [len(desk.kafka.gaps), desk.kafka.checkpoints[-1].counters.published] == [1, 20]
    assert desk.kafka.transactions > 2
    await written(desk)
    assert desk.kafka.transactions < 7


@with_desk()
async def test_an_attempt_waits_until_all_parts_are_committed(desk: Desk) -> None:
    await desk.checkpointer.commit()
    receive(desk, 2_000)
    desk.term.limiter.attempt(desk.clock(), int(EPOCH) - 100)
    await desk.checkpointer.commit(check_generation=True)
    assert desk.term.committed == desk.kafka.checkpoints[-1]
    assert desk.kafka.checkpoints[-1].counters == desk.term.counters
    assert desk.checkpointer.uncommitted == 0
    assert desk.kafka.transactions > 3
