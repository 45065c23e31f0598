"""Faults in the position, the limits and the gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

from bridge.dedup.deduplicator import Deduplicator
from bridge.feed.position import NEAR, Position
from bridge.feed.rate_limits import Decision, Limiter
from bridge.records.checkpoint import Checkpoint
from bridge.records.gap import FeedGap, gap_record
from bridge.service.checkpointer import Checkpointer
from bridge.service.connector import Connector
from bridge.service.owner import FeedOwner
from bridge.service.pipeline import Pipeline
from tests.broken.fault import GOES_BACK, By, Fault, Rules
from tests.judge import Anomaly


def _eager_ping(ping: By, self: Position, at: float) -> None:
    self._pings_since = -inf
    ping(self, at)


def _by_newest(data: By, self: Position, at: float, settled_at: float) -> None:
    data(self, at, settled_at)
    if not self.live and self.newest is not None and self._window.lowest() is not None:
        self.skip(int(self.newest - self._margin))


def _by_clock(_: By, self: Position, at: float) -> None:
    self.skip(int(at - self._max_out_of_orderness - self._margin))


def _after_one(data: By, self: Position, at: float, settled_at: float) -> None:
    self._streak = max(self._streak, NEAR - 1)
    data(self, at, settled_at)


def _back(connected: By, self: Position, *arguments: Any) -> None:
    self._revision -= 5
    connected(self, *arguments)


def _stay(advance: By, self: Position, at: float) -> None:
    before = self._revision
    advance(self, at)
    self._revision = before


def _level_of_accepted(level: By, self: Limiter, at: float) -> Any:
    ledger = self.ledger
    self.ledger = tuple(attempt for attempt in ledger if not attempt.refused)
    found = level(self, at)
    self.ledger = ledger
    return found


async def _not_before(commit: By, self: Checkpointer, *, check_generation: bool = False) -> None:
    if not check_generation:
        await commit(self)


async def _committed_after(open_: By, self: Connector, asked: Any, decided: Any) -> Any:
    connection = await open_(self, asked, decided)
    await self.checkpointer.commit()
    return connection


async def _skipped_always(
    accepted: By, self: Connector, connection: Any, revision: Any, decided: Any
) -> None:
    if revision is not None:
        await self._skip(revision)
    await accepted(self, connection, revision, decided)


def _requested(change: By) -> Rules:
    """Another revision than the position is requested, unless none is."""

    def revision(of: By, self: Connector, now: Any) -> int | None:
        found: int | None = of(self, now)
        return None if found is None else int(change(self, now, found))

    return {Connector._revision: revision}


def _not_awaiting(connected: By, self: Pipeline, *arguments: Any, **named: Any) -> None:
    connected(self, *arguments, **named)
    self.replay.unproven = None


def _awaiting_nothing(accepted: By, self: FeedOwner, value: bytes | None) -> Checkpoint | None:
    found: Checkpoint | None = accepted(self, value)
    return found and replace(found, unproven=None)


def _twice(declare: By, self: Pipeline, gap: FeedGap) -> None:
    declare(self, gap)
    self.batch.add(self.batch.records[-1])


def _declared(change: Callable[[FeedGap], FeedGap]) -> Rules:
    """Other gaps are written."""
    return {gap_record: lambda of, topic, codec, gap: of(topic, codec, change(gap))}


def _without_last(described: By, self: Checkpointer) -> Checkpoint:
    found: Checkpoint = described(self)
    return replace(found, ledger=found.ledger[:-1])


_AHEAD = {Anomaly.CHECKPOINT_AHEAD: "", Anomaly.LOST_WRITE: ""}
_BREACH = {Anomaly.LIMIT_BREACHED: ""}
_IN_VAIN = {Anomaly.GAP_IN_VAIN: ""}
_UNDECLARED = {Anomaly.UNDECLARED_GAP: ""}

_ahead = partial(Fault, "slow replay", _AHEAD)
_breach = partial(Fault, "drops", _BREACH)
_breach_of_window = partial(Fault, "large recoveries", _BREACH)
_breach_by_crash = partial(Fault, "crash at the handshake", _BREACH)
_undeclared = partial(Fault, "outage", _UNDECLARED)
_unnoticed = partial(Fault, "forgotten", _UNDECLARED)
_in_vain = partial(Fault, "reconnections", _IN_VAIN)

FAULTS = (
    Fault(
        "reconnections",
        {Anomaly.LOST_WRITE: "", **_IN_VAIN},
        "a reconnection asks for what is published from then on",
        _requested(lambda self, now, _: now.wall - self._feed.max_clock_skew_seconds),
    ),
    Fault(
        "reconnections",
        {Anomaly.LOST_WRITE: "", **_BREACH},
        "each connection asks for revision 0",
        {Connector._revision: lambda _, self, now: None},
    ),
    _ahead("the position of a replay follows the clock", {Position._advance: _by_clock}),
    _ahead("pings move the position of a replay", {Position.ping: _eager_ping}),
    _ahead("the newest settlementTime moves the position", {Position.data: _by_newest}),
    _ahead("one bet near now ends the catching up", {Position.data: _after_one}),
    Fault(
        "slow feed",
        _AHEAD,
        "while live the position has no margin",
        {
            Position._margin: lambda _, self: 0.0,
            Position._advance: lambda of, self, at: of(self, at + self._max_out_of_orderness),
        },
    ),
    Fault(
        "reconnections",
        {Anomaly.CHECKPOINT_BACK: ""},
        "each connection takes the position back",
        {**GOES_BACK, Position.connected: _back},
    ),
    _breach(
        "no attempt waits for a limit",
        {Limiter.decide: lambda _, self, now, revision: Decision(now.wall, "")},
    ),
    _breach("no recovery waits for room in the bucket", {Limiter._may_be_small: lambda _, self, ages: False}),
    Fault(
        "refusals", _BREACH, "a refused recovery is not in the bucket", {Limiter._level: _level_of_accepted}
    ),
    # The provider refuses it to the end.
    _breach_of_window(
        "no attempt waits for a window", {Limiter._free_at: lambda _, self, window: -inf}, records=0.0
    ),
    _breach_of_window(
        "windows are half as long",
        {Limiter._free_at: lambda of, self, window: of(self, window) - window.seconds / 2},
    ),
    _breach_by_crash(
        "an attempt is committed after the handshake",
        {Checkpointer.commit: _not_before, Connector._open: _committed_after},
    ),
    Fault(
        "reconnections",
        {Anomaly.ATTEMPT_NOT_COMMITTED: "was made before"},
        "an attempt is committed with what it has brought",
        {Checkpointer.commit: _not_before},
    ),
    Fault(
        "reconnections",
        {Anomaly.POSITION_BEHIND: "the stream ended"},
        "the position never moves",
        {Position._advance: _stay},
    ),
    Fault(
        "reconnections",
        {Anomaly.POSITION_BEHIND: "the position was"},
        "a reconnection asks for 30 s more than the position",
        _requested(lambda self, now, found: found - 30),
    ),
    _breach_by_crash(
        "a new owner does not know the attempts",
        {
            Limiter.__init__: lambda of, self, limits, connect_timeout, skew, ledger: of(
                self, limits, connect_timeout, skew, ()
            )
        },
    ),
    # Most was published while it was down.
    _undeclared("gaps are not declared", {Pipeline.declare: lambda _, self, gap: None}, records=0.25),
    _undeclared(
        "gaps begin where they end", _declared(lambda gap: replace(gap, start=gap.end)), records=0.25
    ),
    _in_vain("each connection declares a gap", {Connector._accepted: _skipped_always}),
    _unnoticed("a replay that repeats nothing is taken for whole", {Pipeline.connected: _not_awaiting}),
    _unnoticed("a new owner does not await what the last one did", {FeedOwner._accepted: _awaiting_nothing}),
    _unnoticed("gaps end after a second", _declared(lambda gap: replace(gap, end=gap.start + 1))),
    _in_vain(
        "bets that come again do not count as known", {Deduplicator.proves_replay: lambda _, self, key: False}
    ),
    Fault(
        "outage",
        {Anomaly.GAP_IN_VAIN: "it was declared before"},
        "each gap is written twice",
        {Pipeline.declare: _twice},
    ),
    Fault(
        "outage",
        {Anomaly.GAP_IN_VAIN: "it begins before the position"},
        "gaps begin a minute too early",
        _declared(lambda gap: replace(gap, start=gap.start - 60)),
    ),
    Fault(
        "outage",
        {Anomaly.GAP_IN_VAIN: "it goes on in the future"},
        "gaps end an hour too late",
        _declared(lambda gap: replace(gap, end=gap.end + 3600)),
    ),
    Fault(
        "outage",
        {Anomaly.GAP_IN_VAIN: "it ends too late"},
        "gaps end ten seconds too late",
        _declared(lambda gap: replace(gap, end=gap.end + 10)),
    ),
    Fault(
        "reconnections",
        {Anomaly.ATTEMPT_NOT_COMMITTED: ""},
        "a checkpoint lacks the last attempt",
        {Checkpointer._described: _without_last},
    ),
)
