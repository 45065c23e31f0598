"""When a drill has shown a fault, and when a bridge has failed for another reason."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broken import campaign, drills
from tests.broken.campaign import found, is_clean, is_found, slug, write_summary
from tests.broken.drills import DRILLS, Ground
from tests.broken.fault import SOUND, Fault
from tests.broken.faults import FAULTS
from tests.chaos.rounds import Rounds
from tests.judge import Anomaly, Report
from tests.judge.model import Found

FAULT = Fault("replay", {Anomaly.COUNTERS: "falls"}, "some", {})


def line(kind: str = Anomaly.COUNTERS, first: str = "received falls from 2 to 1", **more: Any) -> Any:
    """The line of a bridge of which this was found."""
    figures = {"bets": 100, "records": 50}
    return {
        "anomalies": {kind: 1},
        "first": {kind: first},
        "ended": {},
        "unmet": [],
        "figures": figures,
        **more,
    }


def test_a_fault_is_found_in_a_bridge_that_works() -> None:
    few: Any = {"figures": {"bets": 100, "records": 49}}
    assert is_found(FAULT, line())
    assert is_found(replace(FAULT, records=0.4), line(**few))
    for other in (line(first="the feed has no checkpoint"), line(**few), line(ended={"bridge-0": 1})):
        assert not is_found(FAULT, other)


def test_a_bridge_is_clean_if_it_works() -> None:
    assert is_clean(line(anomalies={}))
    for wrong in (
        line(),
        line(anomalies={}, ended={"bridge-0": -signal.SIGSEGV}),
        line(anomalies={}, figures={"bets": 100, "records": 0}),
        line(anomalies={}, unmet=["a standby"]),  # what the drill is about never happened
    ):
        assert not is_clean(wrong)


@pytest.mark.parametrize(
    ("fault", "fails_in", "ended", "rounds"),
    [(FAULT, 1, {}, 2), (FAULT, 9, {"bridge-0": 1}, 1), (SOUND, 1, {}, 2), (SOUND, 9, {}, 3)],
)
async def test_the_sound_bridge_is_played_as_often_as_a_broken_one(
    fault: Fault, fails_in: int, ended: Any, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    async def play(_drill: Any, _place: Any, _fault: Fault, seed: int) -> tuple[Report, Any, list[str]]:
        seeds.append(seed)
        anomalies = {Anomaly.COUNTERS: Found(1, "received falls")} if len(seeds) > fails_in else {}
        return Report(anomalies, {"bets": 9, "records": 9}, seed), ended, []

    monkeypatch.setattr(campaign, "play", play)
    cluster: Any = None
    played = await found(fault, "replay", cluster, tmp_path, "some", seed=5)
    assert played["rounds"] == rounds
    assert seeds == list(range(5, 5 + rounds))


class FakeBridge:
    """A bridge with this exit code, if it has ended; it ends with 0 when told to, unless it is deaf."""

    def __init__(self, code: int | None = None, *, is_deaf: bool = False) -> None:
        self.code, self._is_deaf = code, is_deaf
        self.process = SimpleNamespace(poll=lambda: self.code)
        self.log = Path(f"bridge{code}.log")

    def states(self) -> list[str]:
        return []

    def signal(self, number: int) -> None:
        self.code = 0 if number == signal.SIGTERM and not self._is_deaf else self.code

    def kill(self) -> None:
        self.code = -signal.SIGKILL if self.code is None else self.code


async def test_a_drill_says_which_processes_have_ended_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drills, "END_SECONDS", 0.1)
    killed, told, deaf = FakeBridge(), FakeBridge(), FakeBridge(is_deaf=True)
    bridges: Any = [killed, FakeBridge(1), told, deaf]
    place: Any = SimpleNamespace(bridges=bridges, directory=None)
    feed: Any = SimpleNamespace(stop_publishing=lambda: None)
    it: Any = Ground(place, feed, SOUND, {})
    it.kill(killed)
    await it.end()
    assert (killed.code, told.code, it.unmet) == (-signal.SIGKILL, 0, ["the end"])
    assert it.ended() == {"bridge1": 1, "bridgeNone": -signal.SIGKILL}


def test_the_summary_is_written_when_all_were_played_by_the_same_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.chaos.rounds.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- broken -->\n<!-- /broken -->\n", "utf-8")
    monkeypatch.setattr("tests.broken.campaign.PAGE", page)
    rounds, (first, *others) = Rounds("broken", {"seed": 1}), FAULTS.values()

    def play(name: str, result: Any, rounds: Rounds = rounds) -> None:
        rounds.begin(slug(name))
        rounds.finish(slug(name), {**result, "took_seconds": 9})
        write_summary(rounds)

    def shown(fault: Fault) -> Any:
        return line(*next(iter(fault.expected.items())), figures={"bets": 2, "records": 2})

    for fault in others:
        play(fault.name, shown(fault))
    play(first.name, shown(first), Rounds("broken", {"seed": 2}))
    play(first.name, shown(first))
    assert "found" not in page.read_text("utf-8")  # the sound bridge was not played
    for name in DRILLS:
        play(f"sound {name}", line(anomalies={}))
    assert f"{len(FAULTS)} of {len(FAULTS)} found, after 9 to 9 s." in page.read_text("utf-8")
