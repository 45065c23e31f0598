"""Retires a feed whose topics another one is to use: its name was changed, or the provider replaced it.

The last checkpoint of the retired feed stays, with its counters, which `bridge audit` compares with the
topics. A header says that the feed is over. In the same transaction the feed that follows gets its connection
attempts, and its position unless it has one of its own that counts (decision 0029).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bridge import clock
from bridge.config import Settings
from bridge.errors import BridgeError, NotOwner, SettingsError
from bridge.formatting import format_duration, format_utc
from bridge.inspection.readers import read_checkpoint
from bridge.kafka.batch import Batch
from bridge.log import get
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.repair.ownership import members, owning, refuse_members, report
from bridge.repair.position import operator
from bridge.stored.checkpoint_reader import RETIRED, SUCCEEDS, CheckpointReader


@dataclass(frozen=True)
class Succession:
    """How a feed goes on."""

    checkpoint: Checkpoint
    text: str
    """From which position it goes on, for the operator."""


def hand_over(
    feed: str,
    own: Checkpoint | None,
    last: Checkpoint,
    now: float,
    owner: str,
    *,
    is_over: bool = False,
    position: str = "",
) -> Succession:
    """Return how `feed` goes on when the one with the checkpoint `last` is retired; `now` in Unix seconds.

    Its `own` checkpoint counts if it has received something and `is_over` is false, which says that it was
    retired itself. If the other one wrote last, the two may be names of one feed or two feeds: `position`
    names the one whose position counts. Raises SettingsError without it, or where it makes no sense.
    """
    now = max(now, last.updated_at, own.updated_at if own else 0.0)
    counters = Counters() if own is None else own.counters
    ledger = last.ledger
    if own is None or is_over:
        if position not in ("", last.feed):
            raise SettingsError(f"--position {position}: only {last.feed} has a position that counts")
    else:
        ledger = own.attempts_with(last)
        if (position or _position(own, last)) == feed:
            kept = replace(own, ledger=ledger, updated_at=now, owner=owner)
            where = f"its own position, {format_utc(own.revision)}"
            return Succession(kept, f"{feed} goes on from {where}{_apart(own, last, f'that of {last.feed}')}")
        if position not in ("", last.feed):
            raise SettingsError(f"--position {position}: give {feed} or {last.feed}")
    taken = replace(last, feed=feed, ledger=ledger, counters=counters, updated_at=now, owner=owner)
    where = f"the position of {last.feed}, {format_utc(last.revision)}"
    return Succession(taken, f"{feed} goes on from {where}{_apart(last, own, 'its own')}")


def _position(own: Checkpoint, last: Checkpoint) -> str:
    """Return the feed whose position counts. Raises SettingsError where only an operator knows."""
    if not own.has_received:
        return last.feed
    if last.has_received and last.updated_at > own.updated_at:
        raise SettingsError(
            f"{own.feed} is at {format_utc(own.revision)}, and {last.feed}, which ran last, at "
            f"{format_utc(last.revision)}. If these are two names of one feed, give --position {last.feed}. "
            f"If they are two feeds, give --position {own.feed}: from the other position it would miss bets, "
            "and declare no gap"
        )
    return own.feed


def _apart(chosen: Checkpoint, other: Checkpoint | None, whose: str) -> str:
    if other is None:
        return ""
    seconds = chosen.revision - other.revision
    if not seconds:
        return f", the same as {whose}"
    return f", {format_duration(abs(seconds))} {'later' if seconds > 0 else 'earlier'} than {whose}"


def retire(settings: Settings, name: str, *, position: str, confirm: Callable[[str], object]) -> Succession:
    """Retire the feed of that name, once `confirm` has returned; it gets the text of the succession.

    Returns how `feed.name` goes on. `position` as in `hand_over`.

    Raises SettingsError for `feed.name` itself and as `hand_over`, BridgeError if the feed has no checkpoint
    or is over already, NotOwner while a bridge runs either feed, and as `owning` and `confirm`.
    """
    if name == settings.feed.name:
        raise SettingsError(
            f"{name} is feed.name itself: set feed.name (BRIDGE_FEED__NAME) to the feed that uses the topics "
            f"from now on, and retire the other one"
        )
    feed = settings.feed.model_copy(update={"name": name})
    old = settings.model_copy(update={"feed": feed})
    if read_checkpoint(old) is None:
        raise BridgeError(
            f"there is no checkpoint of a feed {name} under {settings.topics.prefix}. Check the name, and "
            f"topics.prefix (BRIDGE_TOPICS__PREFIX); the error of a refused feed has the name"
        )
    refuse_members(settings, members(settings))  # a bridge that takes over now would not know what follows
    with owning(old, ignoring=settings.feed.name) as owned:
        last, batch = owned.checkpoint, Batch()
        if last is None or owned.checkpoints.is_retired(owned.lost, report):
            raise BridgeError(f"the feed {name} has already been retired: there is nothing to do")
        own = read_checkpoint(settings)
        others = CheckpointReader(settings, owned.topics, owned.codecs.checkpoints.schema_by_id)
        is_over = own is not None and others.is_retired(owned.lost, report)
        succession = hand_over(
            settings.feed.name,
            own,
            last,
            clock.now().wall,
            owned.owner_id,
            is_over=is_over,
            position=position,
        )
        confirm(succession.text)
        refuse_members(settings, members(settings))
        if read_checkpoint(settings) != own:
            raise NotOwner(f"the feed {settings.feed.name} has run in the meantime. Nothing was changed")
        batch.add(owned.record(succession.checkpoint, [(SUCCEEDS, name)]))
        now = succession.checkpoint.updated_at
        over = replace(
            last,
            state=State.STOPPED,
            reason=f"retired by {operator()}: {settings.feed.name} uses the topics",
            since=now,
            until=None,
            updated_at=now,
            owner=owned.owner_id,
            catch_up=None,
        )
        owned.commit(batch, over, [(RETIRED, settings.feed.name)])
    get().warning("feed retired", feed=name, by=operator(), successor=settings.feed.name)
    return succession
