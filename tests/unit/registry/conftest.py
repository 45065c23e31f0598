"""A registry in memory for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.registry import client
from tests.fake_registry import FakeRegistry, served


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_RETRY_WAIT_MS", 1)


@pytest.fixture
def fake() -> FakeRegistry:
    return FakeRegistry()


@pytest.fixture
def url(fake: FakeRegistry) -> Iterator[str]:
    with served(fake) as address:
        yield address
