"""Faults hit processes that were started as a user starts them."""

from __future__ import annotations

import pytest

from tests.harness import Place
from tests.processes import start_cold


@pytest.fixture
def place(place: Place) -> Place:
    """A place whose commands start without preloaded imports."""
    place.start = start_cold
    return place
