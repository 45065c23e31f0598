"""A model of two bridges of one feed: every order of their steps, with the real writer.

A step is one call that Kafka answers, or a connection. The environment has steps as well: it moves the group
to the other bridge, lets the replaced one notice, ends a transaction whose time-out has passed, loses an
answer, and carries out the request later. A stopped process is one whose steps come later, so the orders of
the steps are all the ways to stop, resume and replace the two. `Exploration` walks through all of them.

A bridge is a function of the answers so far: for its next call it runs again from its beginning with these
answers. So no threads are needed, a state is a value, and equal states are explored once.

Not in the model: transactions that a broker ends without markers (`test_batch_writer.py`), the rate limits,
and the sending of records before the commit, which only opens the transaction sooner.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from enum import Enum
from functools import cache
from itertools import pairwise
from traceback import walk_tb
from types import NoneType
from typing import Any, NamedTuple, TypeVar

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.config import KafkaSettings, Settings
from bridge.errors import NotOwner
from bridge.kafka import blocking, clients, transactions
from bridge.kafka.batch import Batch, Record
from bridge.ownership import batch_writer
from bridge.ownership.batch_writer import BatchWriter
from bridge.ownership.lost_record_guard import LostRecordGuard

T = TypeVar("T")

SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))
NOTHING = LostRecordGuard(SETTINGS, [])
OVERLAP = 1
"""How many bets the revision stays behind what was received."""
FENCED = KafkaError(KafkaError._FENCED, "fenced", fatal=True)
STALE = KafkaError(KafkaError.ILLEGAL_GENERATION, "stale generation", txn_requires_abort=True)
LOST = KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True)
FAILED = KafkaError(KafkaError._FATAL, "no answer, and the producer has failed", fatal=True)


class Checkpoint(NamedTuple):
    """What a bridge commits with its bets. Unique by the run that wrote it and its number there."""

    run: str
    number: int
    revision: int
    """All bets before it are committed."""
    ledger: tuple[str, ...]
    """The runs that have attempted to connect."""
    attempt: bool

    def encode(self) -> bytes:
        return json.dumps(self).encode()


@cache
def decoded(value: bytes) -> Checkpoint:
    run, number, revision, ledger, attempt = json.loads(value)
    return Checkpoint(run, number, revision, tuple(ledger), attempt)


class View(NamedTuple):
    """What a bridge knows of the group."""

    term: int = 0
    holds: bool = False
    generation: int = 0


class Transaction(NamedTuple):
    """The open transaction, as the brokers have it."""

    epoch: int
    number: int
    records: tuple[bytes, ...]


class Bridge(NamedTuple):
    """One of the two: what it knows, and the answers that it got in its present run."""

    view: View = View()
    runs: int = 0
    answers: tuple[tuple[Any, View], ...] | None = None
    """None while it stands by; the first item is the name of the run."""
    may_fence: bool = False
    """Whether the coordinator has had it as the owner since its last producer failed."""
    may_connect: bool = False
    """Whether the coordinator has had it as the owner since the record of its attempt was delivered."""


class State(NamedTuple):
    """Both bridges and Kafka, between two steps."""

    bridges: tuple[Bridge, Bridge]
    owner: int
    """The bridge to which the group's coordinator has assigned the feed."""
    generation: int
    moves: int
    """How many times the group may still move."""
    faults: int
    """How many answers may still be lost, or transactions time out."""
    epoch: int = 0
    open: Transaction | None = None
    under_way: tuple[tuple[Any, ...], ...] = ()
    """Requests whose answer is lost, and which may still be carried out."""
    committed: tuple[bytes, ...] = ()
    """Bets and checkpoints in the order of their commits."""

    def with_bridge(self, number: int, **changes: Any) -> State:
        first, second = self.bridges
        if number == 0:
            return self._replace(bridges=(first._replace(**changes), second))
        return self._replace(bridges=(first, second._replace(**changes)))

    def commit(self) -> State:
        assert self.open is not None
        return self._replace(open=None, committed=self.committed + self.open.records)

    def fence(self) -> State:
        """Return the state in which no earlier producer can write, and its transaction is aborted."""
        return self._replace(open=None, epoch=self.epoch + 1)


class Call(NamedTuple):
    """A call of a bridge that waits for its turn."""

    name: str
    arguments: tuple[Any, ...] = ()


class Suspended(BaseException):
    """The bridge has made a call that is not answered yet."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.call = call


class Run:
    """The world as one run of a bridge sees it: group, producer and readers. Replays the answers so far."""

    def __init__(self, answers: tuple[tuple[Any, View], ...]) -> None:
        (self.name, self.view), *self._answers = answers
        self._next = iter(self._answers)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Return the answer to a call. Raises it if it is an error."""
        try:
            answer, self.view = next(self._next)
        except StopIteration:
            raise Suspended(Call(name, arguments)) from None
        if isinstance(answer, KafkaError):
            raise KafkaException(answer)
        return answer

    # As `LeaderElection`.

    @property
    def term(self) -> int:
        return self.view.term

    def check(self) -> None:
        """Nobody lacks a right."""

    def holds(self, term: int) -> bool:
        return self.view.holds and self.view.term == term

    def confirm(self, give_up: Callable[[], bool], _on_error: object = None) -> bool:
        return not give_up() and self.ask("confirm") and self.view.holds

    def offsets(self) -> tuple[list[Any], None]:
        return [], None  # the model knows the generation that this bridge would send

    # As `CheckpointReader.last`.

    def checkpoint(self, *_: Any, visible: bool) -> Any:
        return self.ask("read", visible)


class Producer:
    """A transactional producer. What it produces is sent when it is flushed with the checkpoint.

    The flush of the bets before that changes no order of what is committed.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._epoch = self._number = 0
        self._records: list[bytes] = []

    def list_topics(self, topic: str, timeout: float) -> None:
        pass

    def init_transactions(self, _: float) -> None:
        self._epoch = self._run.ask("init")

    def begin_transaction(self) -> None:
        self._number += 1
        self._records = []
        self._complete = False

    def produce(self, topic: str, value: bytes, *_: Any) -> None:
        self._records.append(value)
        self._complete = topic == "checkpoints"

    def poll(self, _: float) -> None:
        pass

    def purge(self) -> None:
        pass

    def __len__(self) -> int:
        return 0

    def flush(self, _: float) -> int:
        if self._complete:
            self._run.ask("flush", Transaction(self._epoch, self._number, tuple(self._records)))
        return 0

    def send_offsets_to_transaction(self, *_: Any) -> None:
        self._run.ask("offsets", self._epoch)

    def commit_transaction(self, _: float) -> None:
        self._run.ask("commit", self._epoch, self._number)

    def abort_transaction(self, _: float) -> None:
        self._run.ask("abort", self._epoch)


class Inline:
    """A `Worker` without a thread: `submit` runs the job."""

    def __init__(self, name: str) -> None:
        pass

    def submit(self, job: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(job())
        except Exception as error:  # noqa: BLE001  # as the real worker
            future.set_exception(error)
        return future

    def close(self, seconds: float) -> None:
        pass


def own(run: Run, bets: tuple[bytes, ...]) -> None:
    """Own the feed, as `bridge.service` does, until all bets are committed. Raises NotOwner.

    Fence, read back, restore, commit the attempt, connect, ask for the ownership, publish what is new.
    """
    term = run.term
    writer = BatchWriter(SETTINGS, run, run.checkpoint, lambda _: None, NOTHING)  # type: ignore[arg-type]
    found = writer.run(writer.open).result()
    last = Checkpoint("", 0, 0, (), attempt=False) if found is None else decoded(found)
    number = 0

    def commit(revision: int, *bets: bytes, attempt: bool = False) -> None:
        nonlocal number, last
        number += 1
        ledger = (*last.ledger, run.name) if attempt else last.ledger
        last = Checkpoint(run.name, number, max(revision, last.revision), ledger, attempt)
        batch = Batch()
        for bet in bets:
            batch.add(Record("bets", b"", bet, 0))
        record = Record("checkpoints", b"", last.encode(), 0)
        writer.run(lambda: writer.commit(batch, lambda _: record, check_generation=attempt)).result()

    try:
        known = set(run.ask("restore"))
        commit(last.revision, attempt=True)
        position = last.revision
        run.ask("connect", run.name)
        if not run.confirm(lambda: not run.holds(term)):
            raise NotOwner("leadership was lost while connecting")
        for received in range(position, len(bets)):
            if not run.holds(term):
                raise NotOwner("leadership was lost")
            new = [bet for bet in bets[received : received + 1] if bet not in known]
            commit(received + 1 - OVERLAP, *new)
            known.update(new)
    except NotOwner:
        writer.close(abandon=True)
        raise


STANDS_BY, DONE = Call("stands by"), Call("done")


def plain(variables: dict[str, Any]) -> Any:
    """Return the variables that are values, in a form that can be compared."""
    values = str, bytes, int, bool, NoneType, tuple, list, set, Enum
    return tuple((name, repr(value)) for name, value in variables.items() if isinstance(value, values))


class Exploration:
    """All orders of the steps of two bridges, the first of which owns the feed and has read nothing yet.

    `bets`, `moves` of the group and `faults` are their numbers. `without` names what Kafka does not do: check
    the "generation" of an offset, deny a "confirmation", end the other's producer ("fencing"), or report that
    the outcome of a commit is unknown ("answer").
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, bets: int, moves: int, faults: int, *, without: str = ""
    ) -> None:
        self._bets = tuple(b"bet %d" % version for version in range(bets))
        self._without = without
        self.states = self.connections = 0
        self._first = State(
            (Bridge(View(1, True, 1), may_fence=True), Bridge()), 0, 1, moves=moves, faults=faults
        )
        self._call = cache(self._run)
        self._producing: Run | None = None
        self._points: dict[Any, tuple[tuple[Any, View], ...]] = {}
        self._same: dict[tuple[tuple[Any, View], ...], tuple[tuple[Any, View], ...]] = {}
        """Of answers that lead to the same point, the first ones found."""
        for module in (batch_writer, blocking):
            patch.setattr(module, "Worker", Inline)
        patch.setattr(transactions, "backoff_seconds", lambda _: 0.0)
        patch.setattr(clients, "producer", lambda *_, **__: Producer(self._producing))  # type: ignore[arg-type]
        patch.setattr(clients, "admin", lambda _: None)

    def schedules(self) -> int:
        """Check every order to its end; return their number."""
        counts: dict[State, int] = {}
        stack: list[tuple[State, list[State], Iterator[State]]] = []
        entered: State | None = self._first
        while entered is not None or stack:
            if entered is not None:
                assert len(stack) < 500, "the steps do not end"
                steps = list(self._steps(entered))
                stack.append((entered, steps, iter(steps)))
            state, following, ahead = stack[-1]
            entered = next((after for after in ahead if after not in counts), None)
            if entered is None:
                counts[state] = sum(counts[after] for after in following) or 1
                stack.pop()
        self.states = len(counts)
        return counts[self._first]

    def _run(self, answers: tuple[tuple[Any, View], ...]) -> Call:
        self._producing = run = Run(answers)
        try:
            own(run, self._bets)
        except Suspended as suspended:
            self._merge(answers, run, suspended)
            return suspended.call
        except NotOwner:
            return STANDS_BY
        return DONE

    def _merge(self, answers: tuple[tuple[Any, View], ...], run: Run, suspended: Suspended) -> None:
        """Note the first answers that have led a run to this point, with everything that it knows there."""
        frames = [frame for frame, _ in walk_tb(suspended.__traceback__)][1:]  # without `_run`
        places = tuple((frame.f_code, frame.f_lineno) for frame in frames)
        known = tuple(plain(frame.f_locals) for frame in frames)
        writer = frames[0].f_locals["writer"]._writer
        client, effort = vars(writer._client), vars(writer._effort)
        producer = vars(client["producer"]) if client["producer"] is not None else {}
        state = tuple(map(plain, (vars(writer), client, effort, producer)))
        point = (run.name, run.view, places, known, state, suspended.call)
        self._same[answers] = self._points.setdefault(point, answers)

    def _next_call(self, bridge: Bridge) -> Call:
        return STANDS_BY if bridge.answers is None else self._call(bridge.answers)

    def _steps(self, state: State) -> Iterator[State]:
        moved = False
        for number, bridge in enumerate(state.bridges):
            for after in self._steps_of(state, number, bridge):
                moved = True
                yield after
        if not moved and state.open is not None:
            yield state.fence()  # its producer is gone, so it times out
        elif not moved:
            self._check_end(state)
        yield from self._environment(state)

    def _environment(self, state: State) -> Iterator[State]:
        if state.moves:
            other = 1 - state.owner
            term, generation = state.bridges[other].view.term + 1, state.generation + 1
            yield state._replace(owner=other, generation=generation, moves=state.moves - 1).with_bridge(
                other, view=View(term, True, generation), may_fence=True, may_connect=True
            )
        for number, bridge in enumerate(state.bridges):
            if bridge.view.holds and state.owner != number:
                yield state.with_bridge(number, view=bridge.view._replace(holds=False))
        if state.faults and state.open is not None:
            yield state.fence()._replace(faults=state.faults - 1)
        for request in state.under_way:
            rest = tuple(other for other in state.under_way if other is not request)
            yield self._carry_out(state._replace(under_way=rest), request)

    def _carry_out(self, state: State, request: tuple[Any, ...]) -> State:
        """Carry out a request that its producer no longer waits for."""
        if request == ("init",):
            return state.fence()
        return self._committed(state) if state.open is not None and state.open[:2] == request else state

    def _steps_of(self, state: State, number: int, bridge: Bridge) -> Iterator[State]:
        call = self._next_call(bridge)
        stale = call is DONE and bridge.answers is not None and bridge.answers[0][1].term != bridge.view.term
        if call is STANDS_BY or stale:
            # One that has been replaced would only ask whether it is the owner, and stand by again.
            if bridge.view.holds and state.owner == number:
                name = f"{'AB'[number]}{bridge.runs + 1}"
                yield state.with_bridge(
                    number, runs=bridge.runs + 1, answers=((name, bridge.view),), may_fence=True
                )
            elif bridge.answers is not None:
                yield state.with_bridge(number, answers=None)
        elif call is not DONE:
            for after, answer in self._answers(state, number, call):
                yield self._answered(after, number, answer)

    def _answered(self, state: State, number: int, answer: Any) -> State:
        bridge = state.bridges[number]
        assert bridge.answers is not None
        answers = (*bridge.answers, (answer, bridge.view))
        self._call(answers)
        changes: dict[str, Any] = {"answers": self._same.get(answers, answers)}
        if isinstance(answer, KafkaError) and answer.fatal():
            changes["may_fence"] = state.owner == number
        return state.with_bridge(number, **changes)

    def _answers(self, state: State, number: int, call: Call) -> Iterator[tuple[State, Any]]:
        """Yield the possible answers to a call, each with the state that it leaves; none while it blocks."""
        yield from getattr(self, f"_{call.name}")(state, number, *call.arguments)

    def _confirm(self, state: State, number: int) -> Iterator[tuple[State, Any]]:
        yield state, self._is_member(state, number) or self._without == "confirmation"

    def _init(self, state: State, number: int) -> Iterator[tuple[State, Any]]:
        assert state.bridges[number].may_fence, "one that does not own the feed has fenced the other"
        after = state if self._without == "fencing" else state.fence()
        yield after, after.epoch
        if state.faults:
            yield self._unanswered(state, ("init",)), LOST

    def _read(self, state: State, number: int, visible: bool) -> Iterator[tuple[State, Any]]:
        if visible or self._reads_to_the_end(state, number):
            yield state, state.committed[-1] if state.committed else None

    def _restore(self, state: State, number: int) -> Iterator[tuple[State, Any]]:
        if self._reads_to_the_end(state, number):
            yield state, _bets(state)

    def _connect(self, state: State, number: int, run: str) -> Iterator[tuple[State, Any]]:
        assert state.bridges[number].may_connect, "one that does not own the feed has connected"
        assert any(run in checkpoint.ledger for checkpoint in _checkpoints(state)), (
            "the attempt is not committed"
        )
        self.connections += 1
        yield state, None

    def _flush(self, state: State, number: int, transaction: Transaction) -> Iterator[tuple[State, Any]]:
        if transaction.epoch != state.epoch:
            yield state, FENCED
            return
        if decoded(transaction.records[-1]).attempt:
            state = state.with_bridge(number, may_connect=state.owner == number)
        yield state._replace(open=transaction), 0

    def _offsets(self, state: State, number: int, epoch: int) -> Iterator[tuple[State, Any]]:
        if epoch != state.epoch:
            yield state, FENCED
        else:
            yield state, None if self._is_member(state, number) or self._without == "generation" else STALE

    def _commit(self, state: State, number: int, epoch: int, transaction: int) -> Iterator[tuple[State, Any]]:
        if epoch != state.epoch:
            yield state, FENCED
            return
        # Without an open transaction, a request whose answer was lost has committed it.
        yield state if state.open is None else self._committed(state), None
        if state.faults:
            lost = self._unanswered(state, (epoch, transaction))
            yield from ((lost, None if self._without == "answer" else error) for error in (LOST, FAILED))

    def _abort(self, state: State, number: int, epoch: int) -> Iterator[tuple[State, Any]]:
        yield (state._replace(open=None), None) if epoch == state.epoch else (state, FENCED)

    def _is_member(self, state: State, number: int) -> bool:
        view = state.bridges[number].view
        return state.owner == number and view.generation == state.generation

    def _reads_to_the_end(self, state: State, number: int) -> bool:
        """Return whether no open transaction hides the end, or the reader gives up."""
        return state.open is None or not state.bridges[number].view.holds

    def _unanswered(self, state: State, request: tuple[Any, ...]) -> State:
        return state._replace(faults=state.faults - 1, under_way=(*state.under_way, request))

    def _committed(self, state: State) -> State:
        after = state.commit()
        bets = _bets(after)
        assert len(set(bets)) == len(bets), "a bet was published twice"
        assert bets == self._bets[: len(bets)], "a bet was lost or went back"
        checkpoints = _checkpoints(after)
        for one, next_ in pairwise(checkpoints):
            assert next_.revision >= one.revision, "the position went back"
            assert next_.ledger[: len(one.ledger)] == one.ledger, "an attempt was forgotten"
        assert checkpoints[-1].revision <= len(bets), "the position is ahead of the bets"
        return after

    def _check_end(self, state: State) -> None:
        """Check a state in which neither has anything left to do."""
        owner = state.bridges[state.owner]
        assert self._next_call(owner) is DONE, "the owner is blocked"
        assert _bets(state) == self._bets, "a bet was lost"


def _bets(state: State) -> tuple[bytes, ...]:
    return tuple(record for record in state.committed if record.startswith(b"bet"))


def _checkpoints(state: State) -> list[Checkpoint]:
    return [decoded(record) for record in state.committed if not record.startswith(b"bet")]
