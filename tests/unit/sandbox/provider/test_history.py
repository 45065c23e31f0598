"""What the provider remembers."""

from __future__ import annotations

from math import inf

import pytest

from bridge_sandbox.provider.stream import Log, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World
from tests.unit.sandbox.provider.conftest import ORIGIN


@pytest.mark.parametrize("burst", [1, 7])
@pytest.mark.parametrize("end", [inf, 3.33])
def test_messages_are_counted_without_being_made(world: World, burst: int, end: float) -> None:
    log = Log(Stream(world, ORIGIN, StreamSettings(rate=10, burst=burst)))
    for moment in (0.5, 2, 2, 4):
        log.inject(b"x", ORIGIN + moment)
    log.end = ORIGIN + end
    for until in (-1, 0, 0.09, 0.5, 1.99, 2, 3.3, 3.5, 5):
        assert log.count(ORIGIN + until) == len(list(log.read(ORIGIN, ORIGIN + until)))
