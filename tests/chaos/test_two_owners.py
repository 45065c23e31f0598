"""More moves of the group and more faults than `tests/unit/ownership/test_two_owners.py` has time for."""

from __future__ import annotations

import json
import time

import pytest

from tests.unit.ownership.two_owners import Exploration


@pytest.mark.parametrize(("bets", "moves", "faults"), [(3, 2, 0), (2, 2, 1), (2, 1, 2)])
def test_two_owners(monkeypatch: pytest.MonkeyPatch, bets: int, moves: int, faults: int) -> None:
    began = time.monotonic()
    exploration = Exploration(monkeypatch, bets, moves, faults)
    schedules = exploration.schedules()
    assert schedules > 10**12
    figures = {"bets": bets, "moves": moves, "faults": faults, "schedules": schedules}
    took = round(time.monotonic() - began, 1)
    print(json.dumps({**figures, "states": exploration.states, "took_seconds": took}), flush=True)
