"""Read the committed checkpoint; print it, the leadership and settled bets."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.clock import MICROS
from bridge.config import Settings
from bridge.errors import SchemaError
from bridge.feed.catch_up import CatchUp
from bridge.formatting import format_duration, format_utc, plural
from bridge.inspection.limits import attempt_as_line
from bridge.kafka import admin, topics
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.group import Group, Member, release, sessions
from bridge.kafka.outage import outage
from bridge.kafka.reader import Foreign, at, key_of
from bridge.kafka.registry import Registry
from bridge.state.checkpoint import Checkpoint
from bridge.state.restore import StateReader

ANSWER_SECONDS = 15.0
LATELY_SECONDS = 10.0
"""An owner that has committed this recently is alive: it commits each message, including pings."""
MOST_DECIMALS = 8
"""Decimals that are shown of an amount of money."""


class Bet(NamedTuple):
    """A settled bet as a reader of the topic sees it."""

    record: Record
    offset: int
    datum: dict[str, Any] | None
    """None for a tombstone."""


def read_checkpoint(settings: Settings) -> Checkpoint | None:
    """Return the last committed checkpoint of the feed, None before the first.

    Does not wait for an open transaction: one of a dead owner stays open until its group membership ends,
    and until then the checkpoint shows why the feed has no owner.

    Raises KafkaUnavailable when it cannot be read within `ANSWER_SECONDS`, TopologyError otherwise.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    declared = topics.declare(settings)
    admin.look_for(settings.kafka, declared.checkpoints.name)
    deadline = time.monotonic() + ANSWER_SECONDS
    given_up, reasons = False, [""]

    def give_up() -> bool:
        nonlocal given_up
        given_up = given_up or time.monotonic() > deadline
        return given_up

    with Registry(settings.registry) as registry:
        state = StateReader(settings, declared, registry.schema_by_id)
        value = state.checkpoint(give_up, reasons.append, visible=True)
        if given_up:
            what = f"{declared.checkpoints.name} could not be read within {format_duration(ANSWER_SECONDS)}"
            raise KafkaUnavailable(outage.explain(f"{what}: {reasons[-1] or 'no broker answers'}"))
        codec = registry.codec("feed-checkpoint")
        return None if value is None else Checkpoint.from_avro(codec.decode(value))


def bets_of(codec: Codec, messages: Iterable[Message], foreign: Foreign) -> Iterator[Bet]:
    """Yield the settled bets in records of their topic; count in `foreign` the records without one."""
    for message in messages:
        value = message.value()
        try:
            key = key_of(message)
            datum = None if value is None else codec.decode(value)
        except SchemaError as error:
            foreign.add(at(message, error))
            continue
        topic, received = message.topic() or "", message.timestamp()[1]
        record = Record(topic, key, value or b"", received, partition=message.partition() or 0)
        yield Bet(record, message.offset() or 0, datum)


_MOMENTS = {"updatedAt", "since", "until", "newestSettlement", "at", "answeredAt", "position"}
"""The fields of a checkpoint that are date-times."""


def checkpoint_as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the checkpoint with its date-times in ISO 8601."""
    datum = checkpoint.to_avro()
    datum["revisionTime"] = format_utc(checkpoint.revision)
    for place in (datum, *datum["connections"], datum["catchUp"] or {}):
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
    if checkpoint.reason:
        lines.append(f"reason      {checkpoint.reason}")
    if checkpoint.until is not None:
        lines.append(f"until       {format_utc(checkpoint.until)}")
    if checkpoint.catch_up is not None:
        lines.append(f"catching up: {_progress(checkpoint.catch_up, now)}")
    if checkpoint.skew is not None:
        lines.append(f"clock       provider clock offset: {checkpoint.skew:+.1f}s (max)")
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
        "attempts",
    ]
    return "\n".join([*lines, *map(attempt_as_line, checkpoint.ledger)])


def leadership_as_json(group: Group | None, last: Checkpoint, session: float, now: float) -> dict[str, Any]:
    """Return the owner group and the age of the last commit; None for what Kafka does not report."""
    awaited = group.awaited(last.owner) if group else ()
    return {
        "owners": group and group.owners,
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
    owned = group.owners and not group.joining
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


def bet_as_json(bet: Bet) -> dict[str, Any]:
    """Return a whole record; its date-times are microseconds, as in Avro."""
    record = bet.record
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": bet.offset,
        "timestamp": record.timestamp,
        "key": (record.key or b"").decode("utf-8", "replace"),
        "value": bet.datum,
    }


def amount_in_words(amount: Mapping[str, Any] | None) -> str:
    """Return an amount for people; with an impossible precision, as an integer and a power of ten."""
    if amount is None:
        return "—"
    value, precision = amount["value"], amount["precision"]
    exact = Decimal(value).scaleb(-precision) if 0 <= precision <= 30 else None
    number = f"{value}e-{precision}" if exact is None else f"{exact:,.{min(precision, MOST_DECIMALS)}f}"
    return f"{number} {amount['currency'] or ''}".rstrip()


def payout_in_words(value: float, amount: Mapping[str, Any] | None) -> str:
    """Return the decimal that a payout's double stands for, with at least the decimals of the stake.

    A double holds 15 digits: the rest, as in 784.1062000000001, is a rounding error of the provider. A
    payout whose cents are beyond those digits is shown as it is.
    """
    if abs(value) >= 1e13:
        return f"{value:,}"
    most = min(MOST_DECIMALS, 15 - len(str(int(abs(value)))))
    least = 2 if amount is None else max(0, min(amount["precision"], most))
    text = f"{round(value, most) + 0.0:,.{most}f}"  # + 0.0: no -0.00
    whole, _, decimals = text.partition(".")
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


BET_HEAD = f"{'settled, UTC':<19}  {'result':<11} {'payout':>12} {'stake':>16} {'items':>5}  bet"
"""The columns of `bet_as_line`."""


def bet_as_line(bet: Bet, width: int) -> str:
    """Return a bet for people on a line of `width` characters; a long id is shortened in the middle."""
    key, datum = (bet.record.key or b"").decode("utf-8", "replace"), bet.datum
    settled, result, payout, stake, items = "", "removed", "", "", ""
    if datum is not None:
        settled = format_utc(datum["settlementTime"] / MICROS)[:19].replace("T", " ")
        result = f"{datum['betSettlement']} v{datum['settlementVersion']}"
        payout, stake = payout_in_words(datum["payout"], datum["amount"]), amount_in_words(datum["amount"])
        items = str(len(datum["selections"] or ()))
    line = f"{settled:<19}  {result:<11} {payout:>12} {stake:>16} {items:>5}  "
    room = max(width - len(line), 3)
    return line + (key if len(key) <= room else f"{key[: room // 2]}…{key[room // 2 + 1 - room :]}")
