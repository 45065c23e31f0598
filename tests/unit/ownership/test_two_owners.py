"""No order of the steps of two owners loses, doubles or takes back anything (`two_owners`, decision 0021)."""

from __future__ import annotations

import pytest

from tests.unit.ownership.two_owners import Exploration


@pytest.mark.parametrize(("moves", "faults"), [pytest.param(1, 1, marks=pytest.mark.long), (2, 0)])
def test_two_owners_in_every_order(monkeypatch: pytest.MonkeyPatch, moves: int, faults: int) -> None:
    exploration = Exploration(monkeypatch, bets=2, moves=moves, faults=faults)
    assert exploration.schedules() > 10**10
    assert exploration.connections > 1000


@pytest.mark.parametrize(
    ("without", "found"),
    [
        ("generation", "one that does not own the feed has connected"),
        ("confirmation", "one that does not own the feed has fenced the other"),
        ("fencing", "went back|the attempt is not committed"),
        ("answer", "the attempt is not committed"),
    ],
)
def test_each_protection_is_needed(monkeypatch: pytest.MonkeyPatch, without: str, found: str) -> None:
    with pytest.raises(AssertionError, match=found):
        Exploration(monkeypatch, bets=1, moves=1, faults=1, without=without).schedules()
