"""A publisher of snapshots over a Kafka in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bridge.snapshots.publisher import Publisher
from tests.unit.kafka.fake_producer import Owner
from tests.unit.snapshots.cluster import SETTINGS, Kafka


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kafka]:
    made = Kafka(monkeypatch)
    yield made
    made.release.set()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def publisher(cluster: Kafka, owner: Owner, stop: threading.Event) -> Iterator[Publisher]:
    """One that is open; `cluster` has no snapshot yet."""
    with Publisher(SETTINGS, "translations", owner, stop, lambda _: None) as made:  # type: ignore[arg-type]
        assert made.open() is None
        yield made
