"""Reads the committed checkpoint; prints it and the leadership."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from bridge.clock import MICROS
from bridge.config import Settings
from bridge.feed.catch_up import CatchUp
from bridge.formatting import format_duration, format_skew, format_utc, plural
from bridge.inspection.limits import attempt_as_line
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import outage_of
from bridge.ownership.group import Group, Member, release, sessions
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, Move
from bridge.registry import Registry
from bridge.stored.checkpoint_reader import CheckpointReader

T = TypeVar("T")

ANSWER_SECONDS = 15.0
LATELY_SECONDS = 10.0
"""An owner that has committed this recently is alive: it commits each message, including pings."""


def read_checkpoint(settings: Settings) -> Checkpoint | None:
    """Return the last committed checkpoint of the feed, None before the first.

    Does not wait for an open transaction: one of a dead owner stays open until its group membership ends,
    and until then the checkpoint shows why the feed has no owner.

    Raises KafkaUnavailable when it cannot be read within `ANSWER_SECONDS`, TopologyError otherwise.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    declared = topics.declare(settings)
    admin.require_topic(settings.kafka, declared.checkpoints.name)
    with Registry(settings.registry) as registry:
        checkpoints = CheckpointReader(settings, declared, registry.schema_by_id)
        value = read_in_time(settings, declared.checkpoints.name, partial(checkpoints.last, visible=True))
        codec = registry.codec("feed-checkpoint")
        return None if value is None else Checkpoint.from_avro(codec.decode(value))


def read_in_time(
    settings: Settings, topic: str, read: Callable[[Callable[[], bool], Callable[[str], None]], T]
) -> T:
    """Return what a method of `CheckpointReader` reads from a topic; it takes `give_up` and `on_status`.

    Raises KafkaUnavailable, with the reason of the delay, after ANSWER_SECONDS.
    """
    deadline = time.monotonic() + ANSWER_SECONDS
    given_up, reasons = False, [""]

    def give_up() -> bool:
        nonlocal given_up
        given_up = given_up or time.monotonic() > deadline
        return given_up

    found = read(give_up, reasons.append)
    if given_up:
        what = f"{topic} could not be read within {format_duration(ANSWER_SECONDS)}"
        what += f": {reasons[-1] or 'no broker answers'}"
        raise KafkaUnavailable(outage_of(settings.kafka).explain(what))
    return found


_MOMENTS = {
    *("updatedAt", "since", "until", "newestSettlement"),
    *("at", "answeredAt", "retryAt", "position", "newest"),
}
"""The fields of a checkpoint that are date-times."""


def checkpoint_as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the checkpoint with its date-times in ISO 8601."""
    datum = checkpoint.to_avro()
    datum["revisionTime"] = format_utc(checkpoint.revision)
    partitions = [partition for topic in datum["topics"] for partition in topic["partitions"]]
    parts = [datum[name] or {} for name in ("catchUp", "moved", "unproven")]
    for place in (datum, *datum["connections"], *partitions, *parts):
        for name in _MOMENTS & place.keys():
            place[name] = None if place[name] is None else format_utc(place[name] / MICROS)
    return datum


def checkpoint_as_lines(checkpoint: Checkpoint, now: float) -> str:
    """Return the checkpoint for people; `now` in Unix seconds."""
    counters, since = checkpoint.counters, checkpoint.since
    lines = [
        f"feed        {checkpoint.feed}",
        f"state       {checkpoint.state.value}"
        + (f" since {format_utc(since)}" if since is not None else ""),
    ]
    # `moved` tells it below.
    if checkpoint.reason and not (checkpoint.moved and checkpoint.reason == format_move(checkpoint.moved)):
        lines.append(f"reason      {checkpoint.reason}")
    if checkpoint.until is not None:
        lines.append(f"until       {format_utc(checkpoint.until)}")
    if checkpoint.catch_up is not None:
        lines.append(f"catching up {_progress(checkpoint.catch_up, now)}")
    if checkpoint.skew is not None:
        lines.append(f"clock       the provider's {format_skew(checkpoint.skew)}")
    age = format_duration(now - checkpoint.updated_at)
    lines += [
        f"committed   {format_utc(checkpoint.updated_at)} ({age} ago)",
        f"position    {checkpoint.revision} ({format_utc(checkpoint.revision)})",
        f"owner       {checkpoint.owner}",
        f"received    {counters.received:,}",
        f"  published     {counters.published:,} ({counters.corrections:,} of them corrections)",
        f"  duplicates    {counters.duplicates:,}",
        f"  stale         {counters.stale:,}",
        f"  dead letters  {counters.dead_lettered:,}",
        f"  pings         {counters.pings:,}",
        f"  empty         {counters.empty:,}",
    ]
    if checkpoint.moved is not None:
        lines.append(f"moved       {format_utc(round(checkpoint.moved.at))}: {format_move(checkpoint.moved)}")
    if counters.redriven:
        lines.append(f"redriven    {counters.redriven:,} dead letters, counted again by their new outcome")
    lines.append("attempts")
    return "\n".join([*lines, *map(attempt_as_line, checkpoint.ledger)])


def format_move(move: Move) -> str:
    """Return a change of the position for people, on one line."""
    why = f": {move.reason}" if move.reason else ""
    return f"{move.by} moved the position from {format_utc(move.start)} to {format_utc(move.end)}{why}"


def leadership_as_json(group: Group | None, last: Checkpoint, session: float, now: float) -> dict[str, Any]:
    """Return the owner group and the age of the last commit; None for what Kafka does not report."""
    awaited = group.awaited(last.owner) if group else ()
    return {
        "owners": group and group.owner_hosts,
        "standbys": group and group.standbys,
        "awaited": group and [member.name for member in awaited],
        "freeBy": format_utc(_free_by(group, awaited, session, now)) if group and awaited else None,
        "lastCommitAgeSeconds": round(now - last.updated_at, 3),
    }


def leadership_as_lines(group: Group | None, last: Checkpoint, session: float, now: float) -> str:
    """Return the same for people, with the time by which a dead member has left the group."""
    if group is None:
        return "leadership  unknown: the right to describe the group is missing"
    awaited = group.awaited(last.owner)
    if not awaited:
        return "leadership  no owner, 0 standbys"
    names = ", ".join(f"{member.name} from {member.host}" for member in awaited)
    standbys = plural(len(group.members) - len(awaited), "standby")
    owned = group.owner_hosts and not group.joining
    line = f"leadership  {'owned by' if owned else 'a rebalance waits for'} {names}, {standbys}"
    if owned and now - last.updated_at < LATELY_SECONDS:
        return line
    return f"{line}\n            {release(awaited, _free_by(group, awaited, session, now))}"


def _free_by(group: Group, awaited: Sequence[Member], session: float, now: float) -> float:
    return math.ceil(now + session * sessions(group, awaited))


def _progress(catch_up: CatchUp, now: float) -> str:
    if catch_up.position is None:
        return "no message with a plausible settlementTime yet"
    distance = format_duration(max(0.0, now - catch_up.position))
    position = f"{distance} behind, at {format_utc(catch_up.position)}"
    left = "" if catch_up.remaining is None else f", {format_duration(catch_up.remaining)} left"
    return f"{position}, {catch_up.rate:,.0f} messages/s{left}"
