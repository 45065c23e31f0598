"""Two runs of one snapshot job never overlap, on whatever machines: a place that only one can have.

It is taken as the feed is (`bridge.kafka.election`): by the assignment of the one partition of the topic
of snapshots, in a consumer group of the job's own. A process that dies gives it up when its session ends.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from bridge import clock
from bridge.config import Settings
from bridge.errors import BridgeError, NotOwner
from bridge.kafka import admin, clients, topics
from bridge.kafka.election import LeaderElection
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots.model import Job
from bridge.snapshots.presence import Presence

POLL_SECONDS = 0.2
LOOK_SECONDS = 10.0
"""From one look for a broker to the next, while the lock is not ours."""
REGAIN_SECONDS = 30.0
"""While Kafka answers: a lock that is not ours again by then is somebody else's."""


class Busy(BridgeError):
    """Another run of the job is at work. Nothing was done."""


def owner_group(settings: Settings, job: Job) -> str:
    """The consumer group whose member with the partition of snapshots may run the job."""
    return f"{settings.topics.prefix}.{job}.owner"


def taken_over(job: Job) -> NotOwner:
    """What a run is told whose lock another one has."""
    return NotOwner(f"another `bridge {job}` has taken over; nothing was published")


class Lock:
    """A place in the line for a job; a context manager, which gives it up at the end."""

    def __init__(self, settings: Settings, job: Job) -> None:
        self._settings = settings
        self._job = job
        self._changed = threading.Event()
        self._looked_at = -math.inf
        self._missed: float | None = None
        """For how many seconds brokers have answered and the lock was not ours; None: they did not."""
        topic = topics.declare(settings).snapshots.name
        self._presence = Presence(settings, [topic])
        self.leadership = LeaderElection(settings, owner_group(settings, job), topic, self._changed.set)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leadership.close()

    def acquire(self, seconds: float | None, give_up: Callable[[], bool]) -> bool:
        """Wait until it is this process's turn, `seconds` at most; None waits for as long as it takes.

        Returns False when `give_up` said so first. Raises Busy when the time is over and another run is at
        work, KafkaUnavailable when no broker answers then, TopologyError when a right is missing.
        """
        deadline = None if seconds is None else clock.now().monotonic + seconds
        while not self.leadership.owner:
            self.leadership.check()
            if give_up():
                return False
            if deadline is not None and clock.now().monotonic > deadline:
                raise self._reason()
            self._changed.wait(POLL_SECONDS)
            self._changed.clear()
        return True

    def check(self) -> None:
        """Raise NotOwner when another run has taken over, TopologyError when a right or the topic has gone.

        To be called often while the lock is needed. A Kafka that is away for longer than a session takes
        the lock too, and gives it back to whoever waits: so only time in which a broker answers counts.
        Blocks for 3 s at most, every `LOOK_SECONDS`, while the lock is not ours.
        """
        self.leadership.check()
        if self.leadership.owner:
            self._missed = None
            return
        now = clock.now().monotonic
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            self._presence.check()
        except KafkaUnavailable:
            self._missed = None
            return
        # Nobody knows what happened in a longer time without a look.
        self._missed = 0 if self._missed is None else self._missed + LOOK_SECONDS
        if self._missed >= REGAIN_SECONDS:
            raise taken_over(self._job)

    def _reason(self) -> BridgeError:
        # No broker, no assignment: then nobody is at work, as far as anyone can tell.
        admin.metadata(clients.admin(self._settings.kafka))
        group = self.leadership.group
        return Busy(
            f"another `bridge {self._job}` is at work with this topics.prefix; wait for it or end it. "
            f"`kafka-consumer-groups --describe --members --group {group}` shows on which host it runs. "
            "One that was killed keeps its place until its session ends (kafka.session_timeout_ms, 10 s)."
        )
