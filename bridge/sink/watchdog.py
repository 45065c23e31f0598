"""Calls of Kafka's clients that may block, and now and then never return."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from bridge.sink.worker import Worker

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


def close(consumer: Consumer) -> None:
    """Close a consumer, or leave it to its end where that blocks."""
    _end(consumer.close, CLOSE_SECONDS)


def _end(call: Callable[[], object], seconds: float) -> None:
    end = Worker("kafka-end")
    end.submit(call)
    end.close(seconds)
