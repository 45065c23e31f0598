"""Retire a feed whose topics another one is to use: its name was changed, or the provider replaced it.

The last checkpoint of the retired feed stays, with its counters, which `bridge audit` compares with the
topics. A header says that the feed is over. In the same transaction the feed that follows takes over the
position and the connection attempts, unless it has a position of its own (decision 0029).
"""

from __future__ import annotations

from dataclasses import replace

from bridge import clock
from bridge.config import Settings
from bridge.errors import BridgeError, SettingsError
from bridge.inspection.readers import read_checkpoint
from bridge.kafka.batch import Batch
from bridge.log import get
from bridge.repair.ownership import members, owning, refuse_members, report
from bridge.repair.position import operator
from bridge.state.checkpoint import Checkpoint, State
from bridge.state.counters import Counters
from bridge.state.restore import RETIRED


def retire(settings: Settings, name: str) -> Checkpoint | None:
    """Retire the feed of that name.

    Returns the checkpoint with which `feed.name` goes on; None if it has a position of its own. One that was
    retired itself, because the name was changed and is changed back, keeps only its counters.

    Raises SettingsError for `feed.name` itself, BridgeError if the feed has no checkpoint or is over already,
    NotOwner while a bridge runs either feed, and as `owning`.
    """
    if name == settings.feed.name:
        raise SettingsError(
            f"{name} is feed.name itself: set feed.name (BRIDGE_FEED__NAME) to the feed that uses the topics "
            f"from now on, and retire the other one"
        )
    successor = None
    feed = settings.feed.model_copy(update={"name": name})
    old = settings.model_copy(update={"feed": feed})
    if read_checkpoint(old) is None:
        raise BridgeError(
            f"there is no checkpoint of a feed {name} under {settings.topics.prefix}. Check the name, and "
            f"topics.prefix (BRIDGE_TOPICS__PREFIX); the error of a refused feed has the name"
        )
    refuse_members(settings, members(settings))  # a bridge that takes over now would not know what follows
    with owning(old, beside=settings.feed.name) as owned:
        last, batch = owned.checkpoint, Batch()
        if last is None or owned.state.is_retired(owned.lost, report):
            raise BridgeError(f"the feed {name} is over already: there is nothing to retire")
        now = max(clock.now().wall, last.updated_at)
        state = owned.state.of_feed(settings)
        own = read_checkpoint(settings)
        if own is None or state.is_retired(owned.lost, report):
            counters = Counters() if own is None else own.counters
            successor = replace(
                last, feed=settings.feed.name, counters=counters, updated_at=now, owner=owned.owner_id
            )
            batch.add(owned.record(successor))
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
    return successor
