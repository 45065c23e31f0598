"""A small world and a stream that begins at a round moment."""

from __future__ import annotations

import pytest

from bridge_sandbox.provider.stream import Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World
from tests.streams import CachedStream

ORIGIN = 1_790_000_000.0


@pytest.fixture(scope="session")
def world() -> World:
    return World(7, ORIGIN)


@pytest.fixture(scope="session")
def stream(world: World) -> Stream:
    return CachedStream(world, ORIGIN, StreamSettings(rate=200))
