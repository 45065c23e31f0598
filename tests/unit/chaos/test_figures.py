"""What the campaigns compute from what they have seen."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.broken.campaign import slug, write_table
from tests.broken.drills import DRILLS
from tests.broken.fault import Fault
from tests.broken.faults import FAULTS
from tests.chaos.rounds import Rounds, _at_first
from tests.chaos.test_handover import same_clock
from tests.chaos.test_storm import table
from tests.handover.figures import Handover, handover, summary
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
    found = handover(100.0, 102.0, sights)
    assert found == pytest.approx(Handover(2.0, 3.5, 3.1))
    assert handover(100.0, None, sights) == pytest.approx((None, 0.2, 3.1))


async def test_figures_of_two_clocks_are_no_figures() -> None:
    class FakeProvider:
        def __init__(self, ahead: float) -> None:
            self.ahead = ahead

        async def get(self, _: str) -> dict[str, float]:
            return {"now": time.time() + self.ahead}

    exact: Any = FakeProvider(0.0)
    await same_clock(exact)
    for ahead in (-0.2, 0.2):
        provider: Any = FakeProvider(ahead)
        with pytest.raises(AssertionError, match=r"is 0\.2"):
            await same_clock(provider)


def test_a_second_connection_is_excused_only_where_the_owner_cannot_close_its_own() -> None:
    found = {kind: excused(kind, 100.0, 130.0) for kind in ("SIGTERM", "SIGKILL", "SIGSTOP", "coordinator")}
    assert found == {
        "SIGTERM": [],
        "SIGKILL": [Excuse(100.0, 101.0)],
        "SIGSTOP": [Excuse(100.0, 130.0)],
        "coordinator": [],
    }


def test_a_summary_has_the_nearest_ranks_of_what_is_known() -> None:
    found = summary([Handover(None, float(n), 0.0) for n in range(1, 51)])
    assert found["visible"] == {"p50": 25.0, "p99": 50.0}
    assert "connected" not in found


def test_a_finished_round_is_known_until_its_extent_changes(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.chaos.rounds.ROOT", tmp_path)
    rounds = Rounds("some", {"kills": 5})
    assert rounds.begin("one").is_dir()
    assert rounds.result("one") is None
    rounds.finish("one", {"clean": True})
    assert (found := Rounds("some", {"kills": 5}).result("one"))
    assert found["clean"]
    assert "cores" in found["machine"]
    assert Rounds("some", {"kills": 6}).result("one") is None
    monkeypatch.setenv("FRESH", "1")
    assert Rounds("some", {"kills": 5}).result("one") == found
    monkeypatch.setattr("tests.chaos.rounds._finished", set())
    assert Rounds("some", {"kills": 5}).result("one") is None


def test_a_round_of_other_code_is_not_finished(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.chaos.rounds.ROOT", tmp_path)

    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")

    def is_finished() -> bool:
        _at_first.cache_clear()  # as in another process
        return Rounds("some", {}).result("one") is not None

    own = "tests/chaos/test_some.py", "tests/some/a.py"
    for path in ("bridge/feed/position.py", "schemas/a.avsc", "tests/judge/run.py", *own):
        write(path, "1")
        _at_first.cache_clear()
        Rounds("some", {}).begin("one")
        Rounds("some", {}).finish("one", {})
        assert is_finished()
        write(path, "2")
        assert not is_finished(), path
    Rounds("some", {}).finish("one", {})
    write(path, "3")
    with pytest.raises(AssertionError, match="the code has changed"):
        Rounds("some", {}).finish("one", {})
    write(path, "2")
    for path in ("docs/chaos.md", "tests/chaos/test_other.py", "tests/other/a.py"):
        write(path, "1")
    assert is_finished()


def test_the_table_of_storms_has_their_sums() -> None:
    def storm(seed: int, bets: int, *ended: str) -> dict[str, Any]:
        figures = {"published": 50_000 + seed, "bets": bets, "dead letters": 9, "gaps": 0, "attempts": 20}
        judged = {"anomalies": {"lost write": {}} if ended else {}, "figures": figures}
        planned = {"faults": {"cut": 2, "late": 1}, "played": {"cut": 2, "late": 0}, "machine": "Here."}
        return {"seed": seed, "bridges": 2, **planned, "ended_by_themselves": [*ended], **judged}

    _, _, nine, ten, _, sums = table([storm(9, 2), storm(10, 48_000, "bridge-1 ended with 1")]).splitlines()
    assert nine == "| 9 | 2 | 2 of 3 | 50,009 | 2 | 9 | 0 | 20 | nothing |"
    assert ten.endswith(" | 50,010 | 48,000 | 9 | 0 | 20 | lost write, bridge-1 ended with 1 |")
    assert sums == (
        "2 storms, 100,019 messages (50,009 in the smallest), 4 of 6 faults have hit something. Here."
    )


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


def test_the_table_of_broken_bridges_is_written_when_all_were_played_by_the_same_code(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.chaos.rounds.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- broken -->\n<!-- /broken -->\n", "utf-8")
    monkeypatch.setattr("tests.broken.campaign.PAGE", page)
    rounds, (first, *others) = Rounds("broken", {"seed": 1}), FAULTS.values()

    def play(fault: Fault, rounds: Rounds) -> None:
        expected, text = next(iter(fault.expected.items()))
        line = {
            "anomalies": {str(expected): 1},
            "first": {str(expected): text},
            "ended": {},
            "unmet": [],
            "figures": {"bets": 2, "records": 2},
            "took_seconds": 9,
        }
        rounds.begin(slug(fault.name))
        rounds.finish(slug(fault.name), line)

    for fault in others:
        play(fault, rounds)
    play(first, Rounds("broken", {"seed": 2}))
    write_table(rounds)
    assert "found" not in page.read_text("utf-8")
    play(first, rounds)
    write_table(rounds)
    assert "found" not in page.read_text("utf-8")  # not that the sound bridge is clean
    for name in DRILLS:
        line = {"anomalies": {}, "ended": {}, "unmet": [], "figures": {"bets": 2, "records": 2}}
        rounds.begin(slug(f"sound {name}"))
        rounds.finish(slug(f"sound {name}"), line)
    write_table(rounds)
    assert f"{len(FAULTS)} of {len(FAULTS)} found." in page.read_text("utf-8")
