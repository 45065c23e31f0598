"""Calls that never return are not waited for."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.kafka import Answer, triage
from bridge.sink.watchdog import Watchdog


def test_a_call_that_never_returns_asks_for_a_new_producer() -> None:
    """And the next call has a thread of its own, which nothing holds up."""
    release, watchdog, made = threading.Event(), Watchdog(0.05), []
    with pytest.raises(KafkaException) as raised:
        watchdog.call(lambda: release.wait(30))
    assert triage(raised.value.args[0]) is Answer.REOPEN
    watchdog.call(lambda: made.append("again"))
    assert made == ["again"]
    release.set()
    watchdog.close()


def test_what_a_call_raises_is_raised() -> None:
    """As it is, flags and all."""
    watchdog = Watchdog(5)

    def refuse() -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "on purpose", retriable=True))

    with pytest.raises(KafkaException, match="on purpose") as raised:
        watchdog.call(refuse)
    assert triage(raised.value.args[0]) is Answer.RETRY
    watchdog.close()
