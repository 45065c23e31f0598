"""Calls of Kafka's clients that may block, and now and then never return."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from bridge.kafka.worker import Worker

CLOSE_SECONDS = 5.0


class Watchdog:
    """Makes calls of the transactional producer on a thread of its own and waits for each, `seconds` at most.

    Seen: `send_offsets_to_transaction` called again after a time-out, while the coordinator was away.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._calls = Worker("kafka-calls")

    def call(self, call: Callable[[], object]) -> None:
        """Make the call. Raises what it raises; one that never returns counts as a fatal error."""
        try:
            self._calls.submit(call).result(self._seconds)
        except TimeoutError:
            self._calls.close(0)
            self._calls = Worker("kafka-calls")  # the other one is left behind with the producer
            raise KafkaException(
                KafkaError(KafkaError._FATAL, "a call does not return", fatal=True)
            ) from None

    def close(self) -> None:
        """End the thread, if it can."""
        self._calls.close(0)


def discard(producer: Producer) -> None:
    """Leave a producer to its end, which may block too, on a thread that nobody waits for."""
    _end(producer.purge, 0)


class Clients:
    """Those of one try to read. To close them, and to destroy them after that, may block as well."""

    def __init__(self, admin: AdminClient, consumer: Consumer) -> None:
        self.admin = admin
        self.consumer = consumer

    def close(self) -> None:
        """Leave both to their end on a thread, with the last reference to them, and wait for it a moment."""
        _end(self._let_go, CLOSE_SECONDS)

    def _let_go(self) -> None:
        self.consumer.close()
        del self.consumer, self.admin


def _end(call: Callable[[], object], seconds: float) -> None:
    end = Worker("kafka-end")
    end.submit(call)
    end.close(seconds)
