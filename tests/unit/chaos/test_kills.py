"""Who dies in the campaign of kills, and where."""

from __future__ import annotations

from tests.chaos.test_kills import STEPS, missed, needless, rarest


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
