"""A new owner asks the registry again for its ids, and does not wait for one that is away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from bridge.clock import Instant
from bridge.config import Settings
from bridge.errors import IdsChanged, RegistryUnavailable
from bridge.service import startup
from bridge.service.startup import CONFIRMED_SECONDS, SchemaIds


def raising(error: Exception) -> Callable[..., None]:
    def confirm(*_: object) -> None:
        raise error

    return confirm


@pytest.fixture
def due() -> SchemaIds:
    """Ids that were given too long ago."""
    now = iter((0.0, *([CONFIRMED_SECONDS + 1] * 9)))
    codecs: Any = None
    return SchemaIds(Settings(), codecs, lambda: Instant(0.0, next(now)))


async def test_other_ids_are_an_error_and_the_same_ones_are_confirmed(
    due: SchemaIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "confirm_ids", raising(IdsChanged("other ids")))
    with pytest.raises(IdsChanged, match="other ids"):
        await due.confirm_if_due()
    monkeypatch.setattr(startup, "confirm_ids", lambda *_: None)
    await due.confirm_if_due()
    monkeypatch.setattr(startup, "confirm_ids", raising(IdsChanged("asked again")))
    await due.confirm_if_due()  # which is not due any more


async def test_a_registry_that_is_away_or_hangs_is_not_waited_for(
    due: SchemaIds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "confirm_ids", raising(RegistryUnavailable("away")))
    await due.confirm_if_due()
    over = threading.Event()
    monkeypatch.setattr(startup, "confirm_ids", lambda *_: over.wait())
    monkeypatch.setattr(startup, "CONFIRM_SECONDS", 0.01)
    await due.confirm_if_due()
    over.set()
