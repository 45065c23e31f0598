"""What the status page says about a bridge at one moment: sentences, places on a line, gauges. Sans-IO.

The page and its stream of changes are rendered from a View, and a View is made of the StatusSnapshot that the
metrics are made of. All lists are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bridge.clock import MICROS
from bridge.feed.rate_limits import LimitUsage
from bridge.formatting import format_duration, format_utc, plural
from bridge.observability.health import LOOP_SECONDS, healthy
from bridge.observability.status import StatusSnapshot
from bridge.reader.money import format_payout, format_stake
from bridge.records.checkpoint import State
from bridge.records.dead_letter import DeadLetterCause
from bridge.records.gap import FeedGap

WIDTH = 1000
"""Length of the line, in its own unit."""
NARROWEST = 4
"""Width of the shortest gap on it, so that it can be seen."""
MOST_CAUSES = 10
MOST_EVENTS = 3
MOST_MEMBERS = 20
SOON = 6
"""A position older than all but this part of what the provider can replay is worth a notice."""
UNWATCHED_SECONDS = 300.0
"""Without a look at open transactions for this time, the page says so; a minute later the alert fires."""
NEARLY = 0.8
"""Share of a limit from which it is nearly used up."""


class Headline(NamedTuple):
    """The state in words."""

    tone: str
    """`good`, `busy` (it ends by itself) or `bad` (somebody has to look)."""
    sentence: str
    todo: str = ""
    """What somebody should do; empty for nothing."""


_SILENT = Headline(
    "bad",
    "The event loop is silent: nothing is read, and nothing is written.",
    "A liveness probe on /healthz restarts the bridge; without one, restart it. Keep its log.",
)
_STUCK = Headline(
    "bad",
    "Stuck: the bridge makes no progress.",
    "Check the log for what it is waiting for, then restart it.",
)
_UNOWNABLE = Headline(
    "bad",
    "Standing by in vain: it cannot own the feed.",
    "“bridge doctor” says why, “bridge topics plan” what is missing; docs/operations.md how to restore it.",
)
_UNCONVERTED = Headline(
    "bad",
    "Nothing can be converted: whatever the provider sends becomes a dead letter.",
    "“bridge deadletters list” has the reasons. Ask the provider what it has changed; a newer version of the "
    "bridge or feed.optional_fields may take it. Then redrive.",
)
_STARTING = Headline("busy", "Starting: neither owner nor standby yet.")
_HEADLINES = {
    State.CONNECTING: Headline("busy", "Connecting to the provider."),
    State.CATCHING_UP: Headline("busy", "Catching up: bets arrive late."),
    State.LIVE: Headline("good", "Live: messages reach Kafka as they arrive."),
    State.QUIET: Headline(
        "good",
        "Quiet: pings arrive, but no bets.",
        "Ask the provider if bets should be settling now.",
    ),
    State.IDLE_TIMEOUT: Headline(
        "busy",
        "Nothing arrives, not even a ping: the bridge is reconnecting.",
        "Check the network if this keeps happening.",
    ),
    State.WAITING_FOR_LIMIT: Headline(
        "busy",
        "Waiting until the provider's limits allow the next connection attempt.",
        "Nothing: a restart would not shorten the wait.",
    ),
    State.BACKING_OFF: Headline(
        "busy",
        "Pausing after a failure before the next connection attempt.",
        "If it lasts, the reason says what to look at; the log has all failures, event “disconnected”.",
    ),
    State.WAITING_FOR_KAFKA: Headline(
        "bad",
        "Waiting for Kafka or the registry: nothing is written.",
        "If the reason names a service, restore it. The bridge resumes by itself.",
    ),
    State.STANDBY: Headline("good", "Standing by: this process takes over when no other one owns the feed."),
    State.STOPPED_ON_GAP: Headline(
        "bad",
        "Stopped on a gap: the provider can no longer replay what is missing.",
        "Get that interval from the provider by other means; to go on after it, start with feed.on_gap = "
        "continue.",
    ),
    State.STOPPED: Headline("bad", "Stopped.", "If nobody stopped it, the log and the exit code say why."),
}


class Stretch(NamedTuple):
    """A part of the line, in its own unit."""

    x: float
    width: float


class Line(NamedTuple):
    """The time that the provider can replay, from its oldest second to now, as a line of WIDTH."""

    position: float | None
    """Where the committed position is."""
    gaps: tuple[Stretch, ...]
    words: str
    """The same in words, for people who cannot see it."""


class Gauge(NamedTuple):
    """The usage of a limit of the provider."""

    limit: LimitUsage
    full: bool
    free: str
    """When it allows an attempt again, empty if it does now."""


class MemberRow(NamedTuple):
    """A member of the owner group."""

    name: str
    host: str
    role: str


class ShownBet(NamedTuple):
    """A bet, in words."""

    settled_at: float
    """Its settlementTime, Unix seconds."""
    bet_id: str
    version: int
    result: str
    stake: str
    payout: str
    events: str
    """The names of its events as the provider sent them, where it did."""


def shown(bet: Mapping[str, Any]) -> ShownBet:
    """Return what is shown of a datum of the Avro record `SettledBet`."""
    events = [item["event"] for item in bet["selections"] or ()]
    names = list(dict.fromkeys(event["name"] for event in events if event and event["name"]))
    more = f" and {len(names) - MOST_EVENTS} more" if len(names) > MOST_EVENTS else ""
    return ShownBet(
        settled_at=bet["settlementTime"] / MICROS,
        bet_id=bet["betId"],
        version=bet["settlementVersion"],
        result=bet["betSettlement"],
        stake=format_stake(bet["amount"]),
        payout=format_payout(bet["payout"], bet["amount"]),
        events=", ".join(names[:MOST_EVENTS]) + more,
    )


class View:
    """A bridge at one moment, in words and figures: `now` is Unix seconds. None is what is not known.

    `show` returns the line of a bet.
    """

    def __init__(self, status: StatusSnapshot, now: float, show: Callable[[bytes], ShownBet]) -> None:
        self.status, self.now = status, now
        self.state, self.since, self.headline, self.reason = _state(status, now)
        self.age = status.revision_age(now)
        """How far the position is behind the provider's clock, seconds."""
        self.left = None if self.age is None else status.process.memory_seconds - self.age
        """Seconds until the provider forgets what comes after the position, if it does not move."""
        self.notices = list(_notices(status, self.left))
        self.line = _line(status, now)
        last = status.delivery.last_bets
        self.bets = None if last is None else list(map(show, last[::-1]))
        """The bets committed last, the newest first; None if they are not to be shown."""

    @property
    def todo(self) -> str:
        """What somebody should do."""
        return self.headline.todo or ("" if self.notices else "Nothing.")

    @property
    def failed(self) -> int:
        """Connection attempts that were refused or failed since this process became owner."""
        return sum(self.status.intake.connections.get(result, 0) for result in ("refused", "failed"))

    @property
    def gauges(self) -> list[Gauge]:
        """The usage of each of the provider's limits."""
        found = []
        for limit in self.status.intake.usage:
            left = (limit.free_at or 0.0) - self.now
            free = f"free in {format_duration(left)}" if left > 0 else ""
            found.append(Gauge(limit, limit.used >= NEARLY * limit.allowed, free))
        return found

    @property
    def attempt(self) -> str:
        """When the next connection attempt is allowed."""
        at = self.status.intake.next_connect
        if at is None:
            return "Not known to this process."
        if at <= self.now:
            return "A connection attempt is allowed now."
        return f"The next connection attempt is allowed in {format_duration(at - self.now)}."

    @property
    def causes(self) -> list[tuple[DeadLetterCause, int]]:
        """The causes of dead letters, the most frequent first."""
        return sorted(self.status.known.dead_letters.items(), key=lambda item: -item[1])[:MOST_CAUSES]

    @property
    def more_causes(self) -> int:
        """Number of causes that are left out."""
        return max(0, len(self.status.known.dead_letters) - MOST_CAUSES)

    @property
    def members(self) -> list[MemberRow]:
        """The members of the owner group, owners first; empty while they are unknown."""
        found = self.status.group.members if self.status.group else ()
        owners_first = sorted(found, key=lambda member: (not member.holds, member.name))
        return [
            MemberRow(
                member.name,
                member.host,
                ("owns the feed" if member.holds else "stands by")
                + (", this process" if member.name == self.status.process.owner_id else ""),
            )
            for member in owners_first[:MOST_MEMBERS]
        ]


def _state(status: StatusSnapshot, now: float) -> tuple[str, float, Headline, str]:
    """Return the state's name, since when it lasts, what to say, and the reason."""
    if now - status.at > LOOP_SECONDS:
        return "Silent", status.at, _SILENT, "it gives no heartbeat; everything below is out of date"
    name = "Starting" if status.state is None else status.state.value
    headline = _STARTING if status.state is None else _HEADLINES[status.state]
    if status.is_unownable:
        headline = _UNOWNABLE
    health = healthy(status, now)
    if status.intake.unconverted and health.ok:
        return name, status.since, _UNCONVERTED, status.intake.unconverted
    return name, status.since, headline if health.ok else _STUCK, health.reason


def _notices(status: StatusSnapshot, left: float | None) -> Iterator[str]:
    """Yield what somebody has to act on, whatever the state."""
    if left is not None and left <= 0:
        yield ("The position is older than what the provider can replay: the next connection declares a gap.")
    elif left is not None and left < status.process.memory_seconds / SOON:
        yield (
            f"Unless the position moves, a gap opens in {format_duration(left)}: the provider then discards "
            "what is not published."
        )
    lately = status.at - status.process.memory_seconds
    if count := sum(gap.detected_at > lately for gap in status.known.declared):
        yield (
            f"{plural(count, 'gap')} declared: bets published then may be missing. Get them from the "
            "provider; “bridge gaps” lists every gap."
        )
    if hanging := [transaction for transaction in status.open_transactions or () if transaction.hangs]:
        yield (
            f"An open transaction hides records from readers: {hanging[0]}. “bridge doctor” says how to find "
            "whose it is."
        )
    looked_at = status.transactions_looked_at or status.process.started_at
    if status.at - looked_at > UNWATCHED_SECONDS:
        yield (
            f"Nobody could look for open transactions since {format_utc(round(looked_at))}: “bridge doctor” "
            "says why."
        )
    if count := sum(status.known.dead_letters.values()):
        yield (
            f"{plural(count, 'message')} could not be converted since this process became owner. “bridge "
            "deadletters list” shows those that are open."
        )


def _line(status: StatusSnapshot, now: float) -> Line:
    present = now + (status.known.skew or 0.0)
    oldest = present - status.process.memory_seconds

    def place(at: float) -> float:
        return round(min(max(at - oldest, 0.0) / status.process.memory_seconds, 1.0) * WIDTH, 1)

    def stretch(gap: FeedGap) -> Stretch:
        start, end = place(gap.start), place(gap.end)
        width = max(end - start, NARROWEST)
        return Stretch(min(start, WIDTH - width), width)

    visible = [gap for gap in status.known.declared if gap.end > oldest]
    position = None if status.known.revision is None else place(status.known.revision)
    words = "the position is not known" if position is None else f"the position at {position / WIDTH:.0%}"
    span = format_duration(status.process.memory_seconds)
    gaps = f", {plural(len(visible), 'gap')}" if visible else ""
    return Line(position, tuple(map(stretch, visible)), f"The last {span}: {words}{gaps}")
