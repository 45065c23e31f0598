"""`bridge checkpoint set` and `reset` on a real Kafka: back, forward, refused, and only shown."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.repair.ownership import owning
from bridge_sandbox.provider.server import Simulator
from tests.harness import Bridge, Place, assert_exact, simulate, until
from tests.integration.publishing import settings_of

HISTORY = 120
"""Seconds of the feed before the simulator starts."""
KEPT = ("connections", "counters", "newestSettlement", "skewSeconds")
"""What a move leaves as it is."""


def feed(**settings: Any) -> Simulator:
    # Without resettlements: an earlier version that was never received is not published after a later one.
    return simulate(rate=10, history_seconds=HISTORY, resettle=0, **settings)


async def moved(place: Place, *arguments: str, **settings: str) -> dict[str, Any]:
    """The output of a command that changes the position, or would."""
    ran = await place.ran("checkpoint", *arguments, "--json", **settings)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def assert_audited(place: Place) -> None:
    """Assert that the topics show no violation."""
    ran = place.run("audit")
    assert ran.returncode == 0, ran.stdout + ran.stderr


async def test_what_is_received_again_is_not_doubled(place: Place) -> None:
    async with feed() as provider:
        bridge = await place.live(provider, FEED__START="60s")
        assert await bridge.end() == 0
        before = place.checkpoint()
        ago = int(time.time()) - HISTORY - 60
        found = await moved(place, "set", "--revision", str(ago), "--yes", "--reason", "resent")
        assert (found["from"], found["to"], found["changed"]) == (before["revision"], ago, True)
        assert (found["gap"], found["recovery"]) == (None, "small")
        assert found["restoredRecords"] >= before["counters"]["published"]
        after = place.checkpoint()
        assert [after[name] for name in KEPT] == [before[name] for name in KEPT]
        assert (after["revision"], after["state"]) == (ago, "Stopped")
        assert (after["moved"]["from"], after["moved"]["to"]) == (before["revision"], ago)
        assert after["moved"]["reason"] == "resent"

        bridge = await place.live(provider)
        assert_exact(await place.settled(provider, bridge))
        assert await bridge.end() == 0
        assert provider.breaches == []
        last, asked = place.checkpoint(), time.time()
        found = await moved(place, "reset", "--yes", FEED__START="10m")
        assert 0 <= found["to"] - int(asked - 600) < 60
        assert place.checkpoint()["revision"] == found["to"]
        assert [place.checkpoint()[name] for name in KEPT] == [last[name] for name in KEPT]
    assert last["moved"] == after["moved"]
    assert last["counters"]["duplicates"] > before["counters"]["duplicates"]
    assert place.read("gaps") == []
    assert "moved the position from" in place.run("checkpoint", "show").stdout
    assert_audited(place)


async def test_what_is_skipped_is_a_declared_gap(place: Place) -> None:
    async with feed() as provider:
        bridge = await place.live(provider)
        assert await bridge.end() == 0
        before = place.checkpoint()
        end = before["revision"] + 20
        await until(lambda: time.time() > end, "the time to skip to")
        text = datetime.fromtimestamp(end, UTC).isoformat()
        found = await moved(place, "set", "--revision", text, "--yes")
        [gap] = json.loads(place.run("gaps", "--json").stdout)
        assert [gap[name] for name in ("from", "to")] == [found["gap"][name] for name in ("from", "to")]
        assert (gap["cause"], gap["seconds"]) == ("MovedByOperator", 20)
        assert datetime.fromisoformat(gap["from"]).timestamp() == before["revision"]
        assert place.checkpoint()["revision"] == end
        assert_audited(place)
        bridge = await place.live(provider)
        assert await bridge.end() == 0
        assert provider.connections[-1].revision == end
    assert len(place.read("gaps")) == 1
    assert_audited(place)


async def test_a_feed_that_somebody_owns_is_left_alone(place: Place) -> None:
    async with feed() as provider:
        bridge = await place.live(provider)
        owner = place.checkpoint()["owner"]
        ran = await place.ran("checkpoint", "set", "--revision", "30s", "--yes")
        assert ran.returncode == 1
        assert f"the feed settlement-v4 is not free: {owner} from " in ran.stderr
        assert " owns it. Stop every `bridge run`" in ran.stderr
        ran = await place.ran("checkpoint", "set", "--revision", "30s")
        assert (ran.returncode, ran.stdout, "--yes" in ran.stderr) == (1, "", False)
        shown = await moved(place, "set", "--revision", "30s", "--dry-run")
        assert (shown["members"], shown["changed"]) == ([owner], False)
        assert place.checkpoint()["moved"] is None
        assert bridge.states()[-1] == "Live"
        assert await bridge.end() == 0
        assert len(provider.connections) == 1
    written = [len(place.read(topic)) for topic in ("checkpoints", "gaps", "bets")]
    for arguments in (("set", "--revision", "30s"), ("reset",)):
        shown = await moved(place, *arguments, "--dry-run")
        assert shown["members"] == []
        text = place.run("checkpoint", *arguments, "--dry-run").stdout
        assert text.startswith("feed        settlement-v4\nposition    ")
        assert text.endswith("nothing is changed\n")
    for revision, reason, settings in (
        (str(int(time.time()) + 60), "is in the future", {}),
        ("3d", "is too old: the provider can replay only from ", {}),
        ("0", "1970-01-01T00:00:00Z is too old", {}),
        ("8d", "compaction removes earlier versions", {"LIMITS__MAX_AGE_SECONDS": str(9 * 86_400)}),
    ):
        ran = place.run("checkpoint", "set", "--revision", revision, "--yes", **settings)
        assert (ran.returncode, reason in ran.stderr) == (2, True), ran.stderr
    assert [len(place.read(topic)) for topic in ("checkpoints", "gaps", "bets")] == written


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
async def test_a_bridge_that_starts_meanwhile_waits(place: Place) -> None:
    async with feed() as provider:
        bridge = await place.live(provider)
        assert await bridge.end() == 0

        async def started() -> Bridge:
            waiting = place.bridge(FEED__BASE_URL=provider.url)
            await until(
                lambda: " owns the feed" in waiting.text() or "waits for" in waiting.text(), "a standby"
            )
            return waiting

        loop = asyncio.get_running_loop()

        def own() -> Bridge:
            with owning(settings_of(place)) as owned:
                assert owned.checkpoint is not None
                assert not owned.lost()
                return asyncio.run_coroutine_threadsafe(started(), loop).result()

        bridge = await asyncio.to_thread(own)
        await bridge.reaches("Live")
        assert await bridge.end() == 0


async def test_a_machine_whose_clock_is_wrong_commits_nothing(place: Place) -> None:
    async with feed() as provider:
        bridge = await place.live(provider)
        assert await bridge.end() == 0
    before = place.checkpoint() | {"lastCommitAgeSeconds": None}
    async with feed(clock_skew_seconds=-600) as provider:
        url = provider.url
        for command in ("checkpoint set --revision 5m --yes", "deadletters redrive"):
            ran = await place.ran(*command.split(), FEED__BASE_URL=url)
            assert (ran.returncode, "behind ours, and feed.max_clock_skew" in ran.stderr) == (9, True)
    assert place.checkpoint() | {"lastCommitAgeSeconds": None} == before
    ran = place.run("deadletters", "redrive", FEED__BASE_URL=url)
    assert (ran.returncode, "relying on this machine's clock" in ran.stderr) == (0, True)


def test_what_cannot_be_moved_says_why(place: Place) -> None:
    missing = place.run("checkpoint", "set", "--revision", "1h", "--yes")
    assert missing.returncode == 6
    assert "Run `bridge topics apply`" in missing.stderr
    assert place.run("topics", "apply").returncode == 0
    for arguments, code, reason in (
        (("set", "--revision", "1h", "--yes"), 1, "there is no checkpoint of the feed settlement-v4"),
        (("set", "--revision", "1h"), 2, "give --yes, or --dry-run"),
    ):
        ran = place.run("checkpoint", *arguments)
        assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
        assert reason in ran.stderr
    assert place.read("checkpoints") == []
