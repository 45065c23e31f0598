"""Calls that never return are not waited for."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from functools import partial
from queue import SimpleQueue

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.config import KafkaSettings, Settings
from bridge.kafka import blocking, clients
from bridge.kafka.blocking import MOST_LEFT, BackgroundProbe, CallTimeout, Clients, Worker, checked
from bridge.kafka.errors import ErrorAction, KafkaUnavailable, triage
from tests.unit.kafka.fake_producer import raises_no_exception


def test_a_call_that_never_returns_asks_for_a_new_producer() -> None:
    release, calls, made = threading.Event(), CallTimeout(0.5), []
    with pytest.raises(KafkaException) as raised:
        calls.call(lambda: release.wait(30))
    assert triage(raised.value.args[0]) is ErrorAction.REOPEN
    calls.call(lambda: made.append("again"))
    assert made == ["again"]
    release.set()
    calls.close()


def test_a_job_in_the_background_leaves_no_thread() -> None:
    thread = blocking.in_background("one", threading.current_thread).result(10)
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture(autouse=True)
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "admin", lambda _: object())


async def test_looks_that_never_return_are_left_behind_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, threads, probe = threading.Event(), set(), BackgroundProbe(KafkaSettings(), "looks")

    def hang(_: object) -> None:
        threads.add(threading.get_ident())
        release.wait(30)

    async def hung() -> None:
        monkeypatch.setattr(blocking, "HANG_SECONDS", 0.2)
        with pytest.raises(KafkaUnavailable, match="has not returned"):
            await probe.run(hang)
        monkeypatch.setattr(blocking, "HANG_SECONDS", 30)

    for _ in range(MOST_LEFT):
        await hung()
    assert await probe.run(lambda _: 1) == 1
    await hung()
    waits = asyncio.create_task(probe.run(lambda _: 2))
    assert await asyncio.wait({waits}, timeout=0.2) == (set(), {waits})
    assert len(threads) == MOST_LEFT + 1
    release.set()
    assert await waits == 2
    release.clear()
    await hung()
    assert await probe.run(lambda _: 3) == 3
    release.set()
    probe.close()


async def test_an_answer_that_comes_while_the_loop_stands_still_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocking, "HANG_SECONDS", 0.5)
    probe, began = BackgroundProbe(KafkaSettings(), "looks"), threading.Event()

    def answer(_: object) -> int:
        began.set()
        time.sleep(0.05)
        return 7

    look = asyncio.create_task(probe.run(answer))
    await asyncio.to_thread(began.wait)
    time.sleep(0.8)  # noqa: ASYNC251  # nothing else of the loop has its turn
    assert await look == 7
    probe.close()


async def test_an_error_of_a_look_is_its_result() -> None:
    probe = BackgroundProbe(KafkaSettings(), "looks")
    for error in (TimeoutError("its own"), KafkaUnavailable("no broker")):

        def fail(_: object, error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error), match=str(error)):
            await probe.run(fail)
    probe.close()


async def test_a_client_is_kept_until_it_fails_or_another_is_wanted() -> None:
    probe, seen = BackgroundProbe(KafkaSettings(), "looks"), list[object]()

    def fail(client: object) -> None:
        seen.append(client)
        raise KafkaUnavailable("no broker")

    for _ in range(2):
        await probe.run(seen.append)
    with pytest.raises(KafkaUnavailable):
        await probe.run(fail)
    await probe.run(seen.append)
    probe.renew()
    await probe.run(seen.append)
    probe.close()
    assert [seen.index(client) for client in seen] == [0, 0, 0, 3, 4]


class Job:
    """A job that sets an event when it is destroyed."""

    def __init__(self) -> None:
        self.destroyed = threading.Event()

    def __call__(self) -> threading.Event:
        return self.destroyed

    def __del__(self) -> None:
        self.destroyed.set()


def test_a_worker_keeps_no_job_that_has_run() -> None:
    worker = Worker("jobs")
    destroyed = worker.submit(Job()).result(30)
    assert destroyed.wait(5)
    worker.close(30)


def test_a_job_that_has_failed_is_destroyed_with_its_future() -> None:
    def fail(job: Job) -> None:
        raise ValueError(f"{job!r:.0}no")

    worker, job = Worker("jobs"), Job()
    destroyed, future = job.destroyed, worker.submit(partial(fail, job))
    del job
    gc.disable()
    try:
        with pytest.raises(ValueError, match="no"):
            future.result(30)
        assert not destroyed.is_set()
        del future
        assert destroyed.wait(5)
    finally:
        gc.enable()
    worker.close(30)


def test_a_client_is_destroyed_by_the_thread_of_its_job_though_kafka_is_away() -> None:
    destroyed_by: list[str] = []

    class Client:
        def __del__(self) -> None:
            destroyed_by.append(threading.current_thread().name)

    def ask(client: Client) -> None:
        try:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        except KafkaException as error:
            raise KafkaUnavailable(f"{client!r:.0}{error.args[0].str()}") from error

    worker = Worker("jobs")
    gc.disable()
    try:
        future = worker.submit(lambda: ask(Client()))
        with pytest.raises(KafkaUnavailable):
            future.result(30)
        worker.close(30)
        assert destroyed_by == ["jobs"]
    finally:
        gc.enable()


class Stuck:
    """A client that blocks, to be closed or to be destroyed."""

    def __init__(self, what: str, release: threading.Event, events: SimpleQueue[str]) -> None:
        self._what, self._release, self._events = what, release, events

    def _block(self, what: str) -> None:
        if what == self._what:
            self._events.put("asked")
            self._release.wait(30)
            self._events.put("ended")

    def close(self) -> None:
        self._block("close")

    def __del__(self) -> None:
        self._block("destroy")


@pytest.mark.parametrize("what", ["close", "destroy"])
def test_a_client_that_never_ends_is_left_behind(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking, "CLOSE_SECONDS", 0.05)
    release, events = threading.Event(), SimpleQueue[str]()
    monkeypatch.setattr(clients, "reader", lambda *_, **__: Stuck(what, release, events))
    Clients(Settings()).close()
    assert events.get(timeout=30) == "asked"
    assert events.empty(), "it was waited for"
    release.set()
    assert events.get(timeout=30) == "ended"


class Fenced:
    """A producer that keeps what it has raised, as the real one does."""

    def __init__(self, kept: list[Exception]) -> None:
        self._kept = kept

    def flush(self) -> None:
        """Fail as where a callback has run with an exception set."""
        self._kept.append(SystemError("returned a result with an exception set"))
        raise self._kept[-1]


def test_an_error_that_is_kept_holds_no_client() -> None:
    kept: list[Exception] = []

    def fail() -> weakref.ref[Fenced]:
        client = Fenced(kept)
        with pytest.raises(KafkaException) as raised:
            checked(client.flush)
        assert raised.value.args[0].fatal()
        return weakref.ref(client)

    client = fail()
    gc.collect()
    assert kept
    assert client() is None


def test_an_error_that_is_no_exception_ends_no_thread() -> None:
    worker, raised = Worker("work"), partial(raises_no_exception, None)  # type: ignore[arg-type]
    with pytest.raises(KafkaException, match="_FENCED"):
        worker.submit(raised).result(30)
    with pytest.raises(KafkaException) as caught:
        worker.submit(partial(checked, raised)).result(30)
    assert caught.value.args[0].fatal()
    worker.close(30)
    assert worker.ended
