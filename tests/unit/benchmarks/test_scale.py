"""What a load costs the brokers."""

from __future__ import annotations

from benchmarks.scale import Load, Used, costs


def test_costs_are_those_between_two_readings() -> None:
    first, last = Used(10.0, 1.0, 1_000, 500), Used(14.0, 3.0, 9_000, 4_500)
    assert costs(first, last, 2_000, 100) == {
        "broker_cpu_us": 1_000.0,
        "broker_cores": 0.5,
        "transactions_per_second": 25.0,
        "bytes_received": 4.0,
        "bytes_on_disk": 2.0,
    }


def test_a_load_names_the_settings_as_the_documentation_does() -> None:
    assert str(Load(1000, settings=(("BATCH__MAX_AGE_MS", "100"),))) == "1,000/s, batch.max_age_ms = 100"
    assert str(Load(0)) == "catch-up"
