"""Moves the position of a feed by hand: shows what follows from it, then commits it as the owner.

Moving back loses nothing: the next `bridge run` receives the interval again, restores the deduplicator from
before it, and drops what is published. Moving forward skips an interval, which becomes a gap in the same
transaction. The ledger and the counters stay (decision 0025).
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from dataclasses import dataclass, replace
from typing import Any

from bridge import clock
from bridge.config import FeedSettings, Settings, parse_start, parse_time
from bridge.errors import BridgeError, SettingsError, naming_option
from bridge.formatting import format_duration, format_utc
from bridge.inspection.gaps import gap_as_json
from bridge.inspection.limits import LimitForecast, forecast_as_json
from bridge.inspection.readers import format_move
from bridge.kafka import admin, clients
from bridge.kafka.batch import Batch
from bridge.log import get
from bridge.ownership.group import Group
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, Move, State
from bridge.records.gap import Cause, FeedGap, gap_record
from bridge.records.reach import TopicReach
from bridge.records.topics import DAY_MS
from bridge.registry import Registry
from bridge.repair.ownership import OwnedFeed, members
from bridge.stored.reach_reader import Lost, ReachReader
from bridge.stored.restore import deduplicated_from

DEDUPLICATOR_BYTES = 60
"""Memory for each bet that the deduplicator restores."""
_FINER = {13: "milliseconds", 16: "microseconds", 19: "nanoseconds"}
"""Units by the digits that they take for a time that has ten in seconds."""


def parse_revision(text: str, now: float) -> int:
    """Return the revision of `--revision`: Unix seconds, a time with its zone, or an age such as `2h`.

    `now` is in Unix seconds. Raises SettingsError for anything else.
    """
    if re.fullmatch(r"\d{1,12}", text):
        return int(text)
    with naming_option("--revision"):
        if text.isdecimal() and (unit := _FINER.get(len(text))):
            raise SettingsError(f"{text} is in {unit}: give seconds, {text[:10]}")
        return int(parse_time(text, now))


def first_revision(feed: FeedSettings, now: float) -> int:
    """Return where feed.start puts a first start. Raises SettingsError for `0`."""
    start = parse_start(feed.start, now)
    if start is None:
        raise SettingsError(
            "feed.start (BRIDGE_FEED__START) is 0: only the provider knows what it replays for that, so a "
            "reset could skip bets without a gap. Set feed.start to an age such as 2d or to a time, or use "
            "`bridge checkpoint set --revision TIME`."
        )
    return start


@dataclass(frozen=True)
class MovePlan:
    """What a change of the position brings about. Times are Unix seconds."""

    checkpoint: Checkpoint
    """The committed one."""
    revision: int
    """The new position."""
    since: float
    """The oldest time of receipt that the deduplicator restores at the next start."""
    records: int
    """Most records received since then: those of bets, and the markers of transactions."""
    forecast: LimitForecast
    large_age_seconds: float
    group: Group | None
    """The members of the owner group; None if Kafka refuses."""
    topics: tuple[TopicReach, ...]
    """Those with which the feed goes on."""
    lost: Lost | None
    """What they lack."""

    @property
    def lost_gap(self) -> FeedGap | None:
        """What the topics lack; None if that is nothing of what was received."""
        lost = self.lost
        return lost and self._gap(lost.revision, self.checkpoint.revision, Cause.RECORDS_LOST)

    @property
    def gap(self) -> FeedGap | None:
        """The interval that is skipped; None when moving back."""
        return self._gap(self.checkpoint.revision, self.revision, Cause.MOVED_BY_OPERATOR)

    def _gap(self, start: int, end: int, cause: Cause) -> FeedGap | None:
        return FeedGap(self.checkpoint.feed, start, end, cause, self.forecast.at) if end > start else None

    @property
    def changes(self) -> bool:
        """Whether it moves the position, takes other topics, or ends the state in which a gap has left it."""
        stopped = self.checkpoint.state is State.STOPPED_ON_GAP
        return self.revision != self.checkpoint.revision or stopped or self.lost is not None

    @property
    def recovery(self) -> str:
        """The class of the next connection by the provider's limits."""
        return "large" if self.forecast.recovery_seconds > self.large_age_seconds else "small"


def plan_move(settings: Settings, checkpoint: Checkpoint, revision: int, now: float) -> MovePlan:
    """Return what moving the position to this revision brings about. Writes nothing; `now` in Unix seconds.

    Raises SettingsError for a revision in the future, or one that the provider cannot replay or compaction
    may have reached: then bets would be missing, or published twice. Otherwise as the readers of topics.
    """
    if revision > now:
        raise SettingsError(
            f"{format_utc(revision)} is in the future: what is published until then would be lost"
        )
    if max(checkpoint.revision, checkpoint.updated_at) > now + settings.feed.max_clock_skew_seconds:
        raise SettingsError(
            f"the position {format_utc(checkpoint.revision)} was committed at "
            f"{format_utc(checkpoint.updated_at)}, by a clock that was ahead of this one: what was received "
            "by then is not known. Check this machine's clock. If it is right, start `bridge run`: it goes "
            "back to what is certain, and declares the gap"
        )
    forecast = LimitForecast(settings, checkpoint, now, revision)
    if revision < forecast.oldest_replayable:
        raise SettingsError(
            f"{format_utc(revision)} is too old: the provider can replay only from "
            f"{format_utc(forecast.oldest_replayable)}, and what lies before would become a gap"
        )
    since = deduplicated_from(settings.feed, revision)
    lag_days = settings.topics.min_compaction_lag_days
    if since < now - lag_days * DAY_MS / 1000:
        raise SettingsError(
            f"{format_utc(revision)} is too old: compaction removes earlier versions of bets received more "
            f"than {lag_days:g} days ago (topics.min_compaction_lag_days), so the deduplicator could not "
            "tell what is published"
        )
    with Registry(settings.registry) as registry:
        reader = ReachReader(settings, topics.declare(settings), registry.schema_by_id)
        reaches, lost = reader.compare(clients.admin(settings.kafka), checkpoint)
    return MovePlan(
        checkpoint,
        revision,
        since,
        _records_since(settings, since),
        forecast,
        settings.limits.large_age_seconds / settings.limits.scale,
        members(settings),
        reaches,
        lost,
    )


def _records_since(settings: Settings, since: float) -> int:
    """Count the offsets in the topic of bets from this time of receipt on."""
    topic = topics.declare(settings).bets.name
    client = admin.require_topic(settings.kafka, topic)
    ends = admin.end_offsets(client, topic, admin.partition_count(client, topic))
    return sum(ends) - sum(admin.offsets_since(client, topic, since, ends))


def commit_move(owned: OwnedFeed, plan: MovePlan, reason: str) -> None:
    """Commit the new position, and the gap if there is one.

    Raises BridgeError if the checkpoint is not the one of the plan, and as `OwnedFeed.commit`.
    """
    before = owned.checkpoint
    plan.checkpoint.counters.balance()  # as the owner's are, after a newer bridge that counted more
    if before != plan.checkpoint:
        raise BridgeError(
            "the checkpoint has changed since the plan was made: another process owned the feed meanwhile. "
            "Nothing was changed; run the command again."
        )
    now = max(clock.now().wall, before.updated_at)
    move = Move(now, operator(), before.revision, plan.revision, reason)
    checkpoint = replace(
        before,
        revision=plan.revision,
        state=State.STOPPED,
        reason=format_move(move),
        since=now,
        until=None,
        updated_at=now,
        owner=owned.owner_id,
        newest=None if plan.lost else before.newest,  # a replay need not repeat what is lost
        unproven=None if plan.lost else before.unproven,
        catch_up=None,
        moved=move,
        topics=plan.topics,
        starting=False,
    )
    batch = Batch()
    for gap in filter(None, (plan.lost_gap, plan.gap)):
        batch.add(gap_record(owned.topics.gaps.name, owned.codecs.gaps, gap))
    owned.commit(batch, checkpoint)
    get().warning(
        "position moved by an operator",
        feed=before.feed,
        by=move.by,
        start=format_utc(move.start),
        end=format_utc(move.end),
        why=reason,
        gap=plan.gap is not None,
        lost=plan.lost.text if plan.lost else None,
    )


def operator() -> str:
    """Return user and host, as far as they have names."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run as a user without a name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def plan_as_json(plan: MovePlan, *, changed: bool) -> dict[str, Any]:
    """Return a plan for scripts, and whether it was carried out."""
    before, gap = plan.checkpoint.revision, plan.gap
    return {
        "feed": plan.checkpoint.feed,
        "from": before,
        "fromTime": format_utc(before),
        "to": plan.revision,
        "toTime": format_utc(plan.revision),
        "receivedAgainSeconds": max(0, before - plan.revision),
        "restoredSince": format_utc(plan.since),
        "restoredRecords": plan.records,
        "restoredBytes": plan.records * DEDUPLICATOR_BYTES,
        "gap": gap and gap_as_json(gap),
        "lost": plan.lost and plan.lost.text,
        "lostGap": plan.lost_gap and gap_as_json(plan.lost_gap),
        "recovery": plan.recovery,
        "limits": forecast_as_json(plan.forecast),
        "members": None if plan.group is None else [member.name for member in plan.group.members],
        "changed": changed,
    }


def plan_as_lines(plan: MovePlan) -> str:
    """Return a plan for people."""
    before, after, forecast, gap = plan.checkpoint.revision, plan.revision, plan.forecast, plan.gap
    lines = [
        f"feed        {plan.checkpoint.feed}",
        f"position    {format_utc(before)} ({before})",
        f"new         {format_utc(after)} ({after})",
    ]
    if gap is None:
        lines.append(
            f"again       {format_duration(before - after)} of the feed is received again; what is published "
            "is dropped"
        )
    else:
        lines.append(
            f"gap         {format_duration(gap.seconds)}: bets published from {format_utc(gap.start)} to "
            f"{format_utc(gap.end)} are skipped, and declared as a gap"
        )
    if plan.lost is not None:
        lines.append(f"lost        {plan.lost.text}")
    if (lost := plan.lost_gap) is not None:
        since = format_utc(lost.start) if lost.start else "the beginning"
        lines.append(
            f"gap         what was published from {since} to {format_utc(lost.end)} may be missing, and is "
            "declared as a gap"
        )
    lines.append(
        f"restored    at most {plan.records:,} bets, received since {format_utc(plan.since)}: up to "
        f"{plan.records * DEDUPLICATOR_BYTES / 1e6:,.0f} MB of memory at the next start"
    )
    recovery = format_duration(forecast.recovery_seconds)
    lines.append(f"recovery    {recovery}, {plan.recovery} by the provider's limits")
    lines += [f"  {limit.name:8}  {limit.words} used" for limit in forecast.usage]
    if forecast.reconnect.until <= forecast.at:
        lines.append("connect     allowed now")
    else:
        until = forecast.reconnect.until
        wait = format_duration(until - forecast.at)
        lines.append(
            f"connect     not before {format_utc(round(until, 3))}, in {wait}: {forecast.reconnect.reason}"
        )
    return "\n".join(lines)
