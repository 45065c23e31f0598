"""Counts what no reader sees yet, again and again: each time only what is new is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.judge.decoding import Decoder, Foreign
from tests.judge.model import Case
from tests.judge.provider import Provider
from tests.judge.timeline import Timeline
from tests.judge.topics import Topics

_MICROS = 1_000_000


def missing(case: Case, work: Path) -> int:
    """Return how many of the bets published so far no `read_committed` reader sees.

    Those published before the first connection attempt asked, or in a declared gap, do not count, nor does
    what has no higher version than its bet had before: it may rightly be dropped. Goes on from the last call
    with the same case and directory. Raises OSError, TimeoutError or KafkaException if Kafka, the registry or
    the simulator does not answer.
    """
    return _watch(replace(case, excused=()), work).missing()


@lru_cache(maxsize=4)
def _watch(case: Case, _: Path) -> _Watch:
    return _Watch(case)


class _Watch:
    def __init__(self, case: Case) -> None:
        self._case = case
        self._provider = Provider(case.control_url)
        self._topics = Topics(case.bootstrap_servers, case.prefix)
        self._decoder = Decoder(case.registry_url)
        self._awaited: dict[tuple[str, int], float] = {}
        """Betids and versions that were published and not seen, with the moment of publication."""
        self._highest: dict[str, int] = {}
        """The highest version of each bet so far."""
        self._early: set[tuple[str, int]] = set()
        """Those seen before the truth was read that far."""
        self._reached: dict[tuple[str, int], int] = {}
        self._since, self._last = 0.0, -1
        self._gaps = [(gap.start, gap.end) for gap in case.known_gaps]

    def missing(self) -> int:
        state, attempts = self._provider.get("/state"), self._provider.get("/attempts")
        timeline = Timeline(state, attempts, self._case.start_age)
        if not timeline.attempts:
            return 0
        for at, seq, bet, version in self._provider.bets(max(self._since, timeline.begin), state["now"]):
            if seq > self._last:
                self._since, self._last = at, seq
                if version > self._highest.get(bet, 0):
                    self._highest[bet] = version
                    self._awaited[bet, version] = at
        for datum in self._fresh("bets"):
            key = datum["betId"], datum["settlementVersion"]
            if self._awaited.pop(key, None) is None:
                self._early.add(key)
        for key in self._early & self._awaited.keys():
            self._early.discard(key)
            del self._awaited[key]
        for datum in self._fresh("gaps"):
            self._gaps.append((datum["from"] / _MICROS, datum["to"] / _MICROS))
        readings = map(timeline.reading, self._awaited.values())
        return sum(not any(start <= at < end for start, end in self._gaps) for at in readings)

    def _fresh(self, topic: str) -> Iterator[dict[str, Any]]:
        """Yield the new records of a topic."""
        for partition, end in self._topics.ends(topic).items():
            start = self._reached.get((topic, partition), 0)
            for record in self._topics.read(topic, partition, start, end.stable):
                with suppress(Foreign):  # the judge reports it
                    yield self._decoder.decode(record.value)
            self._reached[topic, partition] = end.stable
