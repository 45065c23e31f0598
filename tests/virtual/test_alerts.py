"""Each alert of a bridge fires when its cause has happened, and clears when that has ended.

The metrics are those of a bridge in virtual time; Prometheus' own tool evaluates the rules. At each moment
that is named, all alerts are compared: none fires that is not expected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import GaugeMetricFamily

from bridge.kafka.open_transactions import OpenTransaction
from bridge.observability.metrics import collect
from bridge.observability.status import StatusSnapshot
from bridge.records.checkpoint import State
from bridge_sandbox.provider.faults import Drop, Garbage, Refuse
from tests.alerts import INTERVAL, Scrapes, run
from tests.snapshots import snapshot
from tests.virtual.world import EPOCH, HOUR, World, play

FEED = {"feed": "f"}
MINUTE = 60.0


class Prometheus:
    """Scrapes the process of a world, and one that stands by."""

    def __init__(self, world: World) -> None:
        self.scrapes = Scrapes(EPOCH)
        self.owner = "a"
        """The pod of the process of the world."""
        self.standby = True
        """Whether there is a process that stands by."""
        self.stuck = False
        """Whether the event loop of the process has stopped, so that its snapshot stays as it is."""
        self.open = tuple[OpenTransaction, ...]()
        """Transactions that hide records."""
        self._world = world
        self._snapshot = self._take(owner=True)
        self._task = asyncio.get_running_loop().create_task(self._scrape())

    def expect(self, **alerts: dict[str, str]) -> None:
        """Expect that these alerts fire now with these labels, and no others."""
        self._task.done() and self._task.result()
        self.scrapes.expect(**alerts)

    async def fires(self, after: float, ends: float, **alerts: dict[str, str]) -> None:
        """Expect these alerts so many seconds from now, and none when others have passed."""
        await asyncio.sleep(after)
        self.expect(**alerts)
        await asyncio.sleep(ends)
        self.expect()

    async def _scrape(self) -> None:
        while True:
            self._scrape_one(self.owner, up=self._world.runs, owner=True)
            if self.standby:
                self._scrape_one("b", up=True, owner=False)
            await asyncio.sleep(INTERVAL)

    def _scrape_one(self, pod: str, *, up: bool, owner: bool) -> None:
        seconds = asyncio.get_running_loop().time()
        labels = {"job": "monitoring/settlement-bridge", "instance": pod}
        self.scrapes.take(seconds, labels, [GaugeMetricFamily("up", "", up)])
        if up:
            snapshot = self._take(owner=owner) if not (owner and self.stuck) else self._snapshot
            if owner:
                self._snapshot = snapshot
            self.scrapes.take(seconds, {**FEED, "pod": pod}, collect(snapshot, self._world.clock().wall))

    def _take(self, *, owner: bool) -> StatusSnapshot:
        world, now = self._world, self._world.clock().wall
        known: dict[str, Any] = {"state": State.STANDBY, "since": EPOCH}
        if world.kafka.session_is_over:  # nobody owns, until Kafka is back
            known["state"] = State.WAITING_FOR_KAFKA
        elif owner:
            status = world.status
            known = {"state": status.state, "since": status.since, "until": status.until}
            known |= {"owner": True, **world.owner.seen()._asdict()} if world.owner else {}
        return snapshot(
            at=now,
            started_at=EPOCH,
            feed="f",
            idle_timeout_seconds=60,
            owner_id="me",
            transactions_looked_at=now,
            open_transactions=self.open,
            **known,
        )


def observed(**settings: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turn a story of a world and its Prometheus into a test. It begins with a live bridge and no alert."""

    def test_of(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def whole(world: World, **arguments: Any) -> Scrapes:
            prometheus = Prometheus(world)
            world.start()
            await world.until(State.LIVE)
            await asyncio.sleep(5 * MINUTE)
            prometheus.expect()
            await story(world, prometheus, **arguments)
            return prometheus.scrapes

        def test(tmp_path: Path, **arguments: Any) -> None:
            run(tmp_path, "--version")  # is there a tool at all?
            play(partial(whole, **arguments), **settings).judge(tmp_path)

        test.__doc__ = story.__doc__
        return test

    return test_of


@observed()
async def test_dead_letters(world: World, prometheus: Prometheus) -> None:
    world.inflict(Garbage(count=3))
    await prometheus.fires(MINUTE, 16 * MINUTE, SettlementDeadLetters=FEED)


@observed(rate=1 / MINUTE, feed={"unconverted_messages": 1, "unconverted_seconds": 0})
async def test_nothing_that_can_be_converted(world: World, prometheus: Prometheus) -> None:
    world.inflict(Garbage())
    await asyncio.sleep(2 * MINUTE)
    prometheus.expect(SettlementNothingConverted=FEED, SettlementDeadLetters=FEED)
    await prometheus.fires(6 * MINUTE, 9 * MINUTE, SettlementDeadLetters=FEED)


@observed()
async def test_dead_letters_before_the_first_scrape_of_an_owner(world: World, prometheus: Prometheus) -> None:
    world.inflict(Garbage(count=3))
    await asyncio.sleep(17 * MINUTE)
    prometheus.expect()
    await world.kill()
    prometheus.owner = "c"
    world.inflict(Garbage(count=3))
    world.start()
    await prometheus.fires(2 * MINUTE, 16 * MINUTE, SettlementDeadLetters=FEED)


@observed()
async def test_a_refusal_before_the_first_scrape_of_an_owner(world: World, prometheus: Prometheus) -> None:
    await world.kill()
    prometheus.owner = "c"
    world.inflict(Refuse(count=1, status=429))
    world.start()
    await prometheus.fires(3 * MINUTE, 31 * MINUTE, SettlementRefused=FEED)


@observed()
async def test_a_refusal(world: World, prometheus: Prometheus) -> None:
    world.inflict(Refuse(count=1, status=429))
    world.inflict(Drop())
    await prometheus.fires(3 * MINUTE, 31 * MINUTE, SettlementRefused=FEED)


@observed()
async def test_a_limit_that_is_nearly_spent(world: World, prometheus: Prometheus) -> None:
    for _ in range(4):
        world.inflict(Drop())
        await asyncio.sleep(20)
    await prometheus.fires(90, 6 * MINUTE, SettlementLimitNearlySpent={**FEED, "limit": "proper"})


@pytest.mark.long
@observed(scale=100)
async def test_a_gap(world: World, prometheus: Prometheus) -> None:
    await world.kill()
    prometheus.standby = False
    await asyncio.sleep(HOUR)
    down = {"job": "monitoring/settlement-bridge", "instance": "a"}
    prometheus.expect(SettlementNobodyOwns=FEED, SettlementTargetDown=down)
    world.start()
    prometheus.standby = True
    await prometheus.fires(6 * MINUTE, HOUR, SettlementGap=FEED)


@pytest.mark.long
@observed()
async def test_a_provider_out_of_reach(world: World, prometheus: Prometheus) -> None:
    """Half an hour is worth a look, six hours are urgent: in three days, messages are lost.

    No attempt spends anything of a limit.
    """
    world.unreachable(7 * HOUR)
    await asyncio.sleep(45 * MINUTE)
    prometheus.expect(SettlementNotLive=FEED)
    await asyncio.sleep(5.5 * HOUR)
    prometheus.expect(SettlementNotLive=FEED, SettlementRevisionOld=FEED)
    await asyncio.sleep(HOUR)
    prometheus.expect()


@observed()
async def test_kafka_out_of_reach(world: World, prometheus: Prometheus) -> None:
    world.kafka.away(20 * MINUTE)
    await prometheus.fires(8 * MINUTE, 15 * MINUTE, SettlementNobodyOwns=FEED, SettlementWaitingForKafka=FEED)


@pytest.mark.long
@observed()
async def test_kafka_out_of_reach_for_hours(world: World, prometheus: Prometheus) -> None:
    world.kafka.away(7 * HOUR)
    await asyncio.sleep(6.5 * HOUR)
    prometheus.expect(
        SettlementNobodyOwns=FEED,
        SettlementWaitingForKafka=FEED,
        SettlementNotLive=FEED,
        SettlementRevisionOld=FEED,
    )
    await asyncio.sleep(HOUR)
    prometheus.expect()


@observed()
async def test_an_event_loop_that_has_stopped(world: World, prometheus: Prometheus) -> None:
    prometheus.stuck = True
    hanging = {**FEED, "pod": "a"}
    await asyncio.sleep(4 * MINUTE)
    prometheus.expect(SettlementEventLoopSilent=hanging)
    await asyncio.sleep(4 * MINUTE)
    prometheus.expect(SettlementCommitStalled=FEED, SettlementEventLoopSilent=hanging)
    prometheus.stuck = False
    await asyncio.sleep(MINUTE)
    prometheus.expect()


@observed()
async def test_nobody_stands_by(world: World, prometheus: Prometheus) -> None:
    prometheus.standby = False
    await asyncio.sleep(15 * MINUTE)
    prometheus.expect()
    await asyncio.sleep(10 * MINUTE)
    prometheus.expect(SettlementNoStandby=FEED)
    prometheus.standby = True
    await asyncio.sleep(11 * MINUTE)
    prometheus.expect()


@observed()
async def test_a_process_that_has_died(world: World, prometheus: Prometheus) -> None:
    await world.kill()
    await asyncio.sleep(7 * MINUTE)
    down = {"job": "monitoring/settlement-bridge", "instance": "a"}
    prometheus.expect(SettlementNobodyOwns=FEED, SettlementTargetDown=down)
    world.start()
    await asyncio.sleep(7 * MINUTE)
    prometheus.expect()
