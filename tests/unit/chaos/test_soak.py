"""When a soak is over."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos import test_soak as soak
from tests.chaos.test_soak import Soak, Soaked


def bridge(*answers: tuple[str, float]) -> Any:
    """An owner that gives one state and count after the other, and the last one for ever."""
    left = [*answers]

    async def metrics() -> dict[str, float]:
        state, count = left.pop(0) if len(left) > 1 else left[0]
        states = {f"bridge_state {name}": float(name == state) for name in ("Live", "Quiet", "CatchingUp")}
        return {"bridge_leader": 1.0, "bridge_messages_total published": count, **states}

    found: Any = SimpleNamespace(metrics=metrics, left=left)
    found.published = lambda: Soaked.published(found)
    return found


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeps move."""
    now = [0.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(soak, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(soak, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def run(*bridges: Any) -> Any:
    """A soak with these bridges."""
    nothing: Any = None
    found = Soak(nothing, nothing)
    found.bridges = [*bridges]
    return found


def test_a_soak_is_settled_once_its_owner_has_caught_up(no_waiting: list[float]) -> None:
    """The silence of one that has just taken over is not the end."""
    it = bridge(
        *[("Live", 5.0)] * 4, *[("CatchingUp", 5.0)] * 30, ("Live", 5.0), ("Live", 9.0), ("Quiet", 9.0)
    )
    asyncio.run(run(it).settled())
    assert len(it.left) == 1
    assert no_waiting[0] == 35 + soak.CALM_SECONDS


def test_a_soak_without_an_owner_fails(no_waiting: list[float]) -> None:
    """It does not wait for ever."""
    with pytest.raises(AssertionError, match="no bridge owns"):
        asyncio.run(run(bridge(("CatchingUp", 5.0))).settled())
