"""Checks of the feed: the provider's clock, other feeds, checkpoint and limits.

None connects to the feed, so none counts against the provider's limits.
"""

from __future__ import annotations

from functools import partial

from bridge.clock_skew import Skew
from bridge.config import FeedSettings, Settings, parse_start
from bridge.doctor.finding import Finding, Verdict
from bridge.feed.rate_limits import Limiter
from bridge.formatting import format_duration, format_skew, format_utc
from bridge.inspection.limits import LimitForecast
from bridge.inspection.readers import read_checkpoint, read_in_time
from bridge.kafka import admin, clients
from bridge.observability.health import COMMIT_SECONDS
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.reach import used_partitions
from bridge.registry import Registry
from bridge.stored.checkpoint_reader import CheckpointReader
from bridge.stored.reach_reader import ReachReader

SEE = 'See "Exit 5" in docs/operations.md, and `bridge gaps`.'
LOST = "the feed can no longer replay everything since (TooOld); `bridge run` declares a gap"
AHEAD = "it lies in the future (PositionInFuture); `bridge run` may declare a gap, or end if a clock is wrong"


def assess_clock(feed: FeedSettings, skew: Skew | None) -> Finding:
    """Whether the provider's clock is near enough to ours; None if the provider does not send its time."""
    if skew is None:
        return Finding(Verdict.WARN, "the provider answers without its time: the clock skew is unknown")
    seconds, limit = skew.seconds, feed.max_clock_skew_seconds
    message = f"the provider answers, and its clock {format_skew(seconds)}"
    if abs(seconds) <= limit:
        return Finding(Verdict.OK, message)
    advice = "Correct this machine's clock by NTP; if it is correct, tell the provider."
    return Finding(Verdict.FAIL, f"{message}; more than {format_duration(limit)} stop the bridge", advice)


def check_feeds(settings: Settings) -> Finding:
    """Whether no other feed uses the topics. Raises TopologyError, which names it, and as the readers."""
    declared = topics.declare(settings)
    alone = Finding(Verdict.OK, f"no other feed uses {settings.topics.prefix}.…")
    if admin.topic_id(clients.admin(settings.kafka), declared.checkpoints.name, admin.USER_SECONDS) is None:
        return alone
    with Registry(settings.registry) as registry:
        checkpoints = CheckpointReader(settings, declared, registry.schema_by_id)
        refuse = partial(checkpoints.refuse_other_feeds, visible=True)
        read_in_time(settings, declared.checkpoints.name, refuse)
    return alone


def check_checkpoint(settings: Settings, now: float) -> Finding:
    """Whether the topics have what the checkpoint says, and the position is fit to go on from at `now`."""
    client, declared = clients.admin(settings.kafka), topics.declare(settings)
    exists = admin.topic_id(client, declared.checkpoints.name, admin.USER_SECONDS) is not None
    checkpoint = read_checkpoint(settings) if exists else None
    found = assess_checkpoint(settings, checkpoint, now)
    if checkpoint is None:
        topics.refuse_lost_position(client, settings, declared, was_read=True)
        return found
    with Registry(settings.registry) as registry:
        reaches = ReachReader(settings, declared, registry.schema_by_id).check(client, checkpoint)
    lines = [
        f"{name} has {count} partitions, of which the first {used} are used: keys would move"
        for name, used in used_partitions(reaches).items()
        if (count := admin.partition_count(client, name)) > used
    ]
    outcome = Verdict.WARN if lines and found.outcome is Verdict.OK else found.outcome
    return Finding(outcome, "\n".join([found.message, *lines]), found.advice)


def assess_checkpoint(settings: Settings, checkpoint: Checkpoint | None, now: float) -> Finding:
    """Whether the feed can be resumed, and reconnected within the limits, at `now`, Unix seconds."""
    if checkpoint is None:
        begins = f"none yet: the first run begins with feed.start = {settings.feed.start}"
        start = parse_start(settings.feed.start, now)
        if start is not None and start < Limiter.of(settings).oldest_replayable(now):
            return Finding(Verdict.TROUBLE, f"{begins}: {LOST}", SEE)
        if start is not None:
            return Finding(Verdict.OK, begins)
        return Finding(
            Verdict.WARN,
            f"{begins}: the provider decides what it replays, and what it leaves out is no gap",
            "To get everything it still has, set feed.start (BRIDGE_FEED__START) to an age, such as 71h.",
        )
    limits = LimitForecast(settings, checkpoint, now, checkpoint.revision)
    outcome, message, advice = _position(settings, checkpoint, now, limits.oldest_replayable)
    used = ", ".join(f"{limit.name} {limit.words}" for limit in limits.usage)
    if limits.reconnect.until <= now:
        return Finding(outcome, f"{message}\nthe limits allow a reconnect now; used: {used}", advice)
    until, reason = format_utc(limits.reconnect.until), limits.reconnect.reason
    wait = f"the limits allow a reconnect at {until}: {reason}; used: {used}"
    worst = outcome if outcome is Verdict.FAIL else Verdict.TROUBLE
    return Finding(worst, f"{message}\n{wait}", advice)


def _position(settings: Settings, checkpoint: Checkpoint, now: float, oldest: int) -> Finding:
    if checkpoint.state is State.STOPPED_ON_GAP and settings.feed.on_gap == "stop":
        return Finding(Verdict.FAIL, f"StoppedOnGap: {checkpoint.reason}", SEE)
    memory = settings.limits.memory_seconds
    age = max(0.0, now + (checkpoint.skew or 0.0) - checkpoint.revision)
    ended = checkpoint.reason if checkpoint.state is State.STOPPED else ""
    state = f"the last run ended: {ended}; its" if ended else f"{checkpoint.state.value}, the"
    message = f"{state} position is {format_duration(age)} old"
    is_ahead = checkpoint.is_ahead(now, settings.feed.max_clock_skew_seconds)
    asks_for_all = checkpoint.starting and settings.feed.start == "0"
    if is_ahead or (checkpoint.revision < oldest and not asks_for_all):
        # No failure, although the bridge may stop on the gap: it has to start to declare it.
        return Finding(Verdict.TROUBLE, f"{message}: {AHEAD if is_ahead else LOST}", SEE)
    still = now - max(checkpoint.updated_at, checkpoint.until or 0.0)
    if still > settings.feed.idle_timeout_seconds + COMMIT_SECONDS:
        return Finding(
            Verdict.WARN,
            f"{message}; no commit for {format_duration(now - checkpoint.updated_at)}",
            "If nobody owns the feed (`leadership`), start a bridge before "
            f"{format_utc(checkpoint.revision + memory)}: from then on the provider discards messages that "
            "are not published.",
        )
    return Finding(Verdict.WARN if ended else Verdict.OK, message)
