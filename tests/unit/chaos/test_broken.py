"""How drills wait for bridges."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.broken import drills
from tests.broken.drills import Ground

class FakeBridge:
    """A bridge in these states, with this exit code; it ends with 0 when told to."""

    def __init__(self, code: int | None = None, *states: str) -> None:
        self.code, self._states = code, [*states]
        self.process = SimpleNamespace(poll=lambda: self.code)
        self.log = Path(f"bridge{code}.log")

    def states(self) -> list[str]:
        return self._states

    def signal(self, number: int) -> None:
        self.code = 0 if number == signal.SIGTERM else self.code

    def kill(self) -> None:
        self.code = -signal.SIGKILL if self.code is None else self.code


def ground(*bridges: Any, is_sound: bool = True) -> Ground:
    """The ground of a drill with these bridges."""
    place: Any = SimpleNamespace(bridges=[*bridges], directory=None)
    feed: Any = SimpleNamespace(stop_publishing=lambda: None)
    starter: Any = SimpleNamespace(is_sound=is_sound)
    return Ground(place, feed, starter, {})


async def test_live_is_what_the_bridge_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the time is over."""

    async def until(condition: Callable[[], bool], *_: object) -> None:
        assert condition()

    monkeypatch.setattr(drills, "until", until)
    for bridge, is_live in (
        (FakeBridge(None, "Connecting"), False),
        (FakeBridge(None, "Connecting", "Live"), True),
        (FakeBridge(1, "Live"), False),
    ):
        it: Any = ground(bridge)
        assert await it.live(bridge) is is_live


@pytest.mark.parametrize(("is_sound", "left_out"), [(True, 0), (False, 3)])
async def test_the_sound_bridge_is_given_time(
    is_sound: bool, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken one may never publish the rest."""
    monkeypatch.setattr(drills, "SETTLED_SECONDS", -1.0)
    left = [7, 7, 7, 0]

    def missing(*_: object) -> int:
        return left.pop(0)

    monkeypatch.setattr(drills, "missing", missing)
    monkeypatch.setattr(Ground, "_case", lambda _: None)
    await ground(is_sound=is_sound).case()
    assert len(left) == left_out
