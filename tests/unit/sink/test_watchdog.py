"""Calls that never return are not waited for."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.kafka import Answer, triage
from bridge.sink import watchdog
from bridge.sink.watchdog import Watchdog


def test_a_call_that_never_returns_asks_for_a_new_producer() -> None:
    """And the next call has a thread of its own, which nothing holds up."""
    release, calls, made = threading.Event(), Watchdog(0.05), []
    with pytest.raises(KafkaException) as raised:
        calls.call(lambda: release.wait(30))
    assert triage(raised.value.args[0]) is Answer.REOPEN
    calls.call(lambda: made.append("again"))
    assert made == ["again"]
    release.set()
    calls.close()


def test_a_consumer_that_never_closes_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has read what was to be read goes on."""
    monkeypatch.setattr(watchdog, "CLOSE_SECONDS", 0.05)
    release, told = threading.Event(), list[str]()

    class Consumer:
        def close(self) -> None:
            told.append("asked")
            release.wait(30)
            told.append("closed")

    watchdog.close(Consumer())  # type: ignore[arg-type]
    assert told == ["asked"]
    release.set()


def test_what_a_call_raises_is_raised() -> None:
    """As it is, flags and all."""
    calls = Watchdog(5)

    def refuse() -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "on purpose", retriable=True))

    with pytest.raises(KafkaException, match="on purpose") as raised:
        calls.call(refuse)
    assert triage(raised.value.args[0]) is Answer.RETRY
    calls.close()
