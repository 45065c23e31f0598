"""Elects a leader: the member of a consumer group that is assigned the one partition of a topic.

All bridges of a feed are members of one group that subscribes to the checkpoint topic; the assigned one
owns the feed. Each snapshot job has a separate group, which subscribes to the topic of snapshots.
Membership is dynamic, because a static member keeps its place for a whole session time-out even after a
clean close, and cooperative, so that a standby that joins takes nothing away from the owner.

Only one thread uses the consumer: while it polls, the client blocks other threads, possibly forever.

The client.id of a `bridge run` in its group is its owner id, the `owner` of its checkpoints.

The assignment that this process knows may be stale after a pause or an outage. `confirm` asks the
coordinator, by a commit that only a current member can make.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge import clock
from bridge.config import KafkaSettings, Settings
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable, denied, explained, is_transient, lacks_right
from bridge.kafka.patience import ASK_SECONDS, patience
from bridge.log import get
from bridge.ownership.group import Group, Member, Refusal

POLL_SECONDS = 0.1
MAKE_SECONDS = 2.0
"""Pause before a client is made again that could not be made."""
CLOSE_SECONDS = 2.0
HANDOVER_SECONDS = 5.0
"""How long a former owner may hold the rebalance until its socket is closed."""

_HINTS = {
    KafkaError.INVALID_SESSION_TIMEOUT: "kafka.session_timeout_ms is outside of what the brokers allow",
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: "a consumer that is no bridge is in the group",
    KafkaError.GROUP_MAX_SIZE_REACHED: "the group is full by the brokers' group.max.size",
}
"""What an error of the group means, where that is known."""
_NOT_A_MEMBER = {
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._ASSIGNMENT_LOST,
}


_SETTLING = {*_NOT_A_MEMBER, KafkaError.REBALANCE_IN_PROGRESS, KafkaError._MAX_POLL_EXCEEDED}
"""Errors after which a member joins again by itself."""


def group_of(settings: Settings) -> str:
    """Return the owner group of the feed."""
    return f"{settings.topics.prefix}.{settings.feed.name}.owner"


def group_of_job(settings: Settings, job: str) -> str:
    """Return the group whose member with the partition of snapshots may run the job."""
    return f"{settings.topics.prefix}.{job}.owner"


def new_owner_id() -> str:
    """Return an owner id for a member of an owner group: host, process id, and what no other process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def is_owner_id(name: str) -> bool:
    """Whether this may be a name by `new_owner_id`."""
    return re.fullmatch(r".+:\d+:[0-9a-f]{8}", name) is not None


def as_group(listed: Any, topic: str) -> Group:
    """Convert a group as `AdminClient.list_groups` returns it; its members subscribe to the topic."""
    # An assignment, as Kafka's consumers write it: two bytes of version, the number of topics in four, then
    # of each the length of its name in two, its name, and its partitions.
    return Group(
        tuple(
            Member(m.id, m.client_id, m.client_host.lstrip("/"), m.assignment[8:].startswith(topic.encode()))
            for m in listed.members
        ),
        listed.state == "PreparingRebalance",
        protocol=listed.protocol,
    )


def look(client: AdminClient, group: str, topic: str) -> Group | None:
    """Return a group whose members subscribe to the topic; None if Kafka refuses or not all brokers answer.

    Raises KafkaUnavailable when no broker answers. Without the right to describe the group it seems to be
    empty.
    """
    admin.learn_brokers(client)
    try:
        with explained(f"listing the members of {group}", client):
            # Deprecated; but an outage during `describe_consumer_groups` ends it (decision 0005).
            listed = client.list_groups(group=group, timeout=ASK_SECONDS * patience.factor)
        found = as_group(listed[0], topic) if listed else Group()
        is_stuck = found.members and not found.owner_hosts and not found.joining
        is_gone = is_stuck and admin.topic_id(client, topic) is None
    except (TopologyError, KafkaUnavailable):
        return None
    return found._replace(gone=topic) if is_gone else found


class _Question:
    """Whether the coordinator accepts the member: one thread asks, that of the membership answers.

    Its number is the offset that is committed, which nobody reads: so an answer is known from earlier ones.
    """

    def __init__(self) -> None:
        self.number = 0
        self._asked = threading.Event()
        self._answers: SimpleQueue[int | None] = SimpleQueue()

    def ask(self) -> None:
        """Ask anew: no earlier answer counts."""
        self.number += 1
        self._answers = SimpleQueue()
        self._asked.set()

    def wait(self, goes_on: Callable[[], bool]) -> int | None:
        """Return the error code of the commit, None for success. Once it no longer goes on, all is lost."""
        while goes_on():
            with suppress(Empty):
                return self._answers.get(timeout=POLL_SECONDS)
        return KafkaError._ASSIGNMENT_LOST

    def taken(self) -> bool:
        """Return whether it was asked since the last call."""
        if not self._asked.is_set():
            return False
        self._asked.clear()  # only then: it may be asked in between
        return True

    def answer(self, code: int | None) -> None:
        """Give the answer."""
        self._answers.put(code)


class _Handover:
    """The end of a term: the partition is kept until its owner has closed the socket."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._released = 0
        """The last term released."""

    def released(self, term: int) -> None:
        """Take note that nobody uses the partition any more."""
        with self._changed:
            self._released = term
            self._changed.notify_all()

    def wait_for(self, term: int, closing: threading.Event) -> None:
        """Wait until the term is released, at most HANDOVER_SECONDS."""
        with self._changed:
            self._changed.wait_for(lambda: closing.is_set() or self._released == term, HANDOVER_SECONDS)


class LeaderElection:
    """Membership in a group, on a separate thread.

    The thread calls `changed` whenever `is_owner` changes. Before it gives the partition up it waits, at most
    `HANDOVER_SECONDS`, until the term is `released`: the next owner must not connect before the socket is
    closed. `name` is the member's client.id, by default that of all clients.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        topic: str,
        changed: Callable[[], object],
        name: str | None = None,
    ) -> None:
        self.group = group
        self._partition = TopicPartition(topic, 0)
        self._changed = changed
        self._owner = threading.Event()
        self._handover = _Handover()
        self._closing = threading.Event()
        self._refused: str | None = None
        self._refusal = Refusal()
        self._question = _Question()
        self.term = 0
        """The number of assignments so far. Work of an earlier term must not write in this one."""
        self._metadata: Any = None
        """The group's, as of the last poll; one that a rebalance has made stale aborts the transaction."""
        self._make = partial(clients.member, settings, group=group, committed=self._committed, name=name)
        self._consumer = self._make()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)
        self._thread.start()

    @property
    def is_owner(self) -> bool:
        """Whether the partition is assigned to this process, as far as it knows."""
        return self._owner.is_set()

    def check(self) -> None:
        """Raise TopologyError when Kafka does not let this process into the group."""
        if self._refused is not None:
            raise TopologyError(self._refused)

    @property
    def refusal(self) -> str:
        """Why Kafka does not let this process into the group for now, "" if it does; it goes on asking."""
        return self._refusal.text(clock.now().monotonic)

    def holds(self, term: int) -> bool:
        """Whether this process has been the owner since that term began."""
        return self.is_owner and self.term == term

    def offsets(self) -> tuple[list[TopicPartition], Any]:
        """Return arguments of `send_offsets_to_transaction` with which a stale owner cannot commit."""
        return [TopicPartition(self._partition.topic, 0, 0)], self._metadata

    def confirm(
        self, give_up: Callable[[], bool], on_error: Callable[[str], object] = lambda _: None
    ) -> bool:
        """Ask the coordinator whether this process still is the owner; wait while it is unavailable.

        `on_error` receives the reason of each delay.
        """

        def goes_on() -> bool:
            return self.is_owner and not give_up()

        while goes_on():
            self._question.ask()
            error = self._question.wait(goes_on)
            if error is None:
                return self.is_owner
            if error in _NOT_A_MEMBER:
                return False
            # A rebalance is under way, the coordinator moves, or the topic is gone.
            on_error(f"{self.group}, {self._partition.topic}: {KafkaError(error).str()}")
            time.sleep(POLL_SECONDS)
        return False

    def look(self, client: AdminClient) -> Group | None:
        """Return the group; None if Kafka refuses. As the function `look`."""
        return look(client, self.group, self._partition.topic)

    def taken(self) -> None:
        """Report that a socket may be opened from now on. A term may have more than one owner."""
        self._handover.released(0)

    def released(self, term: int) -> None:
        """Report that the owner of this term has closed its socket."""
        self._handover.released(term)

    def close(self) -> None:
        """Leave the group, so that a standby is assigned at once. Waits at most CLOSE_SECONDS."""
        self._closing.set()
        self.released(self.term)
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            self._join()
            while not self._closing.is_set():
                if reason := self._consumer.stranded:
                    self._join_again(reason)
                self._poll()
        except Exception as error:  # noqa: BLE001  # any error ends the membership
            self._refuse(f"the membership in {self.group} has ended: {error}")
            self._handover.wait_for(self.term, self._closing)
        self._owner.clear()
        self._consumer.close()

    def _join(self) -> None:
        self._consumer.subscribe(
            [self._partition.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _join_again(self, reason: str) -> None:
        """Join with a new client. The old one cannot leave: its place is free when its session ends."""
        get().warning("Kafka client is replaced, joining the group again", group=self.group, reason=reason)
        self._end_term()
        while not self._closing.is_set():
            try:
                client = self._make()
            except KafkaUnavailable as error:  # such as a certificate that is just being replaced
                get().warning("cannot join the group again yet", group=self.group, reason=str(error))
                self._closing.wait(MAKE_SECONDS)
            else:
                self._consumer.close()
                self._consumer = client
                self._join()
                return

    def _poll(self) -> None:
        # The partition is paused and never read. Polling keeps the membership.
        message = self._consumer.poll(POLL_SECONDS)
        error = message.error() if message is not None else None
        if error is not None and lacks_right(error):
            self._lacks_right(error)
        elif error is not None:
            self._on_error(error)
        self._metadata = self._consumer.consumer_group_metadata()
        if self._question.taken():
            self._ask()

    def _on_error(self, error: KafkaError) -> None:
        hint = _HINTS.get(error.code(), "`bridge doctor` may tell more")
        text = f"Kafka refuses this member of {self.group}: {error.str()}: {hint}"
        settles = is_transient(error) or error.code() in _SETTLING
        self._refusal.on_error(text, clock.now().monotonic, transient=settles)

    def _lacks_right(self, error: KafkaError) -> None:
        rights = f"Read the group {self.group}", f"Read the topic {self._partition.topic}"
        self._refuse(f"the group {self.group}: {denied(error, *rights)}")

    def _refuse(self, reason: str) -> None:
        self._refused = reason
        self._owner.clear()
        self._changed()

    def _ask(self) -> None:
        """Commit the number of the question as an offset, which nobody reads."""
        offset = TopicPartition(self._partition.topic, 0, self._question.number)
        try:
            self._consumer.commit(offsets=[offset], asynchronous=True)
        except KafkaException as exception:
            self._question.answer(exception.args[0].code())

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        errors = [e for e in (error, *(partition.error for partition in partitions)) if e is not None]
        if errors and lacks_right(errors[0]):
            self._lacks_right(errors[0])
        if all(partition.offset in (self._question.number, OFFSET_INVALID) for partition in partitions):
            self._question.answer(errors[0].code() if errors else None)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._refusal.over()
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        if self._partition in partitions:
            self.term += 1
            self._metadata = consumer.consumer_group_metadata()
            self._owner.set()
            self._changed()

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._partition in partitions:
            self._end_term()
        consumer.incremental_unassign(partitions)

    def _end_term(self) -> None:
        self._owner.clear()
        self._changed()
        self._handover.wait_for(self.term, self._closing)
