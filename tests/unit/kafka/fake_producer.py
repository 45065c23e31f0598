"""A transactional producer that fails on demand, and what comes of its transactions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from math import inf
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from bridge.errors import TopologyError


class Topic:
    """What is committed, whoever wrote it, and how the producers are to behave."""

    def __init__(self) -> None:
        self.committed: list[bytes] = []
        self.left_open: list[bytes] = []
        """Records of a transaction that was ended without markers: the next marker ends it."""
        self.undelivered = 0
        """How many more flushes end with all records on their way."""
        self.per_flush: float = inf
        """How many records a flush delivers."""
        self.fits: float = inf
        """How many records of a transaction are ever delivered."""
        self.producers = 0
        self.calls: list[str] = []
        self.polls = 0
        self.faults: dict[str, list[Callable[[FakeProducer], None]]] = {}
        self.release = threading.Event()

    def checkpoint(
        self, give_up: Callable[[], bool], on_status: Callable[[str], None], *, visible: bool
    ) -> bytes | None:
        """The last committed checkpoint, if none behind it is hidden or only what is visible counts."""
        hidden = any(value.startswith(b"checkpoint") for value in self.left_open)
        assert visible or not hidden, "it would wait for ever"
        return next((value for value in reversed(self.committed) if value.startswith(b"checkpoint")), None)


SERVING = {"poll", "flush", "abort"}
"""Calls that may run the callbacks of deliveries."""


class FakeProducer:
    """As much of a transactional producer as the bridge uses."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.open: list[bytes] = []
        self.on_delivery: Any = None
        self.failed = False
        """Whether its records were refused: the transaction must be aborted."""
        topic.producers += 1
        self.waiting: float = 0
        """Records that are not delivered."""
        self._answers = 0
        """To questions for the brokers."""

    def _do(self, name: str) -> None:
        self.topic.calls.append(name)
        self._fail(name)

    def _fail(self, name: str) -> None:
        faults = self.topic.faults.get(name)
        if not faults:
            return
        try:
            faults.pop(0)(self)
        except KafkaException as exception:
            error = exception.args[0]
            if name not in SERVING or not error.fatal():
                raise
            # As the real one does: it calls back, or logs, with the exception of the fatal error already set.
            if self.on_delivery is not None:
                self.on_delivery(error, None)
            raise SystemError("isinstance returned a result with an exception set") from exception

    def list_topics(self, topic: str = "", *, timeout: float) -> None:
        if not topic:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        self._answers += 1

    def init_transactions(self, timeout: float) -> None:
        assert self._answers > 1, "its first question may be lost (decision 0009)"
        self._do("init")

    def begin_transaction(self) -> None:
        self._do("begin")

    def produce(
        self,
        topic: str,
        value: bytes,
        _key: bytes,
        _partition: int,
        on_delivery: Any,
        *_: object,
    ) -> None:
        self.on_delivery = on_delivery
        self._do("produce")
        self.open.append(value)
        self.waiting += 1

    def __len__(self) -> int:
        return int(self.waiting)

    def poll(self, timeout: float) -> None:
        self.topic.polls += 1
        self._fail("poll")

    def flush(self, timeout: float) -> int:
        self._do("flush")
        self.topic.undelivered -= 1
        delivers = 0 if self.topic.undelivered >= 0 else self.topic.per_flush
        room = self.topic.fits - (len(self.open) - self.waiting)
        self.waiting -= min(self.waiting, delivers, room)
        if self.waiting or self.topic.undelivered >= 0:
            return int(self.waiting) or 1
        self.on_delivery = None  # all are delivered
        return 0

    def purge(self) -> None:
        pass

    def send_offsets_to_transaction(self, offsets: Any, metadata: Any, timeout: float) -> None:
        self._do("offsets")
        if self.failed:
            ABORT(self)

    def commit_transaction(self, timeout: float) -> None:
        self._do("commit")
        if self.failed:
            ABORT(self)
        self.topic.committed += self.topic.left_open + self.open
        self.open, self.topic.left_open = [], []

    def abort_transaction(self, timeout: float) -> None:
        written = self.open
        self._do("abort")
        if self.open and written == self.open:  # a marker reaches only the partitions with its records
            self.topic.left_open = []
        self.open, self.failed, self.waiting = [], False, 0


class Owner:
    """A leadership that lasts until it is taken away."""

    term = 1

    def __init__(self) -> None:
        self.is_owner = True
        self.refused = ""

    def check(self) -> None:
        if self.refused:
            raise TopologyError(self.refused)

    def holds(self, term: int) -> bool:
        return self.is_owner

    def confirm(self, give_up: Callable[[], bool], _on_error: object = None) -> bool:
        return self.is_owner

    def offsets(self) -> tuple[list[Any], None]:
        return [], None


def fails(code: int, **flags: bool) -> Callable[[FakeProducer], None]:
    """The call raises this error and does nothing."""

    def fault(_: FakeProducer) -> None:
        raise KafkaException(KafkaError(code, "on purpose", **flags))

    return fault


def raises_no_exception(_: FakeProducer) -> None:
    """The call raises a KafkaError, whose class is none of exceptions: `except BaseException` misses it."""
    error = KafkaError(KafkaError._FENCED, "on purpose", fatal=True)
    ctypes.pythonapi.PyErr_SetObject(ctypes.py_object(KafkaError), ctypes.py_object(error))


def commits_and_fails(producer: FakeProducer) -> None:
    """The commit takes place, but the answer is lost."""
    producer.topic.committed += producer.open
    raise KafkaException(KafkaError(KafkaError._FATAL, "the answer was lost", fatal=True))


def aborts_without_markers(producer: FakeProducer) -> None:
    """The transaction counts as aborted, but stays open in the log."""
    producer.topic.left_open += producer.open
    producer.open = []


def refuses_all(producer: FakeProducer) -> None:
    """No record reaches a log, which only the next call of the transaction says."""
    producer.open, producer.failed = [], True


def fails_without_markers(producer: FakeProducer) -> None:
    """The producer is fenced as well."""
    aborts_without_markers(producer)
    FATAL(producer)


def never_returns(producer: FakeProducer) -> None:
    """As seen of the real one."""
    producer.topic.release.wait(30)


RETRY = fails(KafkaError._TIMED_OUT, retriable=True)
ABORT = fails(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True)
FATAL = fails(KafkaError._FENCED, fatal=True)
