"""What is computed from a view at the moment at which someone looks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.observability.view import StatusSnapshot

NOW = 1_790_000_000.0
VIEW = StatusSnapshot(at=NOW, started_at=NOW, feed="f", owner_id="me", since=NOW)


def test_nothing_is_said_of_what_is_not_known() -> None:
    """A bridge that has only just started has neither position nor messages."""
    assert VIEW.revision_age(NOW) is None
    assert VIEW.distance(NOW) is None


@pytest.mark.parametrize(("skew", "age"), [(None, 100.0), (5.0, 105.0), (-5.0, 95.0)])
def test_ages_are_by_the_providers_clock(skew: float | None, age: float) -> None:
    """In which position and settlementTime are."""
    view = replace(VIEW, revision=int(NOW) - 90, newest=NOW - 90.0, skew=skew)
    assert view.revision_age(NOW + 10) == age
    assert view.distance(NOW + 10) == age


def test_a_bet_from_the_future_is_no_distance() -> None:
    """There is nothing to catch up with."""
    assert replace(VIEW, newest=NOW + 5).distance(NOW) == 0.0
