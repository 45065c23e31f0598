"""Refusals of the provider, and the bridge's reaction to each."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from bridge.errors import AuthError
from bridge.sandbox.provider.faults import Drop, Refuse
from bridge.state.checkpoint import Checkpoint, State
from tests.virtual.world import World, play


def by_file(file: Path) -> dict[str, object]:
    """Return settings of a bearer token in a file."""
    return {"auth": "bearer", "auth_value_file": file}


def test_a_credential_that_was_rotated_is_read_again(tmp_path: Path) -> None:
    """The file had another one by the time of the refusal: one more attempt, and nothing is lost."""
    file = tmp_path / "token"
    file.write_text("old")

    async def story(world: World) -> None:
        world.network.token = "old"
        world.start()
        await asyncio.sleep(300)
        world.network.token = "new"
        world.network.there = 1.0
        world.inflict(Drop())
        await asyncio.sleep(1.5)  # connected with the old one; refused soon
        file.write_text("new")
        await world.check()
        refused = [attempt for attempt in world.last.ledger if attempt.recovery_seconds]
        assert len(refused) == 2
        assert not any(attempt.refused for attempt in world.last.ledger)  # not for a limit

    play(story, rate=0.2, feed=by_file(file))


@pytest.mark.parametrize("changes", [0, 1, 100])
def test_a_credential_that_stays_wrong_stops_the_bridge(changes: int, tmp_path: Path) -> None:
    """After one attempt, or two if the file changed meanwhile, however often; the error names the setting."""
    file = tmp_path / "token"
    file.write_text("wrong")

    async def change(world: World) -> None:
        await world.until(State.CONNECTING)  # the first attempt is under way
        for number in range(changes):
            await asyncio.sleep(0.3)
            file.write_text(f"wrong {number}")

    async def story(world: World) -> None:
        world.network.token = "right"
        world.network.there = 3.0
        world.start()
        changing = asyncio.create_task(change(world))
        error = await world.ended()
        changing.cancel()
        assert isinstance(error, AuthError)
        assert "BRIDGE_FEED__AUTH" in str(error)
        assert "wrong" not in str(error)
        assert len(world.last.ledger) == (2 if changes else 1)
        assert [attempt.status for attempt in world.provider.attempts] == [401] * len(world.last.ledger)

    play(story, feed=by_file(file))


def test_a_supervisor_that_restarts_it_with_a_wrong_credential_breaks_no_limit(tmp_path: Path) -> None:
    """A refused credential counts in the ledger as it does at the provider: no more than five in a row."""
    file = tmp_path / "token"
    file.write_text("wrong")

    async def story(world: World) -> None:
        world.network.token = "right"
        for _ in range(12):
            world.start()
            assert isinstance(await world.ended(), AuthError)
        at = [attempt.at for attempt in world.provider.attempts]
        assert len(at) == 12
        # The first asks with 0; those after it have a position to ask from.
        assert all(sixth - first >= 300 for first, sixth in zip(at[1:], at[6:], strict=False))
        assert world.provider.breaches == []

    play(story, feed=by_file(file))


def test_a_missing_file_at_an_attempt_costs_nothing(tmp_path: Path) -> None:
    """The last credential is used."""
    file = tmp_path / "token"
    file.write_text("right")

    async def story(world: World) -> None:
        world.network.token = "right"
        world.start()
        await asyncio.sleep(300)
        file.unlink()
        world.inflict(Drop())
        await world.check()
        assert len(world.last.ledger) == 2

    play(story, rate=0.2, feed=by_file(file))


@pytest.mark.parametrize("content", ["new", "old"])
def test_a_refusal_while_the_file_is_away_decides_nothing(content: str, tmp_path: Path) -> None:
    """No attempt is made until it can be read; then the same credential is wrong, and another is tried."""
    file = tmp_path / "token"
    file.write_text("old")

    async def story(world: World) -> None:
        world.network.token = "old"
        world.start()
        await asyncio.sleep(300)
        world.network.token = "new"
        file.unlink()
        world.inflict(Drop())
        await asyncio.sleep(200)
        assert len(world.last.ledger) == 2
        assert world.last.state is State.BACKING_OFF
        assert "its file cannot be read: No such file" in world.last.reason
        file.write_text(content)
        if content == "new":
            await world.check()
        else:
            assert isinstance(await world.ended(), AuthError)
        assert len(world.last.ledger) == (3 if content == "new" else 2)

    play(story, rate=0.2, feed=by_file(file))


REFUSALS = [
    Refuse(count=3, status=429),
    Refuse(count=3, status=403),
    Refuse(count=3, close_code=1008),
    Refuse(count=3, close_code=1013),
    Refuse(count=3, status=500),
    Refuse(count=3, close_code=1011),
]


@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda fault: str(fault.close_code or fault.status))
def test_a_refusal_is_recorded_and_followed_by_a_longer_pause(refuse: Refuse) -> None:
    """One that means `not now` is in the ledger as such; the pauses grow, from 15 s or from 1 s."""
    meant = refuse.close_code in (1008, 1013) or (not refuse.close_code and refuse.status in (403, 429))

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(400)
        world.inflict(refuse)
        world.inflict(Drop())
        await asyncio.sleep(400)
        at = [attempt.at for attempt in world.provider.attempts[1:]]
        pauses = [after - before for before, after in pairwise(at)]
        first = 15.0 if meant else 1.0
        for number, pause in enumerate(pauses, 1):
            assert first * 2**number / 2 <= pause <= first * 2**number + 1, number
        assert [attempt.refused for attempt in world.last.ledger].count(True) == (3 if meant else 0)
        assert world.owner is not None
        assert world.owner.snapshot()["connections"].get("refused", 0) == (3 if meant else 0)
        await world.check()

    play(story, rate=0.1)


def test_the_reason_and_the_end_of_a_pause_are_committed() -> None:

    async def story(world: World) -> Checkpoint:
        world.inflict(Refuse(seconds=600))
        world.start()
        return await world.until(State.BACKING_OFF)

    waiting = play(story)
    assert waiting.reason == "a pause after a failure"
    assert waiting.until is not None
    assert waiting.until > waiting.updated_at
