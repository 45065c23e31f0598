"""Which clock is believed: by what the provider says, the machine's, or the one so far, or none."""

from __future__ import annotations

import asyncio
from math import inf

import pytest

from bridge.clock import AnchoredClock, Instant
from bridge.clock_skew import Skew
from bridge.config import FeedSettings
from bridge.errors import ClockError, FeedLost
from bridge.service.timekeeper import ASK_SECONDS, MOST_QUESTIONS, STEP_SECONDS, Timekeeper
from tests.virtual.loop import given

EPOCH = 1_790_000_000.0
SETTINGS = FeedSettings(base_url="http://provider.example")


class Scene:
    """A machine whose wall clock is set by hand, and a provider whose clock is `ahead` of the right time."""

    def __init__(self) -> None:
        self.set_by = self.ahead = 0.0
        self.silent = self.undated = False
        self.asked = 0
        self.clock = AnchoredClock(self.machine)
        self.keeper = Timekeeper(SETTINGS, self.clock, self._ask)

    def machine(self) -> Instant:
        monotonic = asyncio.get_running_loop().time()
        return Instant(EPOCH + monotonic + self.set_by, monotonic)

    async def _ask(self, _settings: FeedSettings) -> Skew | None:
        self.asked += 1
        await asyncio.sleep(0.5)
        if self.silent:
            raise FeedLost("nobody answers")
        return None if self.undated else Skew(EPOCH + self.ahead, EPOCH + self.ahead + 1)

    @property
    def wrong_by(self) -> float:
        """Of the clock that is believed."""
        return self.clock().wall - EPOCH - asyncio.get_running_loop().time()

    async def watched(self, *, doubted: bool = False) -> int:
        """Watch for an hour. Returns how often an answer showed the skew."""
        found = 0
        for _ in range(3600):
            found += self.keeper.watch(doubted=doubted) is not None
            await asyncio.sleep(1)
        return found


@given(Scene)
async def test_the_machine_is_believed_if_the_provider_agrees_or_shows_no_time(scene: Scene) -> None:
    scene.set_by, scene.ahead = 100.0, 110.0
    await scene.keeper.compare()
    assert (scene.wrong_by, scene.keeper.skew) == (100, Skew(10, 11))
    scene.set_by, scene.undated = 3600.0, True
    await scene.keeper.compare()
    assert (scene.wrong_by, scene.keeper.skew) == (3600, None)


@pytest.mark.parametrize("step", [3600.0, -3600.0, 17.0])
@given(Scene)
async def test_a_wall_clock_that_the_provider_refutes_is_not_believed(scene: Scene, step: float) -> None:
    scene.set_by = step
    await scene.keeper.compare()
    assert (scene.wrong_by, scene.keeper.skew) == (0, Skew(0, 1))
    scene.ahead = -300.0 if step > 0 else 300.0
    with pytest.raises(ClockError, match="BRIDGE_FEED__MAX_CLOCK_SKEW_SECONDS"):
        await scene.keeper.compare()


@given(Scene)
async def test_a_wall_clock_that_is_set_is_asked_about_once(scene: Scene) -> None:
    assert (await scene.watched(), scene.asked, scene.wrong_by) == (0, 0, 0)
    scene.set_by = STEP_SECONDS * 1.5
    assert (await scene.watched(), scene.asked, scene.wrong_by) == (1, 1, 1.5)
    scene.set_by = -3600.0
    assert (await scene.watched(), scene.asked, scene.wrong_by) == (1, 2, 1.5)
    scene.set_by = 1.5
    assert (await scene.watched(), scene.asked, scene.wrong_by) == (1, 3, 1.5)
    assert scene.keeper.corrected_at == -inf


@given(Scene)
async def test_a_machine_that_stood_still_is_set_right(scene: Scene) -> None:
    scene.set_by = scene.ahead = 600.0
    with pytest.raises(FeedLost, match="corrected"):
        await scene.watched()
    assert (scene.wrong_by, scene.keeper.corrected_at) == (600, scene.clock().wall)
    assert await scene.watched() == 0


@given(Scene)
async def test_data_that_raise_a_doubt_are_asked_about_again_and_again(scene: Scene) -> None:
    assert await scene.watched(doubted=True) == scene.asked
    assert scene.asked == pytest.approx(3600 / ASK_SECONDS, abs=1)
    scene = Scene()
    scene.silent, scene.set_by = True, 100.0
    assert (await scene.watched(), scene.wrong_by) == (0, 0)
    assert scene.asked == pytest.approx(3600 / ASK_SECONDS, abs=1)


@given(Scene)
async def test_if_the_provider_shows_no_time_the_clock_goes_on_as_it_did(scene: Scene) -> None:
    scene.undated, scene.set_by = True, 100.0
    assert (await scene.watched(), scene.wrong_by) == (0, 0)
    assert scene.asked == pytest.approx(3600 / ASK_SECONDS, abs=1)
    with pytest.raises(FeedLost, match="from the future"):
        await scene.watched(doubted=True)


@given(Scene)
async def test_before_a_connection_attempt_a_clock_that_was_set_is_settled(scene: Scene) -> None:
    await scene.keeper.settle()
    assert (scene.asked, scene.wrong_by) == (0, 0)
    scene.set_by = scene.ahead = 100.0
    await scene.keeper.settle()
    assert (scene.asked, scene.wrong_by) == (1, 100)
    scene.set_by, scene.silent = 3600.0, True
    for _ in range(MOST_QUESTIONS - 1):
        with pytest.raises(FeedLost):
            await scene.keeper.settle()
    await scene.keeper.settle()
    assert (scene.wrong_by, scene.keeper.stepped) == (3600, False)


@given(Scene)
async def test_close_drops_the_pending_request(scene: Scene) -> None:
    scene.set_by = scene.ahead = 100.0
    scene.keeper.watch(doubted=False)
    await asyncio.sleep(0.25)
    assert scene.asked == 1
    scene.keeper.close()
    scene.keeper.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await asyncio.sleep(1)
    assert (scene.keeper.watch(doubted=False), scene.keeper.skew, scene.wrong_by) == (None, None, 0)
