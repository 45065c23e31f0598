"""What the judge finds in whole histories: each is one that it once took for sound, or for broken."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.judge.model import Anomaly, Excuse
from tests.unit.judge.topics import BROKEN, History, bet
from tests.unit.judge.trials import NOW

BODIES = {"bet": bet("other"), "A": bet("again"), "B": bet("again", payout=2), "broken": BROKEN}
"""B has another content of the version of A."""
IN_VAIN, GAP, LOST = Anomaly.GAP_IN_VAIN, Anomaly.UNDECLARED_GAP, Anomaly.LOST_WRITE
AHEAD, BEHIND, COUNTERS = Anomaly.CHECKPOINT_AHEAD, Anomaly.POSITION_BEHIND, Anomaly.COUNTERS
UNCOMMITTED, ALTERED = Anomaly.ATTEMPT_NOT_COMMITTED, Anomaly.DEAD_LETTER_ALTERED


def tale(text: str = "", state: dict[str, Any] | None = None, **case: Any) -> History:
    """A bet that is received, committed and promised, with the position at 0, and then what the text says.

    It has calls of `History`, such as `dials 50 0 entered=no, stores bet 6`. A revision is as all times.
    """
    it = History.begun(**case)
    it.state |= state or {}
    it.stores(it.publishes(5, bet("sound")), 6)
    it.promises(0, 6)
    for event in filter(None, text.split(", ")):
        call, *words = event.split()
        given = [_argument(word) for word in words if "=" not in word]
        getattr(it, call)(*given, **dict(_named(*word.split("=")) for word in words if "=" in word))
    return it


def _argument(word: str) -> Any:
    if word in BODIES:
        return BODIES[word]
    return None if word == "none" else float(word) if word.strip("-.").replace(".", "").isdecimal() else word


def _named(name: str, value: str) -> tuple[str, Any]:
    match name:
        case "revision":
            return name, int(NOW + float(value))
        case "partition":
            return name, int(value)
        case "redriven":
            return "headers", {"received": f"{NOW + float(value):.6f}"}
    return name, value == "yes"


TALES: dict[str, tuple[str, dict[Anomaly, int]]] = {
    # The position was 100 when the provider forgot; the gap begins at -10, over a bet that was lost at 5.
    "a gap over what was promised before": (
        "publishes 5.5 bet, promises 100 190, dials 2500 1500, declares -10 1500 TooOld 2500, "
        "promises 1500 2500",
        {GAP: 1, IN_VAIN: 1},
    ),
    # The checkpoint that skips it is committed long before.
    "a gap that is declared a day late": (
        "publishes 200 bet, dials 2500 1500, promises 1500 2500, promises 1600 2600, "
        "declares 0 1500 TooOld 2500 90200, promises 90000 90200",
        {GAP: 1},
    ),
    "a gap that is declared in time": (
        "publishes 200 bet, dials 2500 1500, declares 0 1500 TooOld 2500, promises 1500 2500",
        {},
    ),
    # The provider had forgotten what was published before 5.
    "a message that is missing in a gap up to the future": (
        "forgets 5, promises 10000 10, publishes 20 bet, declares 0 10000 PositionInFuture 30, promises 0 30",
        {IN_VAIN: 1},
    ),
    "the same gap three times": (
        "dials 2500 1500, declares 0 1500 TooOld 2500, promises 1500 2500, declares 0 1500 TooOld 2501, "
        "promises 1500 2501, declares 0 1500 TooOld 2502, promises 1500 2502",
        {IN_VAIN: 2},
    ),
    # The first of its content does not stand for the last. Whatever is missing, the gap ends too late.
    "a correction taken back in a gap that is too long": (
        "publishes 6 A, publishes 10 B, publishes 2400 A, stores A 6.1, stores B 10.1, promises 0 11, "
        "dials 2500 1500, declares 100 2450 TooOld 2500, promises 2450 2500",
        {IN_VAIN: 2},
    ),
    "a content that comes back over a gap, with the other one in it": (
        "publishes 6 A, stores A 6.1, promises 0 7, publishes 50 B, forgets 100, "
        "dials 101 100 revision=0, declares 0 101 MissingInReplay 101, promises 90 101, publishes 200 A, "
        "stores A 200.1, promises 100 201",
        {},
    ),
    "one whose other content was published behind the gap": (
        "publishes 6 A, stores A 6.1, promises 0 7, publishes 50 B, forgets 40, "
        "dials 101 40 revision=0, declares 0 41 MissingInReplay 101, promises 90 101, publishes 200 A, "
        "stores A 200.1, promises 100 201",
        {Anomaly.DUPLICATE: 1, LOST: 1},
    ),
    # A bridge cannot tell it from the first of its content, which it received within its margins.
    "a correction taken back in a short replay": (
        "publishes 10 A, publishes 20 B, publishes 60 A, stores A 10.1, stores B 20.1, promises 30 45, "
        "forgets 50, dials 70 50 revision=30, declares 30 65 MissingInReplay 70.5, promises 65 70.5",
        {},
    ),
    "one taken back minutes after the first": (
        "publishes 10 A, publishes 20 B, publishes 460 A, stores A 10.1, stores B 20.1, promises 400 445, "
        "forgets 450, dials 470 450 revision=400, declares 400 465 MissingInReplay 470.5, promises 465 470.5",
        {IN_VAIN: 1},
    ),
    # The first of its content was in time.
    "a correction that is taken back after its promise": (
        "publishes 6 A, publishes 10 B, publishes 20 A, stores A 6.1, stores B 11, promises 15 40, "
        "promises 500 600, stores A 3000, promises 502 3000",
        {AHEAD: 1},
    ),
    # No mark says so. By its header it was there in time.
    "a bet that pretends to be redriven": (
        "publishes 7 bet, promises 500 600, stores bet 9000 redriven=700, promises 5000 9000",
        {AHEAD: 1, COUNTERS: 1},
    ),
    "a mark without a bet": (
        "publishes 7 broken, buries broken 8, promises 0 8, marks 9 published, counts duplicates 1, "
        "promises 0 9",
        {COUNTERS: 1},
    ),
    "corrections that are none": (
        "publishes 7 bet, stores bet 8, counts corrections 1, promises 0 10",
        {COUNTERS: 1},
    ),
    "an attempt behind the last checkpoint": ("dials 50 0 entered=no", {UNCOMMITTED: 1}),
    "an attempt that is committed after it was made": (
        "dials 50 0 entered=no, enters 49.9 revision=0, promises 0 50.5, promises 0 60",
        {UNCOMMITTED: 1},
    ),
    # A commit has taken place before its markers are written.
    "one whose commit is marked after it was made": (
        "dials 50 0 entered=no, enters 49.9 revision=0, promises 0 49.95 50.5, promises 0 60",
        {},
    ),
    # The first was refused.
    "two attempts in a moment": ("dials 50 none, promises 0 50.02, dials 50.065 0, promises 0 60", {}),
    "an attempt with the entry of the last one": (
        "dials 50 0, dials 60 0 entered=no, promises 0 70",
        {UNCOMMITTED: 1},
    ),
    # The first entry, not the newest one, is for the first attempt.
    "two attempts of which the second is entered soon": (
        "dials 50 0, enters 50.09 revision=0, promises 0 50.15, dials 50.2 0 entered=no, promises 0 60",
        {},
    ),
    # Whoever had entered that one died before it; it was to ask for something else.
    "an attempt in the place of one that was not made": (
        "enters 49 revision=-100, promises 0 49, dials 50 0 entered=no, promises 0 60",
        {UNCOMMITTED: 1},
    ),
    "an attempt that asks for more than the position": (
        "promises 100 150, dials 200 50, promises 100 210",
        {BEHIND: 1},
    ),
    # A new owner reads back by these times.
    "a bet received before it was published": (
        f"publishes 7 bet, stores bet {-NOW} 8, promises 0 8",
        {Anomaly.WRONG_FIELD: 1},
    ),
    # A, B and A again, of which the last A is lost; the first one was published twice.
    "a repetition in the place of what is published later": (
        "publishes 10 A, publishes 20 B, publishes 300 A, stores A 10.1, promises 0 10.1, stores B 20.1, "
        "promises 0 20.1, stores A 50, promises 0 50, promises 300 400",
        {Anomaly.DUPLICATE: 1},
    ),
    "a bet in another partition than 4": (
        "publishes 7 bet, stores bet 8 partition=0, promises 0 8",
        {Anomaly.WRONG_FIELD: 1},
    ),
    "a dead letter in another partition than 2": (
        "publishes 8 broken, buries broken 9 partition=0, promises 0 9",
        {ALTERED: 1},
    ),
}
"""By name: what the text of `tale` is, and how often which anomaly is found."""


def in_a_replay(*bets: float, start: float, end: float, now: float, ahead: float = 0.0) -> History:
    """What was published before 100 is forgotten; a gap from `start` to `end` is seen in a replay."""
    it = tale("forgets 100, dials 101 100 revision=0", {"clock_steps": [{"after": NOW + 90, "ahead": ahead}]})
    for at in bets:
        it.publishes(at, bet(f"{at}"))
    it.declares(start, end, "MissingInReplay", now)
    it.promises(50, now)
    return it


def torn(written: float = 6.5, *, fenced: bool = True, count: int = 1, may_tear: bool = True) -> History:
    """A bet is counted by the checkpoint of 7, and was discarded."""
    it = tale(may_tear=may_tear)
    it.discards(written, fenced=fenced)
    it.counts("published", count - 1)
    it.promises(0, 7)
    return it


def ended(until: float, **state: Any) -> History:
    """The stream ends; the position is at 0, and may be 150 s behind."""
    return tale("", {"ended": NOW + until, **state}, position_margin=150.0)


def standing(state: str = "Live", every: float = 1.0, until: float = 182.0, moves: float = 0.0) -> History:
    """The position stands at 0 for three minutes, unless it moves, and is right in the end."""
    it, at = ended(until), 10.0
    while (at := at + every) < until:
        it.promises(moves * at, at, state=state)
    it.promises(until - 90, until, state=state)
    return it


def compacted() -> History:
    """Attempts whose checkpoints were compacted away."""
    it = tale()
    for at in range(100, 4000, 300):
        it.dials(at, at - 90)
        it.promises(at - 90, at + 10)
    it.ledger = it.ledger[-6:]  # of half an hour
    it.promises(3900, 4100)
    it.compacts({0})
    return it


def buried(feeds: int = 1, **headers: str) -> History:
    """A dead letter, for each of so many feeds."""
    it = tale()
    it.publishes(8, BROKEN)
    it.buries(BROKEN, 9, headers=headers)
    for n in range(1, feeds):
        it.buries(BROKEN, 9 + n, headers={"feed": "another"})
    it.promises(0, 10)
    return it


def unreadable() -> History:
    """A record of the bets has no value."""
    it = tale()
    it._put("bets", b"x", None, 7, None)
    return it


def first_replay_dropped() -> History:
    """It had not asked for everything, and was sent it."""
    it = History()
    it.publishes(-400, bet("early"))
    it.dials(0, -500, revision=None)
    it.promises(-450, 1)
    it.promises(0, 100)
    return it


def thrown_out() -> History:
    """Two bridges throw each other out, and break a limit. That one was stopped explains one take-over."""
    it = History.begun(excused=(Excuse(NOW + 100, NOW + 117),))
    it.breaches.append({"at": NOW + 116, "rule": "bucket", "reason": "why", "revision": 5, "holder": ""})
    for at in (108, 112, 116):
        it.dials(at, at - 90, replaced=True)
    it.promises(0, 200)
    return it


STEP = [{"after": NOW + 20, "ahead": 20.0}]
FOUND: dict[str, tuple[Callable[[], History], dict[Anomaly, int]]] = {
    **{name: (partial(tale, text), kinds) for name, (text, kinds) in TALES.items()},
    "a gap over what the last replay has brought, and over what is to come": (
        lambda: in_a_replay(*(101 + n / 10 for n in range(100)), start=0, end=172, now=170),
        {IN_VAIN: 101},
    ),
    "a gap up to now by a clock behind": (lambda: in_a_replay(start=0, end=102, now=102, ahead=-1.5), {}),
    "a transaction that Kafka has torn": (torn, {}),
    "although no broker was away": (lambda: torn(may_tear=False), {COUNTERS: 1}),
    "one that the bridge has aborted and counted": (lambda: torn(fenced=False), {COUNTERS: 1}),
    "one that was open and is counted": (lambda: torn(7.5), {COUNTERS: 1}),
    "more than Kafka has torn": (lambda: torn(count=2), {COUNTERS: 1}),
    "a position that never moves": (lambda: ended(151), {BEHIND: 1}),
    "one that is behind by its margins": (lambda: ended(150), {}),
    "one behind by a step of the clock": (lambda: ended(140, clock_steps=STEP), {BEHIND: 1}),
    "one that stands while the bridge is live": (standing, {BEHIND: 1}),
    "one that stands in a replay": (lambda: standing("CatchingUp"), {}),
    "one that stands while the bridge is stopped": (lambda: standing(every=20.0, until=210.0), {}),
    "one that moves while the bridge is live": (lambda: standing(moves=0.4), {}),
    "one that stands for less than its margins": (lambda: standing(until=160.0), {}),
    "an attempt that asks for more for an operator": (
        lambda: tale("promises 100 150, dials 200 50", has_operator=True),
        {},
    ),
    "attempts whose checkpoints were compacted away": (compacted, {}),
    "a sound dead letter": (buried, {}),
    "one without a reason": (lambda: buried(reason=""), {ALTERED: 1}),
    "one without a revision": (lambda: buried(revision=""), {ALTERED: 1}),
    "one received at another time": (lambda: buried(received="0"), {ALTERED: 1}),
    "one that is not too large": (lambda: buried(kind="oversized"), {ALTERED: 1}),
    "one whose replay does not bring it back": (lambda: buried(revision=f"{NOW + 1e6:.0f}"), {ALTERED: 1}),
    "one for each of two feeds": (lambda: buried(2), {ALTERED: 1, Anomaly.DUPLICATE: 1}),
    "a first replay of everything that is dropped": (first_replay_dropped, {LOST: 1}),
    "two bridges that throw each other out": (
        thrown_out,
        {Anomaly.SECOND_CONNECTION: 2, Anomaly.LIMIT_BREACHED: 1},
    ),
    "a record that nobody can read": (unreadable, {Anomaly.ABORTED_READ: 1}),
}
"""By name: a history, and how often which anomaly is found in it."""


@pytest.mark.parametrize("name", FOUND)
def test_it_finds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story, expected = FOUND[name]
    assert story().found(tmp_path, monkeypatch) == expected


def test_bets_that_were_committed_soon_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = tale("publishes 7 A, stores A 8 20, publishes 7 bet, stores bet 8 redriven=8, promises 0 20")
    assert it.judged(tmp_path, monkeypatch).figures["prompt"] == 1
