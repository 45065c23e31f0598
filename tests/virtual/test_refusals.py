"""Refusals of the provider, and the bridge's reaction to each."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from bridge.errors import AuthError
from bridge.formatting import format_duration
from bridge.records.checkpoint import State
from bridge_sandbox.provider.faults import Drop, Refuse
from tests.virtual.world import World, in_world


class Credential:
    """A bearer token in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.write, self.remove = file.write_text, file.unlink
        self._settings = {"auth": "bearer", "auth_value_file": file}

    def start(self, world: World, token: str) -> None:
        """Start the bridge with it; the provider wants `token`."""
        world.network.token = token
        world.start(**self._settings)


@pytest.fixture
def credential(tmp_path: Path) -> Credential:
    return Credential(tmp_path / "token")


@in_world(rate=0.2)
async def test_a_credential_that_was_rotated_is_read_again(world: World, credential: Credential) -> None:
    credential.write("old")
    credential.start(world, "old")
    await asyncio.sleep(300)
    world.network.token = "new"
    world.network.there = 1.0
    world.inflict(Drop())
    await asyncio.sleep(1.5)  # connected with the old one; refused soon
    credential.write("new")
    await world.check()
    refused = [attempt for attempt in world.last.ledger if attempt.recovery_seconds]
    assert len(refused) == 2
    assert not any(attempt.refused for attempt in world.last.ledger)  # not for a limit


@pytest.mark.parametrize("changes", [0, 1, 100])
@in_world()
async def test_a_credential_that_stays_wrong_stops_the_bridge(
    world: World, changes: int, credential: Credential
) -> None:
    async def change() -> None:
        await world.until(State.CONNECTING)  # the first attempt is under way
        for number in range(changes):
            await asyncio.sleep(0.3)
            credential.write(f"wrong-{number}")

    credential.write("wrong")
    world.network.there = 3.0
    credential.start(world, "right")
    changing = asyncio.create_task(change())
    error = await world.ended()
    changing.cancel()
    assert isinstance(error, AuthError)
    assert "BRIDGE_FEED__AUTH" in str(error)
    assert "wrong" not in str(error)
    assert len(world.last.ledger) == (2 if changes else 1)
    assert [attempt.status for attempt in world.provider.attempts] == [401] * len(world.last.ledger)


@in_world()
async def test_a_supervisor_that_restarts_it_with_a_wrong_credential_breaks_no_limit(
    world: World, credential: Credential
) -> None:
    credential.write("wrong")
    for _ in range(12):
        credential.start(world, "right")
        assert isinstance(await world.ended(), AuthError)
    at = [attempt.at for attempt in world.provider.attempts]
    assert len(at) == 12
    # All ask for 0: what that replays has not come yet.
    assert all(sixth - first >= 1800 for first, sixth in zip(at, at[5:], strict=False))
    assert world.provider.breaches == []


@in_world(rate=0.2)
async def test_a_missing_file_at_an_attempt_costs_nothing(world: World, credential: Credential) -> None:
    credential.write("right")
    credential.start(world, "right")
    await asyncio.sleep(300)
    credential.remove()
    world.inflict(Drop())
    await world.check()
    assert len(world.last.ledger) == 2


@pytest.mark.parametrize("content", ["new", "old"])
@in_world(rate=0.2)
async def test_a_refusal_while_the_file_is_away_decides_nothing(
    world: World, content: str, credential: Credential
) -> None:
    credential.write("old")
    credential.start(world, "old")
    await asyncio.sleep(300)
    world.network.token = "new"
    credential.remove()
    world.inflict(Drop())
    await asyncio.sleep(200)
    assert len(world.last.ledger) == 2
    assert world.last.state is State.BACKING_OFF
    assert f"its file cannot be used: {credential.file}: No such file" in world.last.reason
    credential.write(content)
    if content == "new":
        await world.check()
    else:
        assert isinstance(await world.ended(), AuthError)
    assert len(world.last.ledger) == (3 if content == "new" else 2)


REFUSALS = [
    Refuse(count=3, status=429),
    Refuse(count=3, status=403),
    Refuse(count=3, close_code=1008),
    Refuse(count=3, close_code=1013),
    Refuse(count=3, status=500),
    Refuse(count=3, close_code=1011),
]


@pytest.mark.parametrize("refuse", REFUSALS, ids=lambda fault: str(fault.close_code or fault.status))
@in_world(rate=0.1)
async def test_a_refusal_is_recorded_and_followed_by_a_longer_pause(world: World, refuse: Refuse) -> None:
    meant = refuse.close_code in (1008, 1013) or (not refuse.close_code and refuse.status in (403, 429))
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
    assert world.owner.seen().intake.connections.get("refused", 0) == (3 if meant else 0)
    await world.check()


@pytest.mark.parametrize(
    ("status", "asked", "waited"), [(429, 600, 600), (503, 600, 600), (503, 10**9, 3600)]
)
@in_world(rate=0.1)
async def test_the_pause_that_a_refusal_asks_for_is_given(
    world: World, status: int, asked: int, waited: float
) -> None:
    world.start()
    await world.until(State.LIVE)
    world.inflict(Refuse(count=1, status=status, retry_after=asked))
    world.inflict(Drop())
    last = await world.until(State.WAITING_FOR_LIMIT)
    refused = world.provider.attempts[-1].at
    assert last.reason == f"the provider asked for a pause of {format_duration(waited)} (Retry-After)"
    assert last.until == pytest.approx(refused + waited, abs=1)
    await world.until(State.LIVE)
    assert refused + waited - 0.1 <= world.provider.attempts[-1].at <= refused + waited + 5
    assert len(world.provider.attempts) == 3
    await world.check()


@pytest.mark.parametrize("ends", ["killed", "stopped"])
@in_world(rate=0.1)
async def test_a_bridge_that_is_restarted_gives_that_pause_all_the_same(world: World, ends: str) -> None:
    world.start()
    await world.until(State.LIVE)
    world.inflict(Refuse(count=1, retry_after=600))
    world.inflict(Drop())
    await world.until(State.WAITING_FOR_LIMIT)
    refused = world.provider.attempts[-1].at
    await (world.kill() if ends == "killed" else world.stop())
    world.start()
    await world.until(State.LIVE)
    assert refused + 600 - 0.1 <= world.provider.attempts[-1].at <= refused + 605
    await world.check()
