"""What the status page says in each state."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.feed.rate_limits import LimitUsage
from bridge.kafka.open_transactions import OpenTransaction, RecordPlace
from bridge.observability.status import StatusSnapshot
from bridge.observability.view import MOST_CAUSES, WIDTH, ShownBet, Stretch, View, shown
from bridge.ownership.group import Group
from bridge.records.checkpoint import State
from bridge.records.dead_letter import DeadLetterCause
from bridge.records.gap import Cause, FeedGap
from tests.shown import (
    BETS,
    FEED,
    GAP,
    KAFKA_DOWN,
    LIVE,
    ME,
    NOW,
    OTHER,
    SHOWING_BETS,
    STANDBY,
    STATES,
    WAITING_FOR_LIMIT,
    show,
)
from tests.snapshots import replace

DAY = 86_400
HANGING = OpenTransaction(RecordPlace("settlement.bets", 3, 7), NOW - 60, 60)


@pytest.mark.parametrize(
    ("name", "tone", "sentence", "todo"),
    [
        ("live", "good", "Live", "Nothing."),
        ("catching-up", "busy", "Catching up", ""),
        ("quiet", "good", "no bets", "Ask the provider"),
        ("waiting-for-limit", "busy", "the provider's limits", "a restart would not shorten the wait"),
        ("gap", "good", "Live", ""),
        ("standby", "good", "Standing by", "Nothing."),
        ("kafka-down", "bad", "nothing is written", "restore it"),
        ("unownable", "bad", "in vain", "bridge topics plan"),
        ("unconverted", "bad", "Nothing can be converted", "bridge deadletters list"),
        ("loop-dead", "bad", "event loop is silent", "restart"),
    ],
)
def test_each_state_is_a_sentence_and_what_to_do(name: str, tone: str, sentence: str, todo: str) -> None:
    view = View(STATES[name], NOW, show)
    assert view.headline.tone == tone
    assert sentence in view.headline.sentence
    assert todo in view.todo
    assert bool(view.todo) == bool(todo)


@pytest.mark.parametrize("state", [*State, None])
def test_no_state_is_without_words(state: State | None) -> None:
    view = View(replace(LIVE, state=state, started_at=NOW), NOW, show)
    assert view.headline.sentence.endswith(".")
    assert view.state == ("Starting" if state is None else state.value)
    assert view.headline.todo or view.headline.tone != "bad"


STUCK = replace(LIVE, committed_at=NOW - 3_600, since=NOW - 3_600)


@pytest.mark.parametrize(
    ("status", "state", "tone", "reason", "since"),
    [
        (
            WAITING_FOR_LIMIT,
            "WaitingForLimit",
            "busy",
            "5 proper connection attempts in 5m",
            WAITING_FOR_LIMIT.since,
        ),
        (
            STATES["loop-dead"],
            "Silent",
            "bad",
            "it gives no heartbeat; everything below is out of date",
            NOW - 95,
        ),
        (STUCK, "Live", "bad", "no commit for 1h", NOW - 3_600),
    ],
    ids=["waiting", "silent", "stuck"],
)
def test_a_state_has_its_reason_and_its_beginning(
    status: StatusSnapshot, state: str, tone: str, reason: str, since: float
) -> None:
    view = View(status, NOW, show)
    assert (view.state, view.headline.tone, view.reason, view.since) == (state, tone, reason, since)


def test_a_gap_and_a_hanging_transaction_are_noticed_in_any_state() -> None:
    assert View(LIVE, NOW, show).notices == []
    view = View(replace(GAP, open_transactions=(HANGING, HANGING._replace(age=1))), NOW, show)
    assert len(view.notices) == 2
    assert view.notices[0].startswith("1 gap declared")
    assert "settlement.bets partition 3" in view.notices[1]
    assert view.todo == ""
    old = replace(GAP, declared=(replace(GAP.known.declared[0], detected_at=NOW - 3.1 * DAY),))
    assert View(old, NOW, show).notices == []  # as it is on the line no more


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"revision": int(NOW - 2.6 * DAY)}, "Unless the position moves, a gap opens in 9h 35m"),
        ({"revision": int(NOW - 3.1 * DAY)}, "the next connection declares a gap"),
        (
            {"transactions_looked_at": NOW - 400},
            "look for open transactions since 2026-09-21T14:06",
        ),
        ({"transactions_looked_at": None}, "look for open transactions since 2026-09-20T"),
        ({"dead_letters": {DeadLetterCause("data.betId", "is null"): 1}}, "1 message could not be converted"),
    ],
)
def test_no_state_hides_what_somebody_has_to_act_on(changes: dict[str, Any], words: str) -> None:
    view = View(replace(LIVE, **changes), NOW, show)
    assert (view.todo, [words in notice for notice in view.notices]) == ("", [True])


@pytest.mark.parametrize(
    ("age", "place"), [(0, WIDTH), (1.5 * DAY, WIDTH / 2), (3 * DAY, 0), (9 * DAY, 0), (-60, WIDTH)]
)
def test_the_position_is_on_the_line_by_its_age(age: float, place: float) -> None:
    view = View(replace(LIVE, skew=60.0, revision=int(NOW + 60 - age)), NOW, show)
    assert view.line.position == pytest.approx(place, abs=0.1)
    assert view.left == pytest.approx(3 * DAY - age, abs=1)


@pytest.mark.parametrize(
    ("start", "end", "stretch"),
    [
        (2 * DAY, 1 * DAY, Stretch(333.3, 333.4)),
        (9 * DAY, 2 * DAY, Stretch(0, 333.3)),
        (DAY, DAY - 1, Stretch(666.7, 4)),
        (1, 0, Stretch(996, 4)),
    ],
)
def test_a_gap_is_on_the_line_and_never_too_small_to_see(start: float, end: float, stretch: Stretch) -> None:
    gap = FeedGap(FEED, NOW - start, NOW - end, Cause.TOO_OLD, NOW)
    [found] = View(replace(LIVE, skew=None, gaps=1, declared=(gap,)), NOW, show).line.gaps
    assert found == pytest.approx(stretch, abs=0.2)
    assert View(GAP, NOW, show).line.words == "The last 3d: the position at 100%, 1 gap"
    assert View(STANDBY, NOW, show).line.words == "The last 3d: the position is not known"


def test_gauges_show_the_usage_and_when_there_is_room_again() -> None:
    initial, proper, _, bucket = View(WAITING_FOR_LIMIT, NOW, show).gauges
    assert (initial.limit.words, initial.full, initial.free) == ("0 of 5", False, "")
    assert (proper.limit.words, proper.full, proper.free) == ("5 of 5", True, "free in 3m 34s")
    assert bucket.limit.words == "14m of 1h"
    by_now = replace(LIVE, usage=(LimitUsage("proper", 5, 5, NOW - 0.1),))
    assert View(by_now, NOW, show).gauges[0].free == ""


@pytest.mark.parametrize(
    ("status", "words"),
    [(LIVE, "allowed now"), (WAITING_FOR_LIMIT, "allowed in 3m 34s"), (STANDBY, "Not known to this process")],
)
def test_the_next_connection_attempt_is_told(status: StatusSnapshot, words: str) -> None:
    assert words in View(status, NOW, show).attempt


def test_the_most_frequent_causes_of_dead_letters_come_first() -> None:
    causes = {DeadLetterCause("data.betId", f"reason {number}"): number for number in range(1, 50)}
    view = View(replace(LIVE, dead_letters=causes), NOW, show)
    assert [count for _, count in view.causes] == list(range(49, 49 - MOST_CAUSES, -1))
    assert view.more_causes == 49 - MOST_CAUSES


def test_owner_and_standbys_have_names() -> None:
    members = View(LIVE, NOW, show).members
    assert [(m.name, m.role) for m in members] == [(ME, "owns the feed, this process"), (OTHER, "stands by")]
    members = View(STANDBY, NOW, show).members
    assert [m.role for m in members] == ["owns the feed", "stands by, this process"]


@pytest.mark.parametrize("status", [KAFKA_DOWN, replace(LIVE, group=Group())])
def test_members_that_kafka_does_not_show_are_unknown(status: StatusSnapshot) -> None:
    assert View(status, NOW, show).members == []


def test_bets_are_shown_only_where_they_may_be() -> None:
    assert View(LIVE, NOW, show).bets is None
    assert View(replace(LIVE, last_bets=()), NOW, show).bets == []
    bets = View(SHOWING_BETS, NOW, show).bets
    assert bets is not None
    assert [bet.result for bet in bets] == ["CashOut", "Lose", "Win"]
    assert bets[-1] == ShownBet(
        settled_at=NOW - 3.25,
        bet_id="7f9c2ba4-e88f-4b0d-9a41-2f0c5d3e6a18",
        version=1,
        result="Win",
        stake="10.00 EUR",
        payout="23.50",
        events="Northgate Rovers – Harbour City",
    )


@pytest.mark.parametrize(
    ("names", "events"),
    [
        (["a", "b", "a"], "a, b"),
        (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
        ([None, ""], ""),
        ([], ""),
    ],
)
def test_a_bet_names_the_first_of_its_events(names: list[str | None], events: str) -> None:
    items = [{"event": {"name": name}} for name in names] + [{"event": None}]
    assert shown(BETS[b"win"] | {"selections": items}).events == events
    assert shown(BETS[b"win"] | {"selections": None, "amount": None}).stake == "—"
