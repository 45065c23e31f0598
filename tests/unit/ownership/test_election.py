"""Leadership is given up only after its work has ended; the owner group is read as a broker tells it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from bridge import clock
from bridge.clock import Instant
from bridge.config import KafkaSettings
from bridge.kafka import clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.ownership.election import LeaderElection, _Question, as_group, look
from bridge.ownership.group import Group, Member
from tests.unit.kafka.forgotten_brokers import GROUP, Broker
from tests.unit.kafka.lost_brokers import TOPIC, LostBrokers

# As a broker gave them. What an assignor adds behind the partitions names the topic, too.
ASSIGNED = b"\0\0\0\0\0\1\0\3one\0\0\0\1\0\0\0\0\0\0\0\x15\0\0\0\1\0\3one\0\0\0\1\0\0\0\0\0\0\0\1"
NOTHING = b"\0\0\0\0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("state", "joining"),
    [("Stable", False), ("PreparingRebalance", True), ("CompletingRebalance", False), ("Empty", False)],
)
def test_a_group_is_read_as_a_broker_describes_it(state: str, joining: bool) -> None:
    members = [
        SimpleNamespace(id=name, client_id=name.upper(), client_host="/10.0.0.1", assignment=assignment)
        for name, assignment in (("a", ASSIGNED), ("b", NOTHING), ("c", b""))
    ]
    assert as_group(SimpleNamespace(state=state, members=members, protocol="range"), "one") == Group(
        (
            Member("a", "A", "10.0.0.1", True),
            Member("b", "B", "10.0.0.1", False),
            Member("c", "C", "10.0.0.1", False),
        ),
        joining,
        protocol="range",
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
def test_a_group_is_found_whose_coordinator_was_away() -> None:
    """Only brokers that the client knows are asked, and it forgets one that is away (decision 0009)."""
    with Broker(1, coordinates=False) as first, Broker(2, coordinates=True) as second:
        first.listed = [first]
        client = clients.admin(KafkaSettings(bootstrap_servers=f"127.0.0.1:{first.port}"))
        assert look(client, GROUP, "one") == Group()
        first.listed = second.listed = [first, second]
        found = look(client, GROUP, "one")
        assert found is not None
        assert [(member.name, member.holds) for member in found.members] == [("owner", True)]


PARTITION = [TopicPartition("one", 0)]


class Membership:
    """A group that assigns and revokes when the test does; a member's callbacks run in its `poll`."""

    def __init__(self) -> None:
        self.given_up = threading.Event()
        self.questions: list[int] = []
        """The offsets that the member has committed to be answered."""
        self.committed: Any = None
        """What hears the answers."""
        self._due: SimpleQueue[Callable[[], Any]] = SimpleQueue()

    def assign(self) -> None:
        """Give the partition to the member, and wait until it knows."""
        self._in_poll(lambda: self._on_assign(self, PARTITION)).wait(10)

    def revoke(self) -> None:
        """Take the partition from the member, which gives it up when it is ready."""
        self.given_up.clear()
        self._in_poll(lambda: self._on_revoke(self, PARTITION))

    def refuse(self) -> None:
        """Take the right to read the topic from the member, and wait until it knows."""
        self.complain(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    def complain(self, code: int) -> None:
        """Have Kafka refuse the member with this error, and wait until it knows."""
        said = SimpleNamespace(error=lambda: KafkaError(code))
        self._in_poll(lambda: said).wait(10)
        self._in_poll(lambda: None).wait(10)

    def answer(self, number: int, code: int | None) -> None:
        """Answer the question of that number, and wait until the member knows."""
        partition = TopicPartition("one", 0, self.questions[number])
        error = None if code is None else KafkaError(code)
        self._in_poll(lambda: self.committed(error, [partition])).wait(10)

    def _in_poll(self, call: Callable[[], Any]) -> threading.Event:
        done = threading.Event()

        def called() -> Any:
            try:
                return call()
            finally:
                done.set()

        self._due.put(called)
        return done

    # As confluent_kafka.Consumer.

    def subscribe(self, _: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self._on_assign, self._on_revoke = on_assign, on_revoke

    def poll(self, seconds: float) -> Any:
        try:
            return self._due.get(timeout=seconds)()
        except Empty:
            return None

    def incremental_unassign(self, _: list[TopicPartition]) -> None:
        self.given_up.set()

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self.questions += [partition.offset for partition in offsets]

    def incremental_assign(self, _: list[TopicPartition]) -> None: ...

    def pause(self, _: list[TopicPartition]) -> None: ...

    def consumer_group_metadata(self) -> None: ...

    def close(self) -> None: ...

    stranded = ""


@pytest.fixture
def membership(monkeypatch: pytest.MonkeyPatch) -> Membership:
    """The group of one member."""
    found = Membership()

    def member(*_: object, committed: object, **__: object) -> Membership:
        found.committed = committed
        return found

    monkeypatch.setattr(clients, "member", member)
    return found


@pytest.fixture
def election(membership: Membership) -> Iterator[LeaderElection]:
    """That member, which was assigned the partition."""
    member = LeaderElection(KafkaSettings(), "g", "one", lambda: None)
    membership.assign()
    yield member
    member.close()


class Time:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monotonic = 1_000.0
        monkeypatch.setattr(clock, "now", lambda: Instant(0.0, self.monotonic))


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (KafkaError.INVALID_SESSION_TIMEOUT, "kafka.session_timeout_ms"),
        (KafkaError.INCONSISTENT_GROUP_PROTOCOL, "a consumer that is no bridge"),
        (KafkaError.GROUP_MAX_SIZE_REACHED, "group.max.size"),
        (KafkaError.INVALID_GROUP_ID, ""),
        (KafkaError.UNKNOWN, ""),
    ],
)
def test_what_kafka_has_against_a_member_is_told_until_it_lets_it_in(
    code: int, hint: str, membership: Membership, election: LeaderElection
) -> None:
    assert election.refusal == ""
    membership.complain(code)
    said = election.refusal
    assert said.startswith(f"Kafka refuses this member of g: {KafkaError(code).str()}")
    assert hint in said
    election.check()  # it goes on asking
    membership.assign()
    assert election.refusal == ""


def test_an_error_that_passes_is_told_once_it_lasts(
    membership: Membership, election: LeaderElection, monkeypatch: pytest.MonkeyPatch
) -> None:
    time_ = Time(monkeypatch)
    for code in (KafkaError.NOT_COORDINATOR, KafkaError.REBALANCE_IN_PROGRESS):
        for _ in range(6):
            membership.complain(code)
            assert election.refusal == ""
            time_.monotonic += 4.9
        time_.monotonic += 0.7
        membership.complain(code)
        assert election.refusal
        time_.monotonic += 31  # it is not repeated
        assert election.refusal == ""


@pytest.mark.parametrize("last", [None, KafkaError.UNKNOWN_MEMBER_ID])
def test_the_answer_to_a_question_that_was_abandoned_is_not_that_to_the_next(
    last: int | None, membership: Membership, election: LeaderElection
) -> None:
    assert not election.confirm(lambda: len(membership.questions) == 1)
    answers = SimpleQueue[bool]()
    threading.Thread(target=lambda: answers.put(election.confirm(lambda: False)), daemon=True).start()
    while len(membership.questions) < 2:
        time.sleep(0.01)
    membership.answer(0, None if last else KafkaError.UNKNOWN_MEMBER_ID)
    with pytest.raises(Empty):
        answers.get(timeout=0.15)
    membership.answer(1, last)
    assert answers.get(timeout=10) == (last is None)


def loses_its_right(membership: Membership, election: LeaderElection) -> None:
    membership.refuse()
    assert not election.is_owner


def ends_an_earlier_term(membership: Membership, election: LeaderElection) -> None:
    earlier = election.term
    membership.assign()
    election.released(earlier)


def has_a_second_owner(_: Membership, election: LeaderElection) -> None:
    election.taken()
    election.released(election.term)
    election.taken()


@pytest.mark.parametrize(
    "before",
    [lambda *_: None, loses_its_right, ends_an_earlier_term, has_a_second_owner],
    ids=["revoked", "right", "earlier term", "second owner"],
)
def test_a_leader_gives_up_once_the_socket_of_its_term_is_closed(
    membership: Membership,
    election: LeaderElection,
    before: Callable[[Membership, LeaderElection], None],
) -> None:
    before(membership, election)
    membership.revoke()
    assert not membership.given_up.wait(0.15)
    assert not election.is_owner
    election.released(election.term)
    assert membership.given_up.wait(10)


def test_a_member_that_has_lost_its_brokers_joins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client would wait for ever, while the group goes on without it (decision 0009)."""
    make, made = clients.member, SimpleQueue[object]()

    def member(*arguments: Any, **options: Any) -> Any:
        made.put(None)
        return make(*arguments, **options)

    monkeypatch.setattr(clients, "STATISTICS_MS", 100)
    monkeypatch.setattr(clients, "member", member)
    with LostBrokers() as broker:
        kafka = {"bootstrap_servers": f"127.0.0.1:{broker.port}", "topic_metadata_refresh_interval_ms": 100}
        election = LeaderElection(KafkaSettings.model_validate(kafka), "g", TOPIC, lambda: None)
        made.get()
        made.get(timeout=60)
        broker.is_sound = True
        broker.joined.clear()
        assert broker.joined.wait(60)
        election.close()


def test_it_joins_again_as_soon_as_a_client_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [KafkaUnavailable("no client can be made: a file is away")] * 2
    made: list[Membership] = []

    def member(*_: object, **__: object) -> Membership:
        if made and refusals:
            raise refusals.pop()
        made.append(Membership())
        return made[-1]

    monkeypatch.setattr(clients, "member", member)
    monkeypatch.setattr("bridge.ownership.election.MAKE_SECONDS", 0.01)
    joined = LeaderElection(KafkaSettings(), "g", "one", lambda: None)
    made[0].assign()
    joined.released(joined.term)
    made[0].stranded = "it has lost all its brokers"
    while len(made) == 1:
        joined.check()
        time.sleep(0.01)
    made[1].assign()
    assert joined.is_owner
    joined.close()


def test_one_that_cannot_join_again_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Membership()
    clients_left = [first]
    tried = threading.Event()

    def member(*_: object, **__: object) -> Membership:
        if clients_left:
            return clients_left.pop()
        tried.set()
        raise KafkaUnavailable("no client can be made: a file is away")

    monkeypatch.setattr(clients, "member", member)
    joined = LeaderElection(KafkaSettings(), "g", "one", lambda: None)
    first.stranded = "it has lost all its brokers"
    assert tried.wait(10)
    joined.close()
    assert not joined._thread.is_alive()
    joined.check()


def test_what_is_asked_while_nothing_was_is_not_lost() -> None:
    question = _Question()
    seen = question._asked.is_set

    def asked_in_between() -> bool:
        was_asked = seen()
        question.ask()
        return was_asked

    question._asked.is_set = asked_in_between  # type: ignore[method-assign]
    assert not question.taken()
    question._asked.is_set = seen  # type: ignore[method-assign]
    assert question.taken()
