"""What the campaigns compute from what they have seen."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.rounds import Rounds, _at_first
from tests.chaos.test_handover import same_clock
from tests.handover.figures import Handover, handover
from tests.handover.pair import excused
from tests.handover.watcher import Sight
from tests.judge.model import Excuse
from tests.storm.round import shortfalls


def test_a_bet_of_the_former_owner_is_not_the_first_of_its_successor() -> None:
    """It was published after the event and received before the successor was connected, but is seen late."""
    sights = [
        Sight(99.9, 99.8, 99.8),
        Sight(100.2, 100.1, 100.1),
        Sight(102.3, 100.2, 100.2),
        Sight(103.5, 100.4, 102.1),
        Sight(103.6, 103.0, 103.1),
    ]
    assert handover(100.0, 102.0, sights) == pytest.approx(Handover(2.0, 3.5, 3.1))
    assert handover(100.0, None, sights) == pytest.approx((None, 0.2, 3.1))


@pytest.mark.parametrize("ahead", [-0.2, 0.2])
async def test_figures_of_two_clocks_are_no_figures(ahead: float) -> None:
    async def get(_: str) -> dict[str, float]:
        return {"now": time.time() + ahead}

    provider: Any = SimpleNamespace(get=get)
    with pytest.raises(AssertionError, match=r"is 0\.2"):
        await same_clock(provider)


def test_a_second_connection_is_excused_only_where_the_owner_cannot_close_its_own() -> None:
    found = [excused(kind, 100.0, 130.0) for kind in ("SIGTERM", "SIGKILL", "SIGSTOP", "coordinator")]
    assert found == [[], [Excuse(100.0, 101.0)], [Excuse(100.0, 130.0)], []]


def test_a_round_is_finished_until_its_extent_or_its_code_changes(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.chaos.rounds.ROOT", tmp_path)

    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")

    def is_finished(kills: int = 5) -> bool:
        _at_first.cache_clear()  # as in another process
        return Rounds("some", {"kills": kills}).result("one") is not None

    def play(*, meanwhile: str = "1") -> None:
        rounds = Rounds("some", {"kills": 5})
        rounds.begin("one")
        write(path, meanwhile)
        rounds.finish("one", {})

    for path in ("bridge/feed/position.py", "schemas/a.avsc", "tests/judge/run.py", "tests/some/a.py"):
        write(path, "1")
        assert not is_finished()
        play()
        assert (is_finished(), is_finished(6)) == (True, False)
        write("tests/other/a.py", path)
        assert is_finished()
    with pytest.raises(AssertionError, match="the code has changed"):
        play(meanwhile="2")
    write(path, "1")
    play()
    monkeypatch.setenv("FRESH", "1")
    assert is_finished()
    monkeypatch.setattr("tests.chaos.rounds._finished", set())
    assert not is_finished()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"played": {"cut": 3, "late": 2}}, ["5 faults, fewer than 6"]),
        ({"bets": 4_999}, ["4999 bets, fewer than 5000"]),
        ({"attempts": 1, "dead letters": 0}, ["1 attempts, fewer than 2", "0 dead letters, fewer than 1"]),
        ({"prompt": 499}, ["499 prompt, fewer than 500"]),
    ],
)
def test_a_storm_in_which_little_happened_proves_nothing(changes: dict[str, Any], found: list[str]) -> None:
    played = changes.get("played", {"cut": 3, "late": 3})
    figures = {"bets": 5_000, "attempts": 2, "dead letters": 1, "prompt": 500, **changes}
    faults = {"faults": {"cut": 5, "late": 5}, "played": played}
    assert shortfalls({"rate": 100, "seconds": 100, **faults, "figures": figures}) == found
