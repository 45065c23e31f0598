"""The provider's clock, stepping."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge_sandbox.provider.clock import Clock

NOW = 1_790_000_000.0

steps = st.lists(st.tuples(st.integers(0, 1000), st.integers(-500, 500)), max_size=4).map(sorted)


def stepped(*steps: tuple[float, float]) -> Clock:
    clock = Clock()
    for moment, seconds in steps:
        clock.step(NOW + moment, seconds)
    return clock


def test_an_untouched_clock_shows_the_time() -> None:
    assert (Clock().reading(NOW), Clock().first(NOW)) == (NOW, NOW)


def test_steps_add_up() -> None:
    clock = stepped((10, 60), (20, -90))
    assert [clock.ahead(NOW + t) for t in (0, 10, 10.5, 20, 20.5, 9999)] == [0, 0, 60, 60, -30, -30]


@settings(deadline=None)
@given(steps=steps, reading=st.integers(-100, 1500))
def test_nothing_before_the_first_moment_shows_the_reading(
    steps: list[tuple[float, float]], reading: int
) -> None:
    clock = stepped(*steps)
    first = clock.first(NOW + reading)
    assert all(clock.reading(NOW + t) < NOW + reading for t in range(-3000, 4000) if NOW + t < first)
    assert max(clock.reading(first), clock.reading(first + 1e-3)) >= NOW + reading
