"""The members of the owner group, and how long a standby waits for them.

A member that was killed keeps its place until its session ends, and until then looks alive. Only the time
by which the place of a dead member is free is known. Seen with Kafka 4.3:

- While nobody joins, the dead owner stays assigned. A newcomer starts a rebalance, which waits for all
  members: for a dead one until its session ends. Until then the group shows the last assignment.
- A member that is killed while it waits in a rebalance becomes a member of the next generation, and only
  then does its session begin to run. So several members may take two sessions, not more. Dead members
  accumulate this way when a bridge dies every few seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from bridge.clock import Instant
from bridge.formatting import format_utc

REFUSED_SECONDS = 30.0
"""How long an error counts that is not repeated, and must last that may pass. A client joins each second."""


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
    gone: str = ""
    """The topic that nobody can be assigned, because it does not exist; empty if it does, or is assigned."""
    protocol: str = ""
    """The assignor that all members use; empty if there is none."""

    @property
    def owner_hosts(self) -> list[str]:
        """The hosts of the members that are assigned the partition, one at most."""
        return [member.host for member in self.members if member.holds]

    @property
    def standbys(self) -> int:
        """The number of members without the partition."""
        return len(self.members) - len(self.owner_hosts)

    def awaited(self, last: str = "") -> tuple[Member, ...]:
        """The member that holds the partition, else the `last` owner by name, else all members."""
        return (
            tuple(member for member in self.members if member.holds)
            or tuple(member for member in self.members if member.name == last)
            or self.members
        )


def sessions(group: Group, awaited: Sequence[Member]) -> int:
    """Return the number of session time-outs after which the places of dead members are free."""
    return 2 if group.joining and len(awaited) > 1 else 1


def release(awaited: Sequence[Member], by: float) -> str:
    """Format the time by which the places of dead members are free; `by` in Unix seconds."""
    if len(awaited) == 1:
        return f"if it is dead, its place is free by {format_utc(by)}"
    return f"the places of those that are dead are free by {format_utc(by)}"


class Refusal:
    """What Kafka has against a member, as of the last error that its client has reported.

    Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._text = ""
        self._transient = False
        self._began = self._heard = -math.inf

    def on_error(self, text: str, now: float, *, transient: bool) -> None:
        """Take an error; one that is `transient`, such as that of a rebalance, counts only once it lasts."""
        if now > self._heard + REFUSED_SECONDS:
            self._began = now
        self._text, self._heard, self._transient = text, now, transient

    def over(self) -> None:
        """Kafka has let the member in."""
        self._heard = -math.inf

    def text(self, now: float) -> str:
        """Return the error, "" for none."""
        lasts = now >= self._began + (REFUSED_SECONDS if self._transient else 0.0)
        return self._text if lasts and now <= self._heard + REFUSED_SECONDS else ""


class WaitEstimate(NamedTuple):
    """The members that a standby waits for, in words, and when a dead one's place is free, Unix seconds."""

    reason: str = ""
    until: float | None = None


_UNLISTED = (
    "Kafka lists no member of the group, not even this one: a consumer of another kind is in it "
    "(group.protocol=consumer), or no broker can coordinate it; `bridge doctor` tells"
)


class StandbyWait:
    """Follows the group for a standby.

    Members may be dead for a session from the first look on, and again when some of them have changed or a
    rebalance has ended. A member that is still there afterwards is alive.
    """

    def __init__(self, name: str, session_seconds: float) -> None:
        self._name = name
        self._session = session_seconds
        self._until = Instant(0.0, 0.0)
        self._seen: frozenset[str] | None = None
        self._joining = False

    def estimate(self, group: Group, now: Instant) -> WaitEstimate:
        """Return the members that this one waits for, as of `now`."""
        if group.gone:
            return WaitEstimate(f"nobody can own the feed: the topic {group.gone} is gone")
        if any(member.holds and member.name == self._name for member in group.members):
            return WaitEstimate()  # its assignment is on the way
        others = group._replace(members=tuple(m for m in group.members if m.name != self._name))
        seen = frozenset(member.id for member in others.members)
        awaited = others.awaited()
        if seen != self._seen or (self._joining and not group.joining):
            patience = self._session * sessions(others, awaited)
            self._until = Instant(math.ceil(now.wall + patience), now.monotonic + patience)
        self._seen, self._joining = seen, group.joining
        if not awaited:
            return (
                WaitEstimate()
                if group.members or now.monotonic < self._until.monotonic
                else WaitEstimate(_UNLISTED)
            )
        names = ", ".join(sorted(member.name for member in awaited))
        if now.monotonic < self._until.monotonic:
            return WaitEstimate(f"waits for {names}; {release(awaited, self._until.wall)}", self._until.wall)
        if others.owner_hosts:
            return WaitEstimate(f"{names} owns the feed")
        return WaitEstimate(f"waits for the group to settle, with {names}")
