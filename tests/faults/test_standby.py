"""The member that a standby waits for, also after SIGKILL: dead members stay in the owner group."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.harness import Bridge, Place, simulate, until
from tests.soak.bridges import taken


def owner_id(bridge: Bridge) -> str:
    """The owner id of this process in its checkpoints."""
    return str(next(line["owner"] for line in bridge.lines() if line["event"] == "starting"))


def standby_reasons(bridge: Bridge) -> list[str]:
    """The reasons for which the bridge has stood by."""
    return [line["reason"] for line in bridge.lines() if line.get("state") == "Standby" and "reason" in line]


@pytest.mark.long
async def test_a_standby_reports_the_member_it_waits_for(cold: Place) -> None:
    settings = {"KAFKA__SESSION_TIMEOUT_MS": "40000"}  # time for two commands while it lasts
    async with simulate() as feed:
        first = await cold.live(feed, **settings)
        dead = owner_id(first)
        first.kill()
        second = cold.bridge(FEED__BASE_URL=feed.url, **settings)
        await until(lambda: bool(standby_reasons(second)), "whom it waits for", so_far=second.text)
        text, data = await asyncio.gather(
            cold.ran("checkpoint", "show", **settings),
            cold.ran("checkpoint", "show", "--json", **settings),
        )
        [line] = [line for line in second.lines() if "reason" in line]
        assert line["reason"] == f"waits for {dead}; if it is dead, its place is free by {line['until']}"
        assert f"{dead} from 127.0.0.1" in text.stdout
        assert "if it is dead, its place is free by 2" in text.stdout
        found = json.loads(data.stdout)
        assert (found["owner"], found["awaited"]) == (dead, [dead])
        assert found["freeBy"] > found["updatedAt"]
        assert found["lastCommitAgeSeconds"] > 0
        await second.reaches("Live")
        assert cold.checkpoint()["awaited"] == [owner_id(second)]
        assert await second.end() == 0
    await until(lambda: cold.checkpoint()["awaited"] == [], "nobody is left")


TERMS = 4
"""Of two bridges in turn."""
GROWTH_MB = 8.0
"""By more than one term: what a term keeps is 30 MB and more."""


def held(bridge: Bridge) -> tuple[float, float]:
    """The threads and descriptors of a process."""
    found = taken(Path("/proc", str(bridge.process.pid)))
    return found["threads"], found["descriptors"]


def resident(bridge: Bridge) -> float:
    """The resident memory of a process, MB."""
    return taken(Path("/proc", str(bridge.process.pid)))["rss_mb"]


@pytest.mark.long
async def test_a_term_that_was_lost_leaves_nothing_behind(cold: Place) -> None:
    """A former owner has no more threads and descriptors than a bridge that has only stood by.

    At that rate a transaction is open when it is stopped.
    """
    settings = {"LIMITS__SCALE": "100"}
    async with simulate(second="replace", limits_scale=100, rate=1000) as feed:
        owner = await cold.live(feed, **settings)
        other = cold.bridge(FEED__BASE_URL=feed.url, **settings)
        await until(lambda: bool(standby_reasons(other)), "whom it waits for", so_far=other.text)
        await asyncio.sleep(3.0)  # it looks around once more
        of_standby = held(other)
        memory: list[float] = []
        for _ in range(TERMS):
            owner.signal(signal.SIGSTOP)
            await until(lambda: other.states()[-1] == "Live", "taking over", so_far=other.text)  # noqa: B023
            owner.signal(signal.SIGCONT)
            await until(lambda: owner.states()[-1] == "Standby", "standing by", so_far=owner.text)  # noqa: B023
            former, owner, other = owner, other, owner
            await until(
                lambda: held(former) == of_standby,  # noqa: B023
                f"{of_standby} threads and descriptors",
                seconds=30,
                so_far=lambda: str(held(former)),  # noqa: B023
            )
            await asyncio.sleep(3.0)  # it looks around once more
            memory.append(resident(former))
        assert max(memory[2:]) < max(memory[:2]) + GROWTH_MB, memory
        for bridge in (owner, other):
            assert await bridge.end() == 0
