"""The checkpoint of a feed, and the rule that it never goes back.

A checkpoint is committed in the transaction of the records that it covers, so `read_committed` readers see
both or neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from itertools import chain
from math import inf, isfinite
from operator import attrgetter
from typing import Any, Final

from bridge.avro.codec import Codec
from bridge.clock import MICROS
from bridge.errors import SchemaError
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.formatting import camel_case, is_time
from bridge.kafka.batch import Header, Reached, Record
from bridge.records.counters import Counters
from bridge.records.reach import TopicReach, impossible_reach

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
        return {
            "feed": self.feed,
            "revision": self.revision,
            "starting": self.starting,
            "betsSchema": self.bets_schema,
            "state": self.state.value,
            "connections": [
                {
                    "at": _micros(attempt.at),
                    "class": "Initial" if attempt.initial else "Proper",
                    "recoverySeconds": attempt.recovery_seconds,
                    "answeredAt": _micros(attempt.answered_at),
                    "refused": attempt.refused,
                    "retryAt": _micros(attempt.retry_at),
                }
                for attempt in self.ledger
            ],
            "counters": dict(zip(_AVRO_COUNTERS, _counts(self.counters), strict=True)),
            "updatedAt": _micros(self.updated_at),
            "owner": self.owner,
            "reason": self.reason,
            "since": _micros(self.since),
            "until": _micros(self.until),
            "newestSettlement": _micros(self.newest),
            "skewSeconds": self.skew,
            "catchUp": self.catch_up
            and {
                "position": _micros(self.catch_up.position),
                "rate": self.catch_up.rate,
                "remainingSeconds": self.catch_up.remaining,
            },
            "moved": self.moved
            and {
                "at": _micros(self.moved.at),
                "by": self.moved.by,
                "from": self.moved.start,
                "to": self.moved.end,
                "reason": self.moved.reason,
            },
            "topics": [topic.to_avro() for topic in self.topics],
        }

    @classmethod
    def from_avro(cls, datum: Mapping[str, Any]) -> Checkpoint:
        """Return the checkpoint of such a datum.

        Raises SchemaError, with the field, for a number that no bridge writes: with it, the limits would be
        computed wrongly, or the next checkpoint could not be written.
        """
        checkpoint = cls(
            feed=datum["feed"],
            revision=datum["revision"],
            state=_state(datum["state"]),
            ledger=tuple(
                Attempt(
                    at=c["at"] / MICROS,
                    recovery_seconds=c["recoverySeconds"],
                    initial=c["class"] != "Proper",
                    answered_at=_seconds(c["answeredAt"]),
                    refused=c["refused"],
                    retry_at=_seconds(c["retryAt"]),
                    own=False,
                )
                for c in datum["connections"]
            ),
            counters=Counters(*(datum["counters"][name] for name in _AVRO_COUNTERS)),
            updated_at=datum["updatedAt"] / MICROS,
            owner=datum["owner"],
            reason=datum["reason"],
            since=_seconds(datum["since"]),
            until=_seconds(datum["until"]),
            newest=_seconds(datum["newestSettlement"]),
            skew=datum["skewSeconds"],
            catch_up=datum["catchUp"]
            and CatchUp(
                _seconds(datum["catchUp"]["position"]),
                datum["catchUp"]["rate"],
                datum["catchUp"]["remainingSeconds"],
            ),
            moved=(moved := datum["moved"])
            and Move(moved["at"] / MICROS, moved["by"], moved["from"], moved["to"], moved["reason"]),
            topics=tuple(map(TopicReach.from_avro, datum["topics"])),
            starting=datum["starting"],
            bets_schema=datum["betsSchema"],
        )
        for field, number in chain(checkpoint._impossible(), impossible_reach(checkpoint.topics)):
            raise SchemaError(f"not a FeedCheckpoint: {field}: {number!r} is impossible")
        return checkpoint

    def _impossible(self) -> Iterator[tuple[str, float]]:
        """Yield the fields that hold an impossible number, by their names in Avro."""
        times: list[tuple[str, float | None]] = [
            ("revision", self.revision),
            ("updatedAt", self.updated_at),
            ("since", self.since),
            ("until", self.until),
            ("newestSettlement", self.newest),
        ]
        numbers: list[tuple[str, float | None, float, float]] = [
            ("skewSeconds", self.skew, -LONGEST_SECONDS, LONGEST_SECONDS),
        ]
        for index, attempt in enumerate(self.ledger):
            name = f"connections[{index}]"
            times += [
                (f"{name}.at", attempt.at),
                (f"{name}.answeredAt", attempt.answered_at),
                (f"{name}.retryAt", attempt.retry_at),
            ]
            numbers.append((f"{name}.recoverySeconds", attempt.recovery_seconds, 0, LONGEST_SECONDS))
        for counter, count in zip(_AVRO_COUNTERS, _counts(self.counters), strict=True):
            numbers.append((f"counters.{counter}", count, 0, MOST_COUNTED))
        if self.catch_up is not None:
            times.append(("catchUp.position", self.catch_up.position))
            numbers.append(("catchUp.rate", self.catch_up.rate, 0, inf))
            numbers.append(("catchUp.remainingSeconds", self.catch_up.remaining, 0, inf))
        if self.moved is not None:
            times += [
                ("moved.at", self.moved.at),
                ("moved.from", self.moved.start),
                ("moved.to", self.moved.end),
            ]
        for name, time in times:
            if time is not None and not is_time(time):
                yield name, time
        for name, number, least, most in numbers:
            if number is not None and not (isfinite(number) and least <= number <= most):
                yield name, number


def checkpoint_record(
    topic: str, codec: Codec, checkpoint: Checkpoint, headers: list[Header] | None = None
) -> Record:
    """Return the record of a checkpoint."""
    at = int(checkpoint.updated_at * 1000)
    value = codec.encode(checkpoint.to_avro())
    return Record(topic, checkpoint.feed.encode(), value, at, headers, partition=0)


_AVRO_COUNTERS = tuple(camel_case(counter.name) for counter in fields(Counters))


def _state(symbol: str) -> State:
    """Avro reads a state newer than the schema as `Unknown`. The reader enters its own state anyway."""
    return State.CONNECTING if symbol == "Unknown" else State(symbol)


def _micros(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * MICROS)


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / MICROS
