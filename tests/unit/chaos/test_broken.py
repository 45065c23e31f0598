"""When a drill has shown a fault, and when a bridge has failed for another reason."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broken import campaign, drills
from tests.broken.campaign import found, is_clean, is_found
from tests.broken.drills import Ground
from tests.broken.fault import SOUND, Fault
from tests.judge import Anomaly, Report
from tests.judge.model import Found

FAULT = Fault("replay", {Anomaly.COUNTERS: "falls"}, "some", {})


def line(first: str = "received falls from 2 to 1", records: int = 50, **ended: int) -> dict[str, Any]:
    """The line of a bridge whose counters did not balance."""
    name = str(Anomaly.COUNTERS)
    return {
        "anomalies": {name: 1},
        "first": {name: first},
        "ended": ended,
        "unmet": [],
        "figures": {"bets": 100, "records": records},
    }


def test_a_fault_is_found_in_a_bridge_that_works() -> None:
    assert is_found(FAULT, line())
    assert not is_found(FAULT, line("the feed has no checkpoint"))
    assert not is_found(FAULT, line(records=49))
    assert is_found(replace(FAULT, records=0.4), line(records=49))
    assert not is_found(FAULT, line(bridge_0=1))


def test_a_bridge_is_clean_if_it_works() -> None:
    clean = {**line(), "anomalies": {}}
    assert is_clean(clean)
    assert not is_clean({**clean, "ended": {"bridge-0": -signal.SIGSEGV}})
    assert not is_clean({**clean, "figures": {"bets": 100, "records": 0}})
    assert not is_clean({**clean, "unmet": ["a standby"]})  # what the drill is about never happened


@pytest.mark.parametrize(
    ("fault", "fails_in", "ended", "rounds"),
    [(FAULT, 1, {}, 2), (FAULT, 9, {"bridge-0": 1}, 1), (SOUND, 1, {}, 2), (SOUND, 9, {}, 3)],
)
async def test_the_sound_bridge_is_played_as_often_as_a_broken_one(
    fault: Fault,
    fails_in: int,
    ended: dict[str, int],
    rounds: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds: list[int] = []

    async def play(
        drill: Any, place: Any, fault: Fault, seed: int
    ) -> tuple[Report, dict[str, int], list[str]]:
        seeds.append(seed)
        anomalies = {Anomaly.COUNTERS: Found(1, "received falls")} if len(seeds) > fails_in else {}
        return Report(anomalies, {"bets": 9, "records": 9}, seed), ended, []

    monkeypatch.setattr(campaign, "play", play)
    cluster: Any = None
    played = await found(fault, "replay", cluster, tmp_path, "some", seed=5)
    assert played["rounds"] == rounds
    assert seeds == list(range(5, 5 + rounds))


class FakeBridge:
    """A bridge in these states, with this exit code; it ends with 0 when told to."""

    def __init__(self, code: int | None = None, *states: str) -> None:
        self.code, self._states = code, [*states]
        self.process = SimpleNamespace(poll=lambda: self.code)
        self.log = Path(f"bridge{code}.log")

    def states(self) -> list[str]:
        return self._states

    def signal(self, number: int) -> None:
        self.code = 0 if number == signal.SIGTERM else self.code

    def kill(self) -> None:
        self.code = -signal.SIGKILL if self.code is None else self.code


def ground(*bridges: Any, is_sound: bool = True) -> Ground:
    """The ground of a drill with these bridges."""
    place: Any = SimpleNamespace(bridges=[*bridges], directory=None)
    feed: Any = SimpleNamespace(stop_publishing=lambda: None)
    return Ground(place, feed, SOUND if is_sound else FAULT, {})


async def test_a_drill_says_which_processes_have_ended_by_themselves() -> None:
    killed, crashed, lost, told = (FakeBridge(code) for code in (None, 1, -signal.SIGKILL, None))
    it: Any = ground(killed, crashed, lost, told)
    it.kill(killed)
    it.kill(crashed)
    await it.end()
    assert (killed.code, told.code) == (-signal.SIGKILL, 0)
    assert it.ended() == {"bridge1": 1, "bridge-9": -signal.SIGKILL}


async def test_live_is_what_the_bridge_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def until(condition: Callable[[], bool], *_: object) -> None:
        assert condition()

    monkeypatch.setattr(drills, "until", until)
    for bridge, is_live in (
        (FakeBridge(None, "Connecting"), False),
        (FakeBridge(None, "Connecting", "Live"), True),
        (FakeBridge(1, "Live"), False),
    ):
        it: Any = ground(bridge)
        assert await it.live(bridge) is is_live


async def test_a_bridge_that_does_not_end_is_not_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(FakeBridge):
        def signal(self, number: int) -> None:
            """Ignore it."""

    monkeypatch.setattr(drills, "END_SECONDS", 0.1)
    it: Any = ground(Deaf())
    await it.end()
    assert it.unmet == ["the end"]
    assert it.ended() == {"bridgeNone": -signal.SIGKILL}


@pytest.mark.parametrize(
    ("is_sound", "states", "left_out"),
    [(True, ["Live"], 0), (False, ["CatchingUp"], 0), (False, ["Live"], 3), (False, [], 3)],
)
async def test_only_a_broken_bridge_that_is_live_is_given_no_time(
    is_sound: bool, states: list[str], left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drills, "SETTLED_SECONDS", -1.0)
    left = [7, 7, 7, 0]

    def missing(*_: object) -> int:
        return left.pop(0)

    monkeypatch.setattr(drills, "missing", missing)
    monkeypatch.setattr(Ground, "_case", lambda _: None)
    await ground(FakeBridge(None if states else 1, *states), is_sound=is_sound).case()
    assert len(left) == left_out
