"""What is drawn from a seed."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from tests.storm.kinds import FAULTS
from tests.storm.plan import CALM_SECONDS, draw


def test_a_seed_gives_one_plan() -> None:
    assert draw(7, 300, 200) == draw(7, 300, 200)
    assert draw(7, 300, 200) != draw(8, 300, 200)


def test_every_fault_is_drawn_as_often_as_it_may_and_ends_within_the_round_and_some_overlap() -> None:
    plans = [draw(seed, 300, 200) for seed in range(300)]
    steps = list(chain.from_iterable(plan.steps for plan in plans))
    assert {step.name for step in steps} == FAULTS.keys()
    assert all(step.at >= CALM_SECONDS and step.at + step.seconds <= 300 for step in steps)
    for plan in plans:
        drawn = Counter(step.name for step in plan.steps)
        assert all(count <= FAULTS[name].most for name, count in drawn.items())
        ends = [step.at + step.seconds for step in plan.steps]
        assert any(later.at < end for later, end in zip(plan.steps[1:], ends, strict=False))


def test_only_the_kinds_that_are_asked_for_are_drawn() -> None:
    assert {step.name for step in draw(1, 60, 100, {"kill-bridge", "cut"}).steps} <= {"kill-bridge", "cut"}
    assert [step.name for step in draw(1, 300, 200, {"topic-anew"}).steps] == ["topic-anew"]
