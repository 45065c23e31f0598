"""Moments, and a clock that no step of the wall clock moves."""

from __future__ import annotations

from bridge.clock import AnchoredClock, Instant, now


class Machine:
    """A machine whose clocks are set by hand."""

    wall, monotonic = 1000.0, 7.0

    def __call__(self) -> Instant:
        return Instant(self.wall, self.monotonic)


def test_an_anchored_clock_goes_on_steadily() -> None:
    machine = Machine()
    clock = AnchoredClock(machine)
    assert (clock(), clock.stepped) == (Instant(1000.0, 7.0), 0)
    machine.wall, machine.monotonic = 4610.0, 17.0
    assert (clock(), clock.stepped) == (Instant(1010.0, 17.0), 3600)
    clock.anchor()
    assert (clock(), clock.stepped) == (Instant(4610.0, 17.0), 0)
    machine.wall -= 10.0
    assert (clock(), clock.stepped) == (Instant(4610.0, 17.0), -10)


def test_the_machine_has_clocks() -> None:
    first, second = now(), AnchoredClock()()
    assert first.monotonic <= second.monotonic
