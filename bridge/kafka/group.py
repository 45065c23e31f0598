"""Who is in the leadership group, and whom a process that stands by waits for.

A member that was killed keeps its place until its session ends, and until then nothing tells it from one
that lives. What can be said is by when the place of a dead one is free. Seen with Kafka 4.3:

- While nobody joins, the dead owner stays assigned. A newcomer starts a rebalance, which waits for all
  members: for a dead one until its session ends. Meanwhile the group tells who held the partition before.
- A member that has joined that rebalance and is killed while it waits is not missed: it becomes a member of
  the next generation, and only then does its session begin to run. So where several are waited for, one
  session may not be enough, but two are. This is how the dead pile up when a bridge dies every few seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bridge.clock import Instant
from bridge.formatting import format_utc


class Member(NamedTuple):
    """A member of a group; `holds` says whether the partition is assigned to it."""

    id: str
    name: str
    """Its client.id. That of a `bridge run` is the owner id in the checkpoints that it writes."""
    host: str
    holds: bool


class Group(NamedTuple):
    """A group at one moment; `joining` while a rebalance waits for members to join it."""

    members: tuple[Member, ...] = ()
    joining: bool = False

    @property
    def owners(self) -> list[str]:
        """The hosts of the members that are assigned the partition, one at most."""
        return [member.host for member in self.members if member.holds]

    @property
    def standbys(self) -> int:
        """How many are not."""
        return len(self.members) - len(self.owners)

    def awaited(self, last: str = "") -> tuple[Member, ...]:
        """Who holds the partition; else the `last` owner known, by name; else all that it may depend on."""
        return (
            tuple(member for member in self.members if member.holds)
            or tuple(member for member in self.members if member.name == last)
            or self.members
        )


def sessions(group: Group, awaited: Sequence[Member]) -> int:
    """After how many session time-outs the places of those that are dead are free at the latest."""
    return 2 if group.joining and len(awaited) > 1 else 1


def whole(moment: float) -> float:
    """The first whole second that is not before a moment."""
    return float(math.ceil(moment))


def release(awaited: Sequence[Member], by: float) -> str:
    """By when the places of dead members are free, in words; `by` in Unix seconds."""
    if len(awaited) == 1:
        return f"if it is dead, its place is free by {format_utc(by)}"
    return f"the places of those that are dead are free by {format_utc(by)}"


class Wait(NamedTuple):
    """Whom a standby waits for, in words, and until when if he is dead, in Unix seconds."""

    reason: str = ""
    until: float | None = None


class Watch:
    """What a standby makes of one look at the group after another.

    The members that it finds are doubted for a session from the first look on, and anew when some of
    them have changed or a rebalance has ended. Who is there after that lives.
    """

    def __init__(self, name: str, session_seconds: float) -> None:
        self._name = name
        self._session = session_seconds
        self._until = Instant(0.0, 0.0)
        self._seen: frozenset[str] | None = None
        self._joining = False

    def look(self, group: Group, now: Instant) -> Wait:
        """Whom the member of this name waits for, as of `now`."""
        if any(member.holds and member.name == self._name for member in group.members):
            return Wait()  # it is about to hear of it
        others = group._replace(members=tuple(m for m in group.members if m.name != self._name))
        seen = frozenset(member.id for member in others.members)
        awaited = others.awaited()
        if seen != self._seen or (self._joining and not group.joining):
            patience = self._session * sessions(others, awaited)
            self._until = Instant(whole(now.wall + patience), now.monotonic + patience)
        self._seen, self._joining = seen, group.joining
        if not awaited:
            return Wait()
        names = ", ".join(sorted(member.name for member in awaited))
        if now.monotonic < self._until.monotonic:
            return Wait(f"waits for {names}; {release(awaited, self._until.wall)}", self._until.wall)
        if others.owners:
            return Wait(f"{names} owns the feed")
        return Wait(f"waits for the group to settle, with {names}")
