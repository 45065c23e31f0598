"""What the judge is asked, what it may find, and its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any, NamedTuple, Protocol

from tests.judge.timeline import Gap

CLOCKS_SECONDS = 1.0
"""How far the clocks of bridges, brokers and provider may be apart."""
REMEMBERED_SECONDS = 135.0
"""How long before the revision that it asks for a bridge may have received what the replay repeats."""


class Anomaly(StrEnum):
    """What must never be found; docs/chaos.md has the exact meaning of each."""

    LOST_WRITE = "lost write"
    DUPLICATE = "duplicate"
    ABORTED_READ = "aborted read"
    NON_MONOTONIC = "non-monotonic version"
    CHECKPOINT_AHEAD = "checkpoint ahead of its data"
    CHECKPOINT_BACK = "checkpoint going back"
    UNDECLARED_GAP = "undeclared gap"
    GAP_IN_VAIN = "gap declared in vain"
    DEAD_LETTER_LOST = "dead letter lost"
    DEAD_LETTER_ALTERED = "dead letter altered"
    DEAD_LETTER_IN_VAIN = "dead letter in vain"
    LIMIT_BREACHED = "limit breached"
    SECOND_CONNECTION = "second connection"
    WRONG_FIELD = "wrong field"
    STUCK_OFFSET = "stuck last stable offset"
    COUNTERS = "counters that do not balance"
    ATTEMPT_NOT_COMMITTED = "attempt not committed"
    POSITION_BEHIND = "position behind"


class Excuse(NamedTuple):
    """A time, Unix seconds, in which a connection that replaces another one is explained.

    The holder of the other one was stopped, killed or cut off.
    """

    begin: float
    end: float
    holder: str | None = None
    """The simulator's name of the client; None: whoever it is."""

    def covers(self, at: float, holder: str) -> bool:
        """Whether it explains that the connection of a holder was in the way."""
        return self.begin <= at <= self.end and self.holder in (None, holder)


@dataclass(frozen=True)
class Case:
    """The topics to be judged and the simulator that has the truth.

    Its stream has been stopped (`POST /stop`), and the bridge has had time to publish everything.
    """

    bootstrap_servers: str
    registry_url: str
    prefix: str
    control_url: str
    """Of the simulator."""
    seed: int = 0
    """Only repeated in the report."""
    feed: str = "settlement-v4"
    limits_scale: float = 1.0
    """How many times faster the simulator's limits run."""
    excused: tuple[Excuse, ...] = ()
    start_age: float = 0.0
    """How far back the first connection attempt has to ask, seconds (`feed.start`)."""
    gap_margin: float = 60.0
    """How much of what the provider could still replay a gap `TooOld` may cover, seconds: how much later than
    it was decided an attempt may reach the provider."""
    position_margin: float = 150.0
    """How far the last position may be behind the end of the stream, seconds: the margins of the bridge, and
    the time until it knows that it has caught up."""
    has_operator: bool = False
    """Whether somebody may have moved the position (`bridge checkpoint set`)."""
    may_tear: bool = False
    """Whether brokers were away, so that Kafka may have torn a transaction (`tests.judge.torn`)."""
    made_anew: tuple[tuple[str, float], ...] = ()
    """Topics that were deleted and made anew, without their prefix, and when, Unix seconds."""
    is_copied: bool = False
    """Whether they then got copies of records, which no transaction has written."""
    known_gaps: tuple[Gap, ...] = ()
    """Those that were declared in a topic that is no more."""
    partitions: tuple[tuple[str, int], ...] = ()
    """How many partitions topics had before some were added: each key stays where it was."""
    max_message_bytes: int = 8 << 20
    """What is larger is a dead letter, whatever it holds (`feed.max_message_bytes`)."""

    @property
    def anew_at(self) -> float:
        """When the last topic was made anew, -infinity if none was."""
        return max((at for _, at in self.made_anew), default=-inf)

    def was_made_anew(self, *topics: str) -> bool:
        """Whether one of these topics was."""
        return any(topic in topics for topic, _ in self.made_anew)


@dataclass(frozen=True)
class Found:
    """How often an anomaly was found, and a sentence about the earliest one."""

    count: int
    first: str


@dataclass(frozen=True)
class Report:
    """What the judge has found."""

    anomalies: Mapping[Anomaly, Found]
    """Only those found."""
    figures: Mapping[str, int]
    seed: int

    def __bool__(self) -> bool:
        """Whether nothing was found."""
        return not self.anomalies

    def json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "seed": self.seed,
            "clean": bool(self),
            "anomalies": {
                kind.value: {"count": it.count, "first": it.first} for kind, it in self.anomalies.items()
            },
            "figures": dict(self.figures),
        }

    def __str__(self) -> str:
        found = [f"{kind}: {it.count:,}, first {it.first}" for kind, it in self.anomalies.items()]
        figures = ", ".join(f"{name} {value:,}" for name, value in self.figures.items())
        return "\n".join([*(found or ["nothing found"]), f"{figures}, seed {self.seed}"])


Text = str | Callable[[], str]
"""A sentence, or what makes one: only that of the first example is needed."""


class Findings:
    """Counts anomalies and keeps the earliest example of each. Constant memory."""

    def __init__(self) -> None:
        self._count: dict[Anomaly, int] = {}
        self._first: dict[Anomaly, tuple[float, Text]] = {}

    def add(self, anomaly: Anomaly, at: float, first: Text) -> None:
        """Add an anomaly that happened at a time, Unix seconds, with a sentence about it."""
        self._count[anomaly] = self._count.get(anomaly, 0) + 1
        if anomaly not in self._first or at < self._first[anomaly][0]:
            self._first[anomaly] = at, first

    def found(self) -> dict[Anomaly, Found]:
        """Return what was found, in the order of `Anomaly`."""
        return {
            kind: Found(self._count[kind], _text(self._first[kind][1]))
            for kind in Anomaly
            if kind in self._count
        }


def _text(text: Text) -> str:
    return text if isinstance(text, str) else text()


class Explain(Protocol):
    """Tells in which fields a record differs from the message published at `at` with number `seq`."""

    def __call__(self, at: float, seq: int, partition: int, offset: int) -> str: ...
