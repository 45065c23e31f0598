"""The lock of a snapshot job, which is also the lease of its transactional writer: two runs never overlap.

It is taken as the feed is (`bridge.ownership.election`): by the assignment of the one partition of the topic
of snapshots, in a consumer group of the job's own. A process that dies loses it when its session ends.

An outage that outlasts a session takes the lock too, and gives it back. So it counts as taken over only
after `REGAIN_SECONDS` in which brokers answer and it is not ours.

A run that finds a topic gone ends: writing could create the topic again, without its settings and without
the records that this run does not write.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bridge import clock
from bridge.config import KafkaSettings, Settings
from bridge.errors import BridgeError, NotCommitted, NotOwner, TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.ownership.election import LeaderElection, group_of_job
from bridge.records import topics
from bridge.snapshots import storage
from bridge.snapshots.model import Job

POLL_SECONDS = 0.2
LOOK_SECONDS = 3.0
"""Between two looks at the topics: a broker that starts or elects leaders knows all of them again by then."""
REGAIN_SECONDS = 30.0
"""While Kafka answers: a lock that is not ours again by then belongs to another run."""


class Busy(BridgeError):
    """Another run of the job is at work. Nothing was done."""


def recreated(topic: str) -> TopologyError:
    """Return the error for a topic that has lost the records that this run would not write."""
    return TopologyError(
        f"the topic {topic} was recreated during the run: it lacks records that this run would not write. "
        "Nothing is published; the next run fetches everything."
    )


class Lock:
    """A place in the line for a job, until `close`.

    `on_error` receives what was attempted and Kafka's error whenever an attempt fails and is repeated. `stop`
    ends every wait. `elect` joins the group.
    """

    def __init__(
        self,
        settings: Settings,
        job: Job,
        stop: threading.Event,
        on_error: Callable[[str], None],
        elect: Callable[[KafkaSettings, str, str, Callable[[], object]], LeaderElection] = LeaderElection,
    ) -> None:
        self._settings = settings
        self._job = job
        self._stop = stop
        self._on_error = on_error
        self._changed = threading.Event()
        self._snapshots = topics.declare(settings).snapshots.name
        self._attempted = ""
        """What is being written; empty while nothing is."""
        self._deadline = math.inf
        self._topics = {self._snapshots}
        """Topics that must exist."""
        self._missing: set[str] = set()
        """Those that were missing at the last look."""
        self._looked_at = -math.inf
        self._missed: float | None = None
        """For how many seconds brokers have answered while the lock was not ours; None if they have not."""
        self._client: AdminClient | None = None
        """For looks at the topics; another one after a look that failed."""
        self._election = elect(
            settings.kafka, group_of_job(settings, job), self._snapshots, self._changed.set
        )

    def close(self) -> None:
        """Give up the place."""
        self._election.close()

    def acquire(self, seconds: float | None, on_wait: Callable[[], None] = lambda: None) -> None:
        """Wait for the lock, for at most `seconds`; None waits without limit. Calls `on_wait` while it waits.

        Raises NotCommitted if `stop` was set first, Busy when the time is over and another run is at work,
        KafkaUnavailable when no broker answers then, TopologyError when a right is missing.
        """
        deadline = math.inf if seconds is None else clock.now().monotonic + seconds
        told = ""
        while not self._election.is_owner:
            self._election.check()
            on_wait()
            if (refusal := self._election.refusal) != told:
                told = refusal
                if refusal:
                    self._on_error(refusal)
            self._must_not_stop()
            if clock.now().monotonic > deadline:
                # No broker, no assignment: then nobody is at work, as far as anyone can tell.
                admin.metadata(clients.admin(self._settings.kafka))
                if refusal:
                    raise KafkaUnavailable(refusal)
                raise Busy(
                    f"another `bridge {self._job}` is running with this topics.prefix; wait for it or stop "
                    "it. `kafka-consumer-groups --describe --members --group "
                    f"{group_of_job(self._settings, self._job)}` shows on which host it runs. One that was "
                    "killed keeps its place until its session ends (kafka.session_timeout_ms, 10 s)."
                )
            self._changed.wait(POLL_SECONDS)
            self._changed.clear()

    @contextmanager
    def attempting(self, what: str, patience: float | None, written: Iterable[str]) -> Iterator[None]:
        """Begin an attempt to write to these topics, for `patience` seconds; None for no limit."""
        self._attempted = what
        self._deadline = math.inf if patience is None else clock.now().monotonic + patience
        self._topics, self._missing = {self._snapshots, *written}, set()
        try:
            yield
        finally:
            self._attempted, self._deadline = "", math.inf

    def check(self) -> None:
        """Return if the run may go on. To be called often while the lock is needed.

        Raises NotOwner when another run has taken over, TopologyError when a right or a topic is gone,
        NotCommitted when stopped, KafkaUnavailable after the deadline. While something is written, or the
        lock is not ours, blocks for up to 3 s every `LOOK_SECONDS`.
        """
        if self._is_late():
            raise KafkaUnavailable("Kafka has not taken all of it")
        self._must_go_on()

    def must_have_topics(self) -> None:
        """Raise KafkaUnavailable if a topic is missing now, for the moment or for good."""
        if missing := self._missing_topics():
            raise KafkaUnavailable(f"the topic {min(missing)} does not exist")

    # The lease.

    def confirm(self) -> None:
        """Win the lock back if it is lost, and have the coordinator confirm it. Raises as `check`."""
        while not self._election.is_owner:
            self._must_not_stop()
            self._look()
            self._stop.wait(POLL_SECONDS)
        if not self._election.confirm(self._is_over):
            self._election.check()  # the coordinator may have refused for want of a right
            raise KafkaUnavailable("nobody confirms that the lock is ours")

    def committed(self, *, visible: bool) -> bytes | None:
        """Return the value of the last Snapshot record, undecoded: it may be asked for without a registry."""
        found = storage.last_record(self._settings, self._job, visible=visible)
        return None if found is None else found.value()

    def check_sentinel(self, found: bytes | None, last: bytes | None) -> None:
        """Raise if the Snapshot record `found` is not the `last` one of this run."""
        if found is None and last is not None:
            raise recreated(self._snapshots)
        if found != last:
            raise NotOwner(f"another `bridge {self._job}` has published since")

    def offsets(self) -> tuple[list[TopicPartition], Any]:
        """Return the arguments that fail the commit of a run that has lost the lock."""
        if not self._election.is_owner:
            # Seen: with the membership of before an outage, the call that takes them does not return.
            raise KafkaUnavailable("the lock has to be won again")
        return self._election.offsets()

    def pause(self, reason: str, seconds: float) -> None:
        """Report a failure and wait before the next attempt. Raises KafkaUnavailable after the deadline."""
        reason = f"{self._attempted}: {reason}"
        if self._is_late():
            raise KafkaUnavailable(reason)
        self._on_error(reason)
        self._stop.wait(seconds)
        self._must_go_on()

    def _is_over(self) -> bool:
        if self._stop.is_set() or self._is_late():
            return True
        self._must_go_on()
        return False

    def _is_late(self) -> bool:
        return clock.now().monotonic > self._deadline

    def _must_not_stop(self) -> None:
        if self._stop.is_set():
            raise NotCommitted(f"stopped before Kafka had taken the snapshot of {self._job}")

    def _must_go_on(self) -> None:
        self._must_not_stop()
        with suppress(KafkaUnavailable):  # then no topic was deleted, and nobody has the lock
            self._look()

    def _look(self) -> None:
        """Look after lock and topics. Raises as `check`, and KafkaUnavailable if no broker answers."""
        self._election.check()
        if owner := self._election.is_owner:
            self._missed = None
        now = clock.now().monotonic
        if now - self._looked_at < LOOK_SECONDS or (owner and not self._attempted):
            return
        try:
            missing = self._missing_topics()
        except KafkaUnavailable:
            self._missed = None
            raise
        finally:
            self._looked_at = clock.now().monotonic
        gone, self._missing = missing & self._missing, missing
        if gone:
            raise TopologyError(
                f"the topic {min(gone)} is gone: it was deleted during this run, or the right to "
                "describe it was taken away. The next run creates it again."
            )
        if not owner:
            # A longer time without a look counts as little: Kafka may have been unavailable for most of it.
            self._missed = 0 if self._missed is None else self._missed + LOOK_SECONDS
            if self._missed >= REGAIN_SECONDS:
                raise NotOwner(f"another `bridge {self._job}` has taken over; nothing was published")

    def _missing_topics(self) -> set[str]:
        client, self._client = self._client or clients.admin(self._settings.kafka), None
        found = admin.metadata(client).topics
        self._client = client
        return self._topics.difference(found)
