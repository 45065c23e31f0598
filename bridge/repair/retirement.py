"""Retire a feed whose topics another one is to use: its name was changed, or the provider replaced it.

The last checkpoint of the retired feed stays, with its counters, which `bridge audit` compares with the
topics. A header says that the feed is over. In the same transaction the feed that follows takes over the
position and the connection attempts, unless it has a checkpoint already (decision 0029).
"""

from __future__ import annotations

from dataclasses import replace

from bridge import clock
from bridge.config import Settings
from bridge.errors import BridgeError, SettingsError
from bridge.inspection.readers import read_checkpoint
from bridge.kafka.batch import Batch
from bridge.log import get
from bridge.repair.ownership import owning
from bridge.repair.position import operator
from bridge.state.checkpoint import Checkpoint, State
from bridge.state.counters import Counters
from bridge.state.restore import RETIRED


def retire(settings: Settings, name: str) -> Checkpoint | None:
    """Retire the feed of that name. Returns the first checkpoint of `feed.name`, None if it had one.

    Raises SettingsError for `feed.name` itself, BridgeError if that feed has no checkpoint, and as `owning`:
    NotOwner while a bridge runs it.
    """
    if name == settings.feed.name:
        raise SettingsError(
            f"{name} is feed.name itself: set feed.name (BRIDGE_FEED__NAME) to the feed that uses the topics "
            f"from now on, and retire the other one"
        )
    successor = None
    feed = settings.feed.model_copy(update={"name": name})
    with owning(settings.model_copy(update={"feed": feed}), alone=False) as owned:
        last, batch = owned.checkpoint, Batch()
        if last is None:
            raise BridgeError(f"there is no checkpoint of the feed {name} under {settings.topics.prefix}")
        now = max(clock.now().wall, last.updated_at)
        if read_checkpoint(settings) is None:
            successor = replace(
                last, feed=settings.feed.name, counters=Counters(), updated_at=now, owner=owned.owner_id
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
