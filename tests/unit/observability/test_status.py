"""What is computed from a status snapshot at the moment of reading."""

from __future__ import annotations

import pytest

from bridge.observability.status import BOUNDS, DurationHistogram
from tests.snapshots import replace, snapshot

NOW = 1_790_000_000.0
STARTED = snapshot(
    at=NOW, started_at=NOW - 5, feed="f", idle_timeout_seconds=60, owner_id="host:1:abc", since=NOW - 5
)


def test_nothing_is_computed_from_unknown_values() -> None:
    assert STARTED.revision_age(NOW) is None
    assert STARTED.lag(NOW) is None


@pytest.mark.parametrize(("skew", "age"), [(None, 100.0), (5.0, 105.0), (-5.0, 95.0)])
def test_ages_are_by_the_providers_clock(skew: float | None, age: float) -> None:
    status = replace(STARTED, revision=int(NOW) - 90, newest=NOW - 90.0, skew=skew)
    assert status.revision_age(NOW + 10) == age
    assert status.lag(NOW + 10) == age


def test_a_bet_from_the_future_is_no_lag() -> None:
    assert replace(STARTED, newest=NOW + 5).lag(NOW) == 0.0


def test_a_histogram_counts_each_duration_once() -> None:
    histogram = DurationHistogram()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] + 0.001, BOUNDS[-1], BOUNDS[-1] + 1):
        histogram.observe(seconds)
    copy = histogram.copy()
    histogram.observe(1.0)
    assert (copy.count, histogram.count) == (5, 6)
    assert copy.seconds == pytest.approx(2 * BOUNDS[0] + 2 * BOUNDS[-1] + 1.001)
    buckets = dict(copy.buckets())
    assert [buckets[bound] for bound in ("0.005", "0.01", "10.0", "30.0", "+Inf")] == [2, 3, 3, 4, 5]
