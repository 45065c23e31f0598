"""What the judge finds in whole histories: each is one that it once took for sound, or for broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.judge.messages import read
from tests.judge.model import Anomaly, Excuse
from tests.judge.partition import partition_of
from tests.unit.judge.topics import BROKEN, PARTITIONS, History, bet
from tests.unit.judge.trials import NOW

Story = Callable[[], History]
FOUND: dict[str, tuple[Story, dict[Anomaly, int]]] = {}
"""By name: a history, and how often which anomaly is found in it."""


def finds(*kinds: Anomaly, times: int = 1) -> Callable[[Story], Story]:
    """Have the judge find these, so many times each, in a history."""

    def add(story: Story) -> Story:
        FOUND[story.__name__] = story, dict.fromkeys(kinds, times)
        return story

    return add


def told(found: dict[str, tuple[Story, list[Anomaly]]]) -> None:
    """Have the judge find these once each, in histories of one kind."""
    FOUND.update({name: (story, dict.fromkeys(kinds, 1)) for name, (story, kinds) in found.items()})


def sound() -> History:
    """A bet that is received, committed and promised; the position is at 0."""
    it = History.begun()
    it.stores(it.publishes(5, bet("sound")), 6)
    it.promises(0, 6)
    return it


def taken_back(it: History, first_at: float, other_at: float, again_at: float) -> tuple[bytes, bytes]:
    """Publish a bet, another content of its version, and the first again. Returns the two contents."""
    first, other = bet("taken back", payout=1), bet("taken back", payout=2)
    for at, body in ((first_at, first), (other_at, other), (again_at, first)):
        it.publishes(at, body)
    return first, other


# Gaps.


@finds(Anomaly.UNDECLARED_GAP, Anomaly.GAP_IN_VAIN)
def a_gap_over_what_was_promised_before() -> History:
    """The position was 100 when the provider forgot; the gap begins at -10, over a bet that was lost at 5."""
    it = sound()
    it.publishes(5.5, bet("lost"))
    it.promises(100, 190)
    it.dials(2500, 1500)
    it.declares(-10, 1500, "TooOld", 2500)
    it.promises(1500, 2500)
    return it


@finds(Anomaly.UNDECLARED_GAP)
def a_gap_that_is_declared_a_day_late() -> History:
    """The checkpoint that skips it is committed long before."""
    it = sound()
    it.publishes(200, bet("lost"))
    it.dials(2500, 1500)
    it.promises(1500, 2500)
    it.promises(1600, 2600)
    it.declares(0, 1500, "TooOld", 2500, committed=90_200)
    it.promises(90_000, 90_200)
    return it


@finds()
def a_gap_that_is_declared_in_time() -> History:
    it = sound()
    it.publishes(200, bet("forgotten"))
    it.dials(2500, 1500)
    it.declares(0, 1500, "TooOld", 2500)
    it.promises(1500, 2500)
    return it


@finds(Anomaly.GAP_IN_VAIN, times=101)
def a_gap_over_what_the_last_replay_has_brought_that_goes_on_in_the_future() -> History:
    it = sound()
    it.forgets(100)
    it.dials(101, 100, revision=int(NOW))
    for n in range(100):
        it.publishes(101 + n / 10, bet(f"{n}"))
    it.declares(0, 172, "MissingInReplay", 170)
    it.promises(150, 170)
    return it


def seen_in_a_replay(start: float, asked: float = 0, ahead: float = 0.0) -> History:
    """What was published before 100 is forgotten; the gap goes on from `start` to 102, which is now."""
    it = sound()
    it.state["clock_steps"] = [{"after": NOW + 90, "ahead": ahead}]
    it.forgets(100)
    it.dials(101, 100, revision=int(NOW + asked))
    it.declares(start, 102, "MissingInReplay", 102)
    it.promises(50, 102)
    return it


told({"a gap up to now by a clock behind": (lambda: seen_in_a_replay(0, ahead=-1.5), [])})


@finds(Anomaly.GAP_IN_VAIN, Anomaly.POSITION_BEHIND)
def a_gap_from_where_a_replay_was_asked_for_later() -> History:
    it = seen_in_a_replay(-20)
    it.dials(150, -20)
    return it


@finds(Anomaly.GAP_IN_VAIN)
def a_message_that_is_missing_in_a_gap_up_to_the_future() -> History:
    """The provider had forgotten what was published before 5."""
    it = sound()
    it.forgets(5)
    it.promises(10_000, 10)
    it.publishes(20, bet("missing"))
    it.declares(0, 10_000, "PositionInFuture", 30)
    it.promises(0, 30)
    return it


@finds(Anomaly.GAP_IN_VAIN, times=2)
def the_same_gap_three_times() -> History:
    it = sound()
    it.dials(2500, 1500)
    for at in (2500, 2501, 2502):
        it.declares(0, 1500, "TooOld", at)
        it.promises(1500, at)
    return it


@finds(Anomaly.GAP_IN_VAIN, times=2)
def a_correction_taken_back_in_a_gap_that_is_too_long() -> History:
    """The first of its content does not stand for the last. Whatever is missing, the gap ends too late."""
    it = sound()
    first, other = taken_back(it, 6, 10, 2400)
    it.stores(first, 6.1)
    it.stores(other, 10.1)
    it.promises(0, 11)
    it.dials(2500, 1500)
    it.declares(100, 2450, "TooOld", 2500)
    it.promises(2450, 2500)
    return it


def taken_back_over_a_gap(forgets_at: float) -> History:
    """A and A again, both published; the provider forgets, and B was between them."""
    it = sound()
    first, other = bet("taken back", payout=1), bet("taken back", payout=2)
    it.stores(it.publishes(6, first), 6.1)
    it.promises(0, 7)
    it.publishes(50, other)
    it.forgets(forgets_at)
    it.dials(101, forgets_at, revision=int(NOW))
    it.declares(0, forgets_at + 1, "MissingInReplay", 101)
    it.promises(90, 101)
    it.stores(it.publishes(200, first), 200.1)
    it.promises(100, 201)
    return it


told(
    {
        "a content that comes back over a gap": (lambda: taken_back_over_a_gap(100), []),
        "one whose other content was published behind the gap": (
            lambda: taken_back_over_a_gap(40),
            [Anomaly.DUPLICATE, Anomaly.LOST_WRITE],
        ),
    }
)


def of_a_provider_that_forgot(again_at: float, revision: float) -> History:
    """A, B, and A again, which is all that the replay from this revision brings of them."""
    it = sound()
    first, other = taken_back(it, 10, 20, again_at)
    it.stores(first, 10.1)
    it.stores(other, 20.1)
    it.promises(revision, again_at - 15)
    it.forgets(again_at - 10)
    it.dials(again_at + 10, again_at - 10, revision=int(NOW + revision))
    it.declares(revision, again_at + 5, "MissingInReplay", again_at + 10.5)
    it.promises(again_at + 5, again_at + 10.5)
    return it


# A bridge cannot tell it from the first of its content, if it received that within its margins.
told(
    {
        "a correction taken back in a short replay": (lambda: of_a_provider_that_forgot(60, 30), []),
        "one taken back minutes after the first": (
            lambda: of_a_provider_that_forgot(460, 400),
            [Anomaly.GAP_IN_VAIN],
        ),
    }
)


# Checkpoints and transactions.


@finds(Anomaly.CHECKPOINT_AHEAD)
def a_bet_in_the_transaction_behind_its_promise() -> History:
    """Received before it, and committed with the next one."""
    it = sound()
    it.publishes(7, bet("late"))
    it.promises(500, 600)
    it.stores(bet("late"), 599, committed=601)
    it.promises(500, 601)
    it.promises(500, 700)
    return it


@finds(Anomaly.CHECKPOINT_AHEAD)
def a_correction_that_is_taken_back_after_its_promise() -> History:
    """The first of its content was in time."""
    it = sound()
    first, other = taken_back(it, 6, 10, 20)
    it.stores(first, 6.1)
    it.stores(other, 11)
    it.promises(15, 40)
    it.promises(500, 600)
    it.stores(first, 3000)
    it.promises(502, 3000)
    return it


@finds(Anomaly.CHECKPOINT_AHEAD, Anomaly.COUNTERS)
def a_bet_that_pretends_to_be_redriven() -> History:
    """No mark says so. By its header it was there in time."""
    it = sound()
    it.publishes(7, bet("late"))
    it.promises(500, 600)
    it.stores(bet("late"), 9000, headers={"received": f"{NOW + 700:.6f}"})
    it.promises(5000, 9000)
    return it


@finds(Anomaly.COUNTERS)
def corrections_that_are_none() -> History:
    it = sound()
    for version in (1, 2):
        it.stores(it.publishes(6 + version, bet("settled again", version)), 7 + version)
    it.counters["corrections"] = 1
    it.promises(0, 10)
    return it


def torn(written: float = 6.5, *, fenced: bool = True, count: int = 1, may_tear: bool = True) -> History:
    """A bet is counted by the checkpoint of 7, and was discarded."""
    it = sound()
    it.case = replace(it.case, may_tear=may_tear)
    it.discards(written, fenced=fenced)
    it.counters["published"] += count - 1
    it.promises(0, 7)
    return it


told(
    {
        "a transaction that Kafka has torn": (torn, []),
        "although no broker was away": (lambda: torn(may_tear=False), [Anomaly.COUNTERS]),
        "one that the bridge has aborted and counted": (lambda: torn(fenced=False), [Anomaly.COUNTERS]),
        "one that was open and is counted": (lambda: torn(7.5), [Anomaly.COUNTERS]),
        "more than Kafka has torn": (lambda: torn(count=2), [Anomaly.COUNTERS]),
    }
)


@finds(Anomaly.COUNTERS)
def a_mark_without_a_bet() -> History:
    it = sound()
    it.publishes(7, BROKEN)
    it.buries(BROKEN, 8)
    it.promises(0, 8)
    it.marks(9, "published")
    it.counters["duplicates"] += 1
    it.promises(0, 9)
    return it


@finds(Anomaly.ATTEMPT_NOT_COMMITTED)
def an_attempt_behind_the_last_checkpoint() -> History:
    it = sound()
    it.dials(50, 0, entered=False)
    return it


def dialled_early(**changes: Any) -> History:
    """An attempt at 50; the checkpoint with it was written half a second later."""
    it = sound()
    it.dials(50, 0, entered=False)
    it.enters(49.9, int(NOW))
    it.promises(0, **{"updated": 50.5, **changes})
    it.promises(0, 60)
    return it


# A commit has taken place before its markers are written.
told(
    {
        "an attempt that is committed after it was made": (dialled_early, [Anomaly.ATTEMPT_NOT_COMMITTED]),
        "one whose commit is marked after it was made": (
            lambda: dialled_early(updated=49.95, committed=50.5),
            [],
        ),
    }
)


@finds()
def two_attempts_in_a_moment() -> History:
    """The first was refused."""
    it = sound()
    it.dials(50, None)
    it.promises(0, 50.02)
    it.dials(50.065, 0)
    it.promises(0, 60)
    return it


@finds(Anomaly.ATTEMPT_NOT_COMMITTED)
def an_attempt_with_the_entry_of_the_last_one() -> History:
    it = sound()
    it.dials(50, 0)
    it.dials(60, 0, entered=False)
    it.promises(0, 70)
    return it


@finds()
def two_attempts_of_which_the_second_is_entered_soon() -> History:
    """The first entry, not the newest one, is for the first attempt."""
    it = sound()
    it.dials(50, 0)
    it.enters(50.09, int(NOW))
    it.promises(0, 50.15)
    it.dials(50.2, 0, entered=False)
    it.promises(0, 60)
    return it


@finds(Anomaly.ATTEMPT_NOT_COMMITTED)
def an_attempt_in_the_place_of_one_that_was_not_made() -> History:
    """Whoever had entered that one died before it; it was to ask for something else."""
    it = sound()
    it.enters(49, int(NOW) - 100)
    it.promises(0, 49)
    it.dials(50, 0, entered=False)
    it.promises(0, 60)
    return it


# Where the position is.


def ended(until: float, **state: Any) -> History:
    """The stream ends; the position is at 0, and may be 150 s behind."""
    it = sound()
    it.case = replace(it.case, position_margin=150.0)
    it.state |= {"ended": NOW + until, **state}
    return it


def standing(state: str = "Live", every: float = 1.0, until: float = 182.0, moves: float = 0.0) -> History:
    """The position stands at 0 for three minutes, unless it moves, and is right in the end."""
    it, at = ended(until), 10.0
    while (at := at + every) < until:
        it.promises(moves * at, at, state=state)
    it.promises(until - 90, until, state=state)
    return it


def asked_for_more(**case: Any) -> History:
    """An attempt asks for a replay of 50 s that was not needed."""
    it = sound()
    it.case = replace(it.case, **case)
    it.promises(100, 150)
    it.dials(200, 50)
    it.promises(100, 210)
    return it


STEP = [{"after": NOW + 20, "ahead": 20.0}]
told(
    {
        "a position that never moves": (lambda: ended(151), [Anomaly.POSITION_BEHIND]),
        "one that is behind by its margins": (lambda: ended(150), []),
        "one behind by a step of the clock": (
            lambda: ended(140, clock_steps=STEP),
            [Anomaly.POSITION_BEHIND],
        ),
        "one that stands while the bridge is live": (standing, [Anomaly.POSITION_BEHIND]),
        "one that stands in a replay": (lambda: standing("CatchingUp"), []),
        "one that stands while the bridge is stopped": (lambda: standing(every=20.0, until=210.0), []),
        "one that moves while the bridge is live": (lambda: standing(moves=0.4), []),
        "one that stands for less than its margins": (lambda: standing(until=160.0), []),
        "an attempt that asks for more than the position": (asked_for_more, [Anomaly.POSITION_BEHIND]),
        "one that does for an operator": (lambda: asked_for_more(has_operator=True), []),
    }
)


@finds()
def an_attempt_whose_checkpoints_were_compacted_away() -> History:
    it = sound()
    for at in range(100, 4000, 300):
        it.dials(at, at - 90)
        it.promises(at - 90, at + 10)
    it.ledger = it.ledger[-6:]  # of half an hour
    it.promises(3900, 4100)
    it.compacts({0})
    return it


# Times of receipt.


@finds(Anomaly.WRONG_FIELD)
def a_bet_received_before_it_was_published() -> History:
    """A new owner reads back by these times."""
    it = sound()
    it.stores(it.publishes(7, bet("of 1970")), -NOW, committed=8)
    it.promises(0, 8)
    return it


@finds(Anomaly.DUPLICATE)
def a_repetition_in_the_place_of_what_is_published_later() -> History:
    """A, B and A again, of which the last A is lost; the first one was published twice."""
    it = sound()
    first, other = taken_back(it, 10, 20, 300)
    for received, body in ((10.1, first), (20.1, other), (50, first)):
        it.stores(body, received)
        it.promises(0, received)
    it.promises(300, 400)
    return it


@finds(Anomaly.LOST_WRITE, times=100)
def every_third_of_hundreds_of_versions_lost() -> History:
    """Too many to try each explanation."""
    it = sound()
    for n in range(301):
        body = it.publishes(10 + n, bet("of many versions", version=n + 1))
        if n % 3 or n == 300:
            it.stores(body, 10.1 + n)
    it.promises(0, 400)
    return it


# Dead letters.


def buried(**headers: str) -> History:
    it = sound()
    it.publishes(8, BROKEN)
    it.buries(BROKEN, 9, headers=headers)
    it.promises(0, 9)
    return it


told(
    {
        "a sound dead letter": (buried, []),
        "one without a reason": (lambda: buried(reason=""), [Anomaly.DEAD_LETTER_ALTERED]),
        "one without a revision": (lambda: buried(revision=""), [Anomaly.DEAD_LETTER_ALTERED]),
        "one received at another time": (lambda: buried(received="0"), [Anomaly.DEAD_LETTER_ALTERED]),
        "one that is not too large": (lambda: buried(kind="oversized"), [Anomaly.DEAD_LETTER_ALTERED]),
        "one whose replay does not bring it back": (
            lambda: buried(revision=f"{NOW + 1e6:.0f}"),
            [Anomaly.DEAD_LETTER_ALTERED],
        ),
    }
)


@finds(Anomaly.DEAD_LETTER_ALTERED, Anomaly.DUPLICATE)
def a_dead_letter_for_each_of_two_feeds() -> History:
    it = buried()
    it.buries(BROKEN, 10, headers={"feed": "another"})
    it.promises(0, 10)
    return it


@finds(Anomaly.DEAD_LETTER_ALTERED)
def a_dead_letter_in_another_partition() -> History:
    it = sound()
    it.publishes(8, BROKEN)
    it.buries(BROKEN, 9, partition=0)  # it belongs into 2
    it.promises(0, 9)
    return it


# What the provider is asked for, and by whom.


@finds(Anomaly.LOST_WRITE, times=60)
def a_start_that_is_ignored() -> History:
    """The settings say a minute; the first attempt asks for now."""
    it = History(start_age=60.0)
    for n in range(60):
        it.publishes(-59.5 + n, bet(f"{n}"))
    it.dials(0, 0)
    it.stores(it.publishes(1, bet("sound")), 2)
    it.promises(0, 100)
    return it


@finds(Anomaly.LOST_WRITE)
def a_first_replay_of_everything_that_is_dropped() -> History:
    """It had not asked for it, and was sent it."""
    it = History()
    it.publishes(-400, bet("early"))
    it.dials(0, -500, revision=None)
    it.promises(-450, 1)
    it.promises(0, 100)
    return it


@finds(Anomaly.SECOND_CONNECTION, times=2)
def two_bridges_that_throw_each_other_out() -> History:
    """That the first was stopped explains one take-over."""
    it = History.begun(excused=(Excuse(NOW + 100, NOW + 117),))
    for at in (108, 112, 116):
        it.dials(at, at - 90, replaced=True)
    it.promises(0, 200)
    return it


@pytest.mark.parametrize("name", FOUND)
def test_it_finds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, expected = FOUND[name]
    assert story().found(tmp_path, monkeypatch) == expected


def test_bets_that_were_committed_soon_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = sound()
    it.stores(it.publishes(7, bet("late")), 8, committed=20)
    it.stores(it.publishes(7, bet("redriven")), 8, headers={"received": f"{NOW + 8:.6f}"})
    it.promises(0, 20)
    assert it.judged(tmp_path, monkeypatch).figures["prompt"] == 1


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_transactions_of_many_partitions(
    seed: int, compacted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert transactions(seed, compacted=compacted).found(tmp_path, monkeypatch) == {}
    late = transactions(seed, compacted=compacted, late=True).found(tmp_path, monkeypatch)
    assert Anomaly.CHECKPOINT_AHEAD in late


def transactions(seed: int, *, compacted: bool, late: bool = False) -> History:
    """A feed of ten bets a second, with a gap in the middle. A transaction ends in one partition by one."""
    random, it = Random(seed), History.begun(remembers=200.0)
    messages = [(-10 + n / 10, it.publishes(-10 + n / 10, bet(f"{n}"))) for n in range(1200)]
    now, position, place, left = 0.0, -10.0, 0, list[tuple[bytes, float]]()
    gap: tuple[float, float] | None = None
    reconnected = False
    while place < len(messages) or left:
        now += random.choice([0.02, 0.3, 1.0])
        if not reconnected and now > 60:
            now, reconnected = now + 250, True
            edge = int(now - 195)
            it.dials(now - 0.02, edge)
            gap, position = (int(position), edge), edge
            place = next((n for n, (at, _) in enumerate(messages) if at >= edge), len(messages))
        fresh = list[tuple[bytes, float]]()
        while place < len(messages) and messages[place][0] + 0.05 <= now and len(fresh) < 100:
            at, body = messages[place]
            fresh.append((body, max(at + 0.05, now - 0.01)))
            position, place = max(position, at - 1), place + 1
        due, left = (left, fresh) if late and 10 < now < 50 else (left + fresh, [])
        spread = random.choice([0.0, 0.005, 3.0])
        markers = [round(now + 0.01 + random.random() * spread, 3) for _ in range(PARTITIONS["bets"] + 2)]
        if gap is not None:
            it.declares(*gap, "TooOld", now, committed=markers[-2])
            gap = None
        for body, received in due:
            partition = partition_of(read(body).bet["betId"].encode(), PARTITIONS["bets"])
            it.stores(body, received, committed=markers[partition])
        it.promises(position, now, committed=markers[-1])
        now = max(markers) + 0.001
    if compacted:
        count = len(it.records["checkpoints", 0])
        it.compacts({n for n in range(count) if random.random() < 0.3})
    return it


def test_a_truth_that_ends_early_is_no_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History.begun()
    history.is_cut_off = True
    with pytest.raises(OSError, match="1 messages fewer"):
        history.judged(tmp_path, monkeypatch)
