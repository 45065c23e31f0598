"""Bridges in each state that the status page tells apart, at one moment, and a server that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any
from wsgiref.types import WSGIApplication

from bridge.clock import MICROS, Instant
from bridge.config import WebSettings
from bridge.feed.rate_limits import LimitUsage
from bridge.observability.endpoints import Page, make_app
from bridge.observability.health import judge
from bridge.observability.http_server import WsgiServer
from bridge.observability.metrics import collect
from bridge.observability.rates import Rates
from bridge.observability.status import StatusSnapshot
from bridge.observability.status_page import status_page
from bridge.observability.view import ShownBet, View, shown
from bridge.ownership.group import Group, Member
from bridge.records.checkpoint import State
from bridge.records.counters import Counters
from bridge.records.dead_letter import DeadLetterCause
from bridge.records.gap import Cause, FeedGap
from tests.snapshots import replace, snapshot

NOW = 1_790_000_000.25
FEED = "settlement-v4"
ME, OTHER = "bridge-7c9f4-xk2lp:1:8d1e02b4", "bridge-7c9f4-q8w3n:1:51c0aa97"
GROUP = Group((Member("1", ME, "10.1.4.21", True), Member("2", OTHER, "10.1.7.8", False)))
LIVE = snapshot(
    at=NOW - 0.25,
    started_at=NOW - 90_000,
    feed=FEED,
    idle_timeout_seconds=60,
    owner_id=ME,
    state=State.LIVE,
    since=NOW - 7_512,
    owner=True,
    revision=1_789_999_910,
    committed_at=NOW - 0.31,
    counters=Counters(
        received=48_210_771,
        published=47_903_118,
        duplicates=291_034,
        stale=211,
        corrections=96,
        dead_lettered=37,
        pings=16_371,
    ),
    skew=0.4,
    connections={"accepted": 3, "failed": 1},
    newest=NOW - 1.2,
    rates=Rates(212.4, 208.9),
    usage=(
        LimitUsage("initial", 0, 5, None),
        LimitUsage("proper", 1, 5, None),
        LimitUsage("large", 1, 5, None),
        LimitUsage("bucket", 121, 3600, None),
    ),
    next_connect=NOW - 1,
    queue_messages=2,
    batch_records=5,
    group=GROUP,
    open_transactions=(),
    transactions_looked_at=NOW - 2,
)
CATCHING_UP = replace(
    LIVE,
    dead_letters={
        DeadLetterCause("data.selections[].price", "must be a number"): 31,
        DeadLetterCause("data.betSettlement", "is none of the known results"): 4,
        DeadLetterCause("", "not JSON"): 2,
    },
    state=State.CATCHING_UP,
    since=NOW - 1_260,
    revision=1_789_895_120,
    newest=NOW - 104_700,
    rates=Rates(15_240, 14_980),
    eta=2_520,
    queue_messages=1_988,
    batch_records=4_310,
)
QUIET = replace(LIVE, state=State.QUIET, since=NOW - 3_600, rates=Rates(0.1, 0.0))
WAITING_FOR_LIMIT = replace(
    LIVE,
    state=State.WAITING_FOR_LIMIT,
    reason="5 proper connection attempts in 5m",
    since=NOW - 40,
    until=NOW + 214,
    revision=1_789_999_820,
    rates=Rates(),
    usage=(
        LimitUsage("initial", 0, 5, None),
        LimitUsage("proper", 5, 5, NOW + 214),
        LimitUsage("large", 1, 5, None),
        LimitUsage("bucket", 840, 3600, None),
    ),
    next_connect=NOW + 214,
    queue_messages=0,
    batch_records=0,
)
GAP = replace(
    LIVE,
    gaps=1,
    declared=(FeedGap(FEED, NOW - 250_000, NOW - 214_000, Cause.MISSING_IN_REPLAY, NOW - 8_000),),
)
STANDBY = snapshot(
    at=NOW - 0.25,
    started_at=NOW - 90_000,
    feed=FEED,
    idle_timeout_seconds=60,
    owner_id=OTHER,
    state=State.STANDBY,
    reason=f"{ME} owns the feed",
    since=NOW - 89_990,
    group=GROUP,
    open_transactions=(),
    transactions_looked_at=NOW - 2,
)
UNOWNABLE = replace(
    STANDBY,
    reason="nobody can own the feed: the topic settlement.checkpoints is gone",
    group=Group((GROUP.members[0]._replace(holds=False), GROUP.members[1]), gone="settlement.checkpoints"),
)
KAFKA_DOWN = replace(  # for longer than a session: nobody owns, and this process did
    STANDBY,
    owner_id=ME,
    gaps=LIVE.known.gaps,
    declared=LIVE.known.declared,
    skew=LIVE.known.skew,
    state=State.WAITING_FOR_KAFKA,
    reason="no broker answers: kafka-0.kafka:9093 Connection refused",
    since=NOW - 312,
    revision=1_789_999_598,
    committed_at=NOW - 314,
    group=None,
)
STOPPED_ON_GAP = replace(
    GAP,
    state=State.STOPPED_ON_GAP,
    reason="MissingInReplay: 2026-09-18T16:46:40Z to 2026-09-19T02:46:40Z",
    since=NOW - 2,
    rates=Rates(),
    queue_messages=0,
    batch_records=0,
)
BACKING_OFF = replace(
    WAITING_FOR_LIMIT,
    state=State.BACKING_OFF,
    reason="the provider refused the connection: HTTP 503: maintenance",
    until=NOW + 17,
    usage=LIVE.intake.usage,
    next_connect=NOW - 1,
)
IDLE_TIMEOUT = replace(QUIET, state=State.IDLE_TIMEOUT, since=NOW - 1, rates=Rates())
CONNECTING = replace(BACKING_OFF, state=State.CONNECTING, reason="", until=None, since=NOW - 1)
STARTING = replace(STANDBY, state=None, reason="", since=NOW - 3, started_at=NOW - 3, group=None)
STUCK = replace(LIVE, since=NOW - 9_000, committed_at=NOW - 400)
LOOP_DEAD = replace(LIVE, at=NOW - 95, committed_at=NOW - 95.3, revision=1_789_999_815)


def _bet(identifier: str, result: str, payout: float, seconds: float, event: str) -> dict[str, Any]:
    return {
        "betId": identifier,
        "betSettlement": result,
        "settlementTime": round((NOW - seconds) * MICROS),
        "settlementVersion": 1 if result != "CashOut" else 2,
        "payout": payout,
        "amount": {"currency": "EUR", "value": 1000, "precision": 2},
        "selections": [{"event": {"name": event}}],
    }


ROVERS, GOTEBORG, LEEDS = "Northgate Rovers – Harbour City", "Göteborg 28 IK – İzmir 21", "Leeds – Reykjavík"
BETS = {
    b"win": _bet("7f9c2ba4-e88f-4b0d-9a41-2f0c5d3e6a18", "Win", 23.5, 3.25, ROVERS),
    b"lose": _bet("0c51f3de-90b7-4a7c-8f55-6b1d2e9a7c03", "Lose", 0, 2.5, GOTEBORG),
    b"cash-out": _bet("a30db7f3-12ab-4d8e-b1c7-45f0e6d2c9b8", "CashOut", 8.12, 1.5, LEEDS),
}
"""Data of bets, by what stands for their Avro values."""
SHOWING_BETS = replace(LIVE, last_bets=tuple(BETS))


def show(value: bytes) -> ShownBet:
    """Return the line of one of these bets."""
    return shown(BETS[value])


STATES = {
    "live": SHOWING_BETS,
    "catching-up": CATCHING_UP,
    "quiet": QUIET,
    "waiting-for-limit": WAITING_FOR_LIMIT,
    "gap": GAP,
    "stopped-on-gap": STOPPED_ON_GAP,
    "backing-off": BACKING_OFF,
    "idle-timeout": IDLE_TIMEOUT,
    "connecting": CONNECTING,
    "starting": STARTING,
    "stuck": STUCK,
    "standby": STANDBY,
    "unownable": UNOWNABLE,
    "unconverted": replace(
        CATCHING_UP, unconverted="nothing that came since 2026-09-21T14:03:20Z could be converted"
    ),
    "kafka-down": KAFKA_DOWN,
    "loop-dead": LOOP_DEAD,
}
"""By name, as in the screenshots."""


def clock() -> Instant:
    """Return the moment of the snapshots."""
    return Instant(NOW, 0.0)


def pages(take: Callable[[], StatusSnapshot], **options: Any) -> Mapping[str, Page]:
    """Return the status page of a `bridge run`, its files and its stream."""
    return status_page("bridge", lambda: View(take(), NOW, show), **options)


def application(pages: Mapping[str, Page], take: Callable[[], StatusSnapshot]) -> WSGIApplication:
    """Return the application of a `bridge run` with these pages."""
    return make_app(
        {"feed": FEED},
        lambda now: judge(take(), now),
        lambda now: collect(take(), now),
        WebSettings(),
        clock,
        pages,
    )


@contextmanager
def serving(
    pages: Mapping[str, Page], take: Callable[[], StatusSnapshot], connections: int | None = None
) -> Iterator[WsgiServer]:
    """Serve it inside the block."""
    with closing(WsgiServer(application(pages, take), "127.0.0.1", 0, connections=connections)) as server:
        yield server
