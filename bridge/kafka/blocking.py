"""Runs calls of Kafka's clients that may block, sometimes forever, on separate threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bridge.config import KafkaSettings, Settings
from bridge.errors import BridgeError
from bridge.formatting import format_duration
from bridge.kafka import clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.patience import patience

P = ParamSpec("P")
T = TypeVar("T")

CLOSE_SECONDS = 5.0
HANG_SECONDS = 60.0
"""After how long a call hangs, which is longer than the time-outs of its requests."""
MOST_LEFT = 3
"""Threads of a `BackgroundProbe` that hang, each with the threads and the memory of a client."""


def checked(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Make a call of a client that serves its events. Raises KafkaException, or BufferError.

    Once a producer is fenced, that error is set while its callbacks run, so the call raises what they make
    of it: any exception, or a KafkaError, which is none. It is kept for ever, so it must not hold the client
    (decision 0009).
    """
    try:
        return call(*arguments, **options)
    except (KafkaException, BufferError):
        raise
    except Exception as error:  # noqa: BLE001
        error.__traceback__ = None
    except BaseException:
        raise
    except:  # noqa: E722, S110
        pass
    text = "the producer was fenced, or has failed for good"
    raise KafkaException(KafkaError(KafkaError._FATAL, text, fatal=True))


class Worker:
    """An executor of one daemon thread: a job stuck in a call does not keep the process from ending."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job; the future receives its result or exception.

        A client that only the job holds is destroyed by this thread, even if Kafka is unavailable.
        """
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return future

    def close(self, seconds: float) -> None:
        """End after the queued jobs; wait for that at most `seconds`."""
        self._jobs.put(None)
        self._thread.join(seconds)

    @property
    def ended(self) -> bool:
        """Whether its thread has ended."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            del item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(job())
                except (BridgeError, KafkaException) as error:
                    future.set_exception(_without_frames(error))
                except BaseException as error:  # noqa: BLE001  # the future's reader handles it
                    future.set_exception(error)
                except:  # noqa: E722  # a KafkaError is no exception
                    future.set_exception(KafkaException(sys.exc_info()[1]))
            # With the clients that they hold. The error holds this frame, which must not hold the error.
            del job, future


def in_background(name: str, job: Callable[[], T]) -> Future[T]:
    """Do one job on a daemon thread of its own, which does not keep the process from ending either."""
    worker = Worker(name)
    future = worker.submit(job)
    worker.close(0)
    return future


def _without_frames(error: BridgeError | KafkaException) -> BaseException:
    """Strip an error of its frames, which hold clients.

    Otherwise the thread that handles the error would destroy those clients, and block while librdkafka's
    threads wait for DNS.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class CallTimeout:
    """Runs calls of the transactional producer on a separate thread, and waits `seconds` for each, or more.

    Seen: `send_offsets_to_transaction` called again after a time-out, while the coordinator was away.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls = Worker("kafka-calls")

    def call(self, call: Callable[[], object]) -> None:
        """Make the call. Raises what it raises, and a fatal error if it does not return in time."""
        try:
            self._calls.submit(partial(checked, call)).result(self._seconds * (1 + 2 * patience.factor) / 3)
        except TimeoutError:
            self._calls.close(0)
            self._calls = Worker("kafka-calls")  # the old thread is left behind with its producer
            raise KafkaException(
                KafkaError(KafkaError._FATAL, "a call does not return", fatal=True)
            ) from None

    def close(self) -> None:
        """End the thread unless a call blocks it."""
        self._calls.close(0)


class BackgroundProbe:
    """Asks Kafka on a separate thread, and leaves that behind, with its client, when a call hangs.

    Only this thread holds the client. Where one is destroyed, it waits for librdkafka's threads, and they for
    DNS.
    """

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._client: AdminClient | None = None
        self._worker = Worker(name)
        self._left: list[Worker] = []

    async def run(self, ask: Callable[[AdminClient], T]) -> T:
        """Ask with the client; after an error the next run has another one.

        Raises as `ask`, and KafkaUnavailable after HANG_SECONDS. While MOST_LEFT threads hang already, a
        further one is kept, and its call awaited.
        """
        answer = asyncio.wrap_future(self._worker.submit(partial(self._ask, ask)))
        try:
            async with asyncio.timeout(HANG_SECONDS):
                return await answer
        except TimeoutError:
            if not answer.cancelled():  # it has ended: by its own time-out, or while the loop stood still
                return answer.result()
            self._left = [worker for worker in self._left if not worker.ended]
            if len(self._left) < MOST_LEFT:
                self._worker.close(0)
                self._left.append(self._worker)
                self._worker = Worker(self._name)
            what = f"Kafka's client has not returned in {format_duration(HANG_SECONDS)}"
            raise KafkaUnavailable(what) from None

    def renew(self) -> None:
        """Have the next run make another client, without waiting for the end of this one."""
        self._worker.submit(self._let_go)

    def close(self) -> None:
        """End the thread and the client, without waiting for that."""
        self.renew()
        self._worker.close(0)

    def _ask(self, ask: Callable[[AdminClient], T]) -> T:
        client, self._client = self._client or clients.admin(self._settings), None
        answer = ask(client)
        self._client = client
        return answer

    def _let_go(self) -> None:
        self._client = None


def destroy_in_background(producer: Producer) -> None:
    """Destroy a producer, which may block too, on a thread that is not waited for."""
    in_background("kafka-end", producer.purge)


class Clients:
    """The clients of one attempt to read."""

    def __init__(self, settings: Settings, *, committed: bool = True) -> None:
        """Create them. Raises as `clients.reader`."""
        name = f"{settings.topics.prefix}.reader"
        self.consumer = clients.reader(settings.kafka, name=name, prompt=True, committed=committed)
        self.admin = clients.admin(settings.kafka)

    def close(self) -> None:
        """Close and destroy both, which may block, on another thread; wait at most CLOSE_SECONDS.

        The thread holds the last references to them.
        """
        end = Worker("kafka-end")
        end.submit(self._let_go)
        end.close(CLOSE_SECONDS)

    def _let_go(self) -> None:
        self.consumer.close()
        del self.consumer, self.admin
