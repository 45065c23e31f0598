"""Who dies in the campaign of kills, and where."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos import test_kills as kills
from tests.chaos.test_kills import STEPS, Armed, Round, missed, needless, rarest


class FakeBridge:
    """A bridge that dies of each signal."""

    def __init__(self) -> None:
        self.died_of = 0
        self.process = SimpleNamespace(poll=lambda: -self.died_of if self.died_of else None)
        self.states, self.text, self.dies_of_sigterm = lambda: ["Standby"], str, lambda: True

    def signal(self, number: int) -> None:
        self.died_of = number

    async def wait(self, _seconds: float) -> int:
        return -self.died_of


def played(*owners: FakeBridge | None) -> Any:
    """A round in which the group names one owner after the other, and the last one for ever."""
    answers = list(owners)

    async def owner() -> FakeBridge | None:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    place: Any = SimpleNamespace(admin=lambda: None, bridge=lambda **_: FakeBridge())
    found: Any = Round(place, 0, kills=1, terms=0, messages=0)
    found._members = SimpleNamespace(owner=owner)
    return found


async def test_a_strike_at_the_owner_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = FakeBridge()
    it = played(None, None, owner)
    it.bridges = [FakeBridge(), owner]
    assert await it._owner() is owner
    monkeypatch.setattr(kills, "PATIENCE", 0.3)
    with pytest.raises(AssertionError, match="an owner"):
        await played(None)._owner()


async def test_an_owner_that_is_to_die_at_a_step_is_left_to_come_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kills, "STEP_SECONDS", 0.3)
    dying, lasting = FakeBridge(), FakeBridge()
    it = played(None)
    it.done["SIGKILL"] = 1
    it.bridges = [dying, lasting]
    it._armed = {dying: Armed("connected", "before"), lasting: Armed("fenced", "after")}
    dying.died_of = signal.SIGKILL
    assert await it._dies(dying)
    assert it.steps == {"connected": 1}
    assert not await it._dies(lasting)


async def test_nobody_is_left_to_die_while_the_round_is_judged() -> None:
    armed, other = FakeBridge(), FakeBridge()
    it = played(other)
    it.done["SIGKILL"] = 1
    it.bridges, it._armed = [armed, other], {armed: Armed("connected", "before")}
    await it._disarm()
    assert (armed.died_of, other.died_of) == (signal.SIGTERM, 0)


def test_the_steps_reached_least_often_come_next() -> None:
    reached = dict.fromkeys(STEPS, 12)
    assert missed(reached, 500) == {}
    del reached["half a transaction"]
    reached["connected"] = 9
    assert missed(reached, 500) == {"connected": 9, "half a transaction": 0}
    assert rarest(reached) == ["half a transaction"]


def test_attempts_of_no_process_that_came_to_it_are_counted() -> None:
    steps = {"joined": 3, "at random: Standby": 2, "at random: Live": 5}
    result = {"bridges": 2, "kills": 8, "terms": 2, "steps": steps}
    for attempts, count in ((3, 0), (9, 0), (11, 2)):
        assert needless({**result, "figures": {"attempts": attempts}}) == count
