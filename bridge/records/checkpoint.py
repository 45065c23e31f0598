"""The checkpoint of a feed, and the rule that it never goes back.

A checkpoint is committed in the transaction of the records that it covers, so `read_committed` readers see
both or neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial
from math import inf
from operator import attrgetter
from typing import Any, Final

from bridge.avro.codec import Codec
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.kafka.batch import Header, Reached, Record
from bridge.records.avro_form import PLAIN, REVISION, TIME, AvroField, AvroForm, symbol, within
from bridge.records.counters import Counters
from bridge.records.reach import REACH, TopicReach

_counts = attrgetter(*(counter.name for counter in fields(Counters)))

MOST_COUNTED: Final = 2**62
"""More than a counter ever holds: it can still grow within the 64 bits of its field."""
LONGEST_SECONDS: Final = 2**40
"""Longer than from the first to the last time there is."""
FOLLOWS_SECONDS: Final = 3600.0
"""A revision closer to the clock than this may have followed it."""


class State(Enum):
    """State of the bridge. Each reason for publishing nothing is a separate state."""

    CONNECTING = "Connecting"
    CATCHING_UP = "CatchingUp"
    LIVE = "Live"
    QUIET = "Quiet"
    IDLE_TIMEOUT = "IdleTimeout"
    WAITING_FOR_LIMIT = "WaitingForLimit"
    BACKING_OFF = "BackingOff"
    WAITING_FOR_KAFKA = "WaitingForKafka"
    STANDBY = "Standby"
    STOPPED_ON_GAP = "StoppedOnGap"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class Move:
    """A change of the position by an operator, from the revision `start` to `end`."""

    at: float
    """When, Unix seconds."""
    by: str
    """The operator: user and host."""
    start: int
    end: int
    reason: str = ""
    """Why, in the operator's words."""


@dataclass(frozen=True, slots=True)
class UnprovenReplay:
    """A replay that must repeat something, and has not yet."""

    revision: int
    """The one asked for last: something known was published after it."""
    since: float
    """When that was first asked for, Unix seconds: what was received from then on shows nothing."""
    newest: float
    """The newest settlementTime published by then, Unix seconds."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The position of a feed. `revision` is in Unix seconds of the provider's clock.

    Everything that the provider published before `revision` is committed in Kafka.
    """

    feed: str
    revision: int
    state: State
    ledger: tuple[Attempt, ...]
    counters: Counters
    updated_at: float
    owner: str
    reason: str = ""
    """Why the bridge is in this state."""
    since: float | None = None
    """When the state began, Unix seconds."""
    until: float | None = None
    """When a wait ends, Unix seconds, if known."""
    newest: float | None = None
    """The newest published settlementTime that is not in the future, Unix seconds."""
    skew: float | None = None
    """The provider's clock minus ours, seconds: the smallest difference that explains its answers."""
    catch_up: CatchUp | None = None
    """Progress of a replay, during one."""
    moved: Move | None = None
    """The last change of the position by an operator; every later checkpoint has it too."""
    topics: tuple[TopicReach, ...] = ()
    """Those of bets, dead letters and gaps, and how far they reach; empty if that is not known yet."""
    starting: bool = False
    """Whether the next attempt asks for revision 0: what that replays has not come yet."""
    bets_schema: int | None = None
    """The id of the schema with which the owner writes bets."""
    unproven: UnprovenReplay | None = None
    """What the next process must go on to await, or else declare a gap."""

    @property
    def has_received(self) -> bool:
        """Whether the feed ever received anything, or took over from one that had published a bet."""
        return self.counters.received > 0 or self.newest is not None

    def is_ahead(self, now: float, skew: float) -> bool:
        """Return whether the position lies in the future, or follows a clock that was ahead.

        While live, it follows the clock. `skew` is how far clocks may differ, seconds.
        """
        by_wrong_clock = (
            self.updated_at > now + 2 * skew and self.revision > self.updated_at - FOLLOWS_SECONDS
        )
        return self.revision > now + skew or by_wrong_clock

    def attempts_with(self, other: Checkpoint) -> tuple[Attempt, ...]:
        """Return the ledger of both: the provider counts all attempts, whatever we call the feed."""
        return tuple(sorted({*self.ledger, *other.ledger}, key=attrgetter("at")))

    def follows(self, other: Checkpoint, *, rewound: bool = False) -> bool:
        """Return whether this checkpoint may be written after `other`: neither position nor counters go back.

        The position may if it was `rewound`, with a gap.
        """
        pairs = zip(_counts(other.counters), _counts(self.counters), strict=True)
        goes_on = self.revision >= other.revision or rewound
        return goes_on and all(before <= after for before, after in pairs)

    def reaching(self, reached: Reached) -> Checkpoint:
        """Return it for a transaction that reaches this far. Raises as `TopicReach.reaching`."""
        return replace(self, topics=tuple(topic.reaching(reached) for topic in self.topics))

    def to_avro(self) -> dict[str, Any]:
        """Return the datum of the Avro record `FeedCheckpoint`."""
        return _FORM.to_avro(self)

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint of such a datum. Raises SchemaError as `AvroForm.from_avro`."""
        return _FORM.from_avro(datum, "not a FeedCheckpoint: ")


_ATTEMPT: Final = AvroForm(
    partial(Attempt, own=False),
    at=TIME,
    # A class that is unknown here counts as the strictest.
    initial=AvroField(
        lambda found, _: found != "Proper", lambda initial: "Initial" if initial else "Proper", "class"
    ),
    recovery_seconds=within(0, LONGEST_SECONDS),
    answered_at=TIME,
    refused=PLAIN,
    retry_at=TIME,
)
_CATCH_UP: Final = AvroForm(
    CatchUp, position=TIME, rate=within(0, inf), remaining=within(0, inf).called("remainingSeconds")
)
_MOVE: Final = AvroForm(
    Move, at=TIME, by=PLAIN, start=REVISION.called("from"), end=REVISION.called("to"), reason=PLAIN
)
_UNPROVEN: Final = AvroForm(
    UnprovenReplay, revision=REVISION, since=TIME, newest=TIME.called("newestSettlement")
)
_COUNTERS: Final = AvroForm(Counters, **{it.name: within(0, MOST_COUNTED) for it in fields(Counters)})
_FORM: Final = AvroForm(
    Checkpoint,
    feed=PLAIN,
    revision=REVISION,
    starting=PLAIN,
    bets_schema=PLAIN,
    # Avro reads a state newer than the schema as Unknown; a reader enters its own anyway.
    state=symbol(State, Unknown=State.CONNECTING),
    ledger=_ATTEMPT.many.called("connections"),
    counters=_COUNTERS.one,
    updated_at=TIME,
    owner=PLAIN,
    reason=PLAIN,
    since=TIME,
    until=TIME,
    newest=TIME.called("newestSettlement"),
    skew=within(-LONGEST_SECONDS, LONGEST_SECONDS).called("skewSeconds"),
    unproven=_UNPROVEN.one,
    catch_up=_CATCH_UP.one,
    moved=_MOVE.one,
    topics=REACH.many,
)


def checkpoint_record(
    topic: str, codec: Codec, checkpoint: Checkpoint, headers: list[Header] | None = None
) -> Record:
    """Return the record of a checkpoint."""
    at = int(checkpoint.updated_at * 1000)
    value = codec.encode(checkpoint.to_avro())
    return Record(topic, checkpoint.feed.encode(), value, at, headers, partition=0)
