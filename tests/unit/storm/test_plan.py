"""What is drawn from a seed."""

from __future__ import annotations

import json
from functools import cache
from itertools import chain

import pytest

from tests.storm.kinds import FAULTS
from tests.storm.plan import CALM_SECONDS, Plan, draw


@cache
def many(count: int = 300) -> list[Plan]:
    return [draw(seed, 300, 200) for seed in range(count)]


def test_a_seed_gives_one_plan() -> None:
    assert draw(7, 300, 200) == draw(7, 300, 200)
    assert draw(7, 300, 200) != draw(8, 300, 200)


def test_every_fault_is_drawn_and_ends_within_the_round() -> None:
    plans = many()
    steps = list(chain.from_iterable(plan.steps for plan in plans))
    assert {step.name for step in steps} == FAULTS.keys()
    assert all(step.at >= CALM_SECONDS and step.at + step.seconds <= 300 for step in steps)
    for plan in plans:
        ends = [step.at + step.seconds for step in plan.steps]
        assert any(later.at < end for later, end in zip(plan.steps[1:], ends, strict=False))


def test_only_the_kinds_that_are_asked_for_are_drawn() -> None:
    plan = draw(1, 60, 100, {"kill-bridge", "cut"})
    assert {step.name for step in plan.steps} <= {"kill-bridge", "cut"}


def test_what_happens_once_at_most_fills_no_round() -> None:
    assert [step.name for step in draw(1, 300, 200, {"topic-anew"}).steps] == ["topic-anew"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_written_down_with_all_that_was_drawn(name: str) -> None:
    step = next(step for plan in many() for step in plan.steps if step.name == name)
    written = json.loads(json.dumps(step.json()))
    assert written["fault"] == name
    assert written.keys() - {"at", "seconds", "fault"} == step.fault.parameters().keys()
