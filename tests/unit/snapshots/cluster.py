"""A Kafka in memory, as a publisher of snapshots sees it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from bridge.config import KafkaSettings, Settings
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots import presence, storage
from bridge.snapshots import publisher as module
from bridge.snapshots.model import Offsets
from tests.unit.kafka.fake_producer import FakeProducer, Topic

SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))
TOPICS = {"settlement.translations", "settlement.snapshots"}
RECORDS = [Record("settlement.translations", b"sport:%d" % n, b"name %d" % n, 0) for n in range(3)]
NAMES = [record.value for record in RECORDS]


class Kafka(Topic):
    """The topics of the job: the ends that are read differ each time, so that each try can be told apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.away = 0
        self.topics = TOPICS
        self.lost: set[str] = set()
        """Topics that a broker does not know."""
        self._ends = itertools.count(100, 100)
        monkeypatch.setattr(clients, "producer", lambda *_, **__: FakeProducer(self))
        monkeypatch.setattr(clients, "admin", lambda _: None)
        monkeypatch.setattr(admin, "metadata", lambda _: SimpleNamespace(topics=self.listed()))
        monkeypatch.setattr(storage, "last_value", lambda *_: self.last())
        monkeypatch.setattr(module, "ends_of", lambda *_: self.end())
        monkeypatch.setattr(module, "STUCK_SECONDS", 0.1)
        monkeypatch.setattr(module, "REGAIN_SECONDS", 0.1)
        monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
        monkeypatch.setattr(presence, "LOOK_SECONDS", 0.02)

    def last(self) -> bytes | None:
        """The value of the last Snapshot record that is committed."""
        self._answer()
        return next((value for value in reversed(self.committed) if value.startswith(b"snapshot")), None)

    def end(self) -> Offsets:
        """Where the topic ends."""
        self._answer()
        return {0: next(self._ends)}

    def listed(self) -> set[str]:
        """The topics that there are."""
        self._answer()
        return self.topics - self.lost

    def _answer(self) -> None:
        if self.away:
            self.away -= 1
            raise KafkaUnavailable("on purpose")


def seal(ends: Offsets) -> Record:
    return Record("settlement.snapshots", b"translations", b"snapshot up to %d" % ends[0], 0)
