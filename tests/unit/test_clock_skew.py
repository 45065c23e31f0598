"""What a `Date` can say of how far the provider's clock is from ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest

from bridge.clock_skew import Skew, from_dates

DATE = "Mon, 21 Sep 2026 14:13:20 GMT"
AT = 1_790_000_000.0


@pytest.mark.parametrize(
    ("asked", "received", "skew"),
    [
        (AT, AT, Skew(0.0, 1.0)),
        (AT - 2.5, AT + 0.5, Skew(-0.5, 3.5)),
        (AT + 10, AT + 10.25, Skew(-10.25, -9.0)),
        (AT - 10, AT - 9.5, Skew(9.5, 11.0)),
    ],
)
def test_a_date_bounds_the_skew(asked: float, received: float, skew: Skew) -> None:
    assert from_dates([DATE], asked, received) == skew


@pytest.mark.parametrize("offset", [-30.0, -1.5, 0.0, 0.4, 0.999, 1.5, 45.0])
@pytest.mark.parametrize("latency", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.999])
def test_the_true_skew_is_within_the_bounds(offset: float, latency: float, fraction: float) -> None:
    for share in (0.0, 0.5, 1.0):
        asked = AT + fraction
        header = formatdate(asked + share * latency + offset, usegmt=True)
        skew = from_dates([header], asked, asked + latency)
        assert skew is not None
        assert skew.low - 1e-6 <= offset <= skew.high + 1e-6
        assert abs(skew.seconds) <= abs(offset) + 1e-6


@pytest.mark.parametrize(
    ("skew", "seconds"),
    [
        (Skew(-0.5, 0.5), 0.0),
        (Skew(0.0, 1.0), 0.0),
        (Skew(-3.0, 0.0), 0.0),
        (Skew(9.5, 11.0), 9.5),
        (Skew(-10.25, -9.0), -9.0),
    ],
)
def test_the_least_skew_that_explains_it(skew: Skew, seconds: float) -> None:
    assert skew.seconds == seconds


@pytest.mark.parametrize(
    "header", ["", "yesterday", "Mon, 99 Sep 2026 14:13:20 GMT", "-1", DATE.replace("GMT", "9" * 20)]
)
def test_what_is_no_date_says_nothing(header: str) -> None:
    assert from_dates([header], AT, AT) is None


def test_several_dates_count_where_they_agree() -> None:
    later = DATE.replace(":20", ":21")
    assert from_dates([DATE, DATE], AT, AT) == Skew(0.0, 1.0)
    assert from_dates([DATE, later], AT, AT) == from_dates([later, DATE], AT, AT) == Skew(0.0, 2.0)
    for other in (DATE.replace(":20", ":22"), DATE.replace("2026", "2025"), "soon"):
        assert from_dates([DATE, other], AT, AT) is None
    assert from_dates([], AT, AT) is None


def test_a_skew_by_another_clock() -> None:
    assert Skew(9.5, 11.0).by(10.0) == Skew(-0.5, 1.0)


@pytest.fixture
def _far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_far_from_greenwich")
def test_a_date_without_a_zone_is_in_utc() -> None:
    assert from_dates([DATE.removesuffix(" GMT")], AT, AT) == Skew(0.0, 1.0)
