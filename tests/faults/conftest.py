"""Processes started as a user starts them, for tests that depend on how one starts or ends."""

from __future__ import annotations

import pytest

from tests.harness import Place
from tests.processes import start_cold


@pytest.fixture
def cold(place: Place) -> Place:
    """A place whose commands start without preloaded imports, with the memory and the time that they take."""
    place.start = start_cold
    return place
