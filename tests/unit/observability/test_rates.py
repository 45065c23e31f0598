"""Messages a second."""

from __future__ import annotations

from bridge.observability.rates import SPAN_SECONDS, RateMeter, Rates


def test_rates_are_of_the_last_seconds() -> None:
    meter = RateMeter()
    assert meter.observe(100.0, 1_000_000, 500_000) == Rates(0, 0)
    assert meter.observe(102.0, 1_000_200, 500_100) == Rates(100, 50)
    for tenth in range(1030, 1200):
        rates = meter.observe(tenth / 10, 1_000_200, 500_100)
    assert rates == Rates(0, 0)
    assert len(meter._samples) <= SPAN_SECONDS + 1


def test_a_meter_that_was_not_asked_for_long_begins_again() -> None:
    meter = RateMeter()
    meter.observe(0.0, 0, 0)
    assert meter.observe(SPAN_SECONDS + 60, 7_000, 7_000) == Rates()
