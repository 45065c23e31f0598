"""Bridges are killed (SIGKILL) and ended (SIGTERM) again and again, on three real brokers.

Half of the rounds have two bridges, of which one stands by, half have one that is started again at once. Some
are killed at a random moment, others at a chosen step of the code. In half of the rounds a reconnection asks
for the margins of the product, which brings back everything of 90 s; in the others for a few seconds, so that
more deaths fall into live operation. Time in the limits runs faster at both ends, so that they allow for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from benchmarks import report
from bridge_sandbox import cluster as dev
from tests.chaos.owners import Members, judged
from tests.chaos.provider import Provider
from tests.chaos.rounds import ROOT, Rounds
from tests.harness import END_SECONDS, IN_VAIN, PATIENCE, Bridge, Place, until

ROUNDS = int(os.environ.get("ROUNDS", "20"))
FULL, FULL_MESSAGES = 500, 1_000_000
KILLS = int(os.environ.get("KILLS", FULL))
TERMS = int(os.environ.get("TERMS", "100"))
MESSAGES = int(os.environ.get("MESSAGES", FULL_MESSAGES))
"""These three of all rounds together, at least."""
SEED = int(os.environ.get("SEED", "1"))
RATE = 300
TAKEOVER_SECONDS = 4.0
"""Until there is an owner again, about."""
LEAST_SECONDS = 1.5
"""Of the owner's life before a death at a random moment, on average, however many are left."""
ARMED = 0.5
"""The share of processes that die at a chosen step, if they come to it."""
STEP_SECONDS = 10.0
"""For so long an owner is left to come to its step before it may be hit at a random moment."""
OWNER = 0.75
"""The share of deaths at random moments that hit the owner, if there is one; the others hit any bridge."""
MARGINS: dict[str, dict[str, str]] = {
    "default": {},
    "short": {"FEED__SAFETY_MARGIN_SECONDS": "5", "FEED__MAX_OUT_OF_ORDERNESS_SECONDS": "4"},
}
REPLAYED_SECONDS = {"default": 90.0, "short": 9.0}
SCALES = {"default": 100, "short": 30}
"""How many times faster the limits run. With short margins the bucket decides, which shrinks with it."""

STEPS = {
    "joined": ("bridge.ownership.election:LeaderElection.__init__", "after", 1),
    "before fencing": ("bridge.kafka.blocking:CallTimeout.call", "before", 1),
    "fenced": ("bridge.kafka.blocking:CallTimeout.call", "after", 1),
    "checkpoint read": ("bridge.stored.checkpoint_reader:CheckpointReader.refuse_other_feeds", "after", 1),
    "bets read": ("bridge.stored.restore:PublishedReader.deduplicator", "after", 1),
    "attempt not committed": ("bridge.kafka.blocking:CallTimeout.call", "before", 3),
    "attempt committed": ("bridge.kafka.blocking:CallTimeout.call", "after", 3),
    "connected": ("bridge.service.connector:Connector._accepted", "before", 1),
    "half a transaction": ("bridge.kafka.transactions:TransactionalWriter._produce", "after", 0),
    "transaction complete": ("bridge.kafka.transactions:TransactionalWriter._deliver_all", "after", 0),
    "before a commit": ("bridge.kafka.blocking:CallTimeout.call", "before", 0),
    "committed, not known": ("bridge.kafka.blocking:CallTimeout.call", "after", 0),
    "between transactions": ("bridge.ownership.batch_writer:BatchWriter.commit", "after", 0),
}
"""Where a process dies, as `tests.killed` takes it. With the number 0 one is drawn for each process."""
UNCONNECTED = (
    "joined",
    "before fencing",
    "fenced",
    "checkpoint read",
    "bets read",
    "attempt not committed",
    "attempt committed",
    "at random: starting",
    "at random: Standby",
    "at random: WaitingForLimit",
)
"""Where a process dies that has made no attempt to connect."""
SPARE_ATTEMPTS = 2
"""Of a round, above one by each process: one may have lost its session on a busy machine and won it again."""
CALLS = range(4, 30)
"""From those numbers: behind the attempt, and within the transactions that a life has, about 30."""
PAGE = ROOT / "benchmarks" / "campaigns.md"


class Armed(NamedTuple):
    """What a process dies of by itself."""

    step: str
    when: str


class Round:
    """One round: a feed of its own, and the bridges that die."""

    def __init__(self, place: Place, number: int, kills: int, terms: int, messages: int) -> None:
        self._place, self._kills, self._terms, self._messages = place, kills, terms, messages
        self._random = Random(f"{SEED} {number}")
        self._members = Members(place)
        self.margins = "short" if number % 2 else "default"
        self.scale = SCALES[self.margins]
        self._settings = {"LIMITS__SCALE": str(self.scale), **MARGINS[self.margins]}
        self.bridges: list[Bridge] = []
        """Those that are to run: two or one."""
        self.count = 2 - number // 2 % 2
        self._armed: dict[Bridge, Armed] = {}
        self.done: Counter[str] = Counter()
        """SIGKILLs and SIGTERMs."""
        self.steps: Counter[str] = Counter()
        """Where they came."""

    async def play(self, provider: Provider) -> None:
        """Kill and end bridges until there were enough deaths and messages."""
        self._settings["FEED__BASE_URL"] = provider.url
        for _ in range(self.count):
            self._start(armed=False)
        await until(self._is_live, "live", so_far=self._texts)
        while True:
            published = (await provider.get("/state"))["published"]
            left = max(0, self._kills - self.done["SIGKILL"]) + max(0, self._terms - self.done["SIGTERM"])
            if left == 0 and published >= self._messages:
                return await self._disarm()
            if left == 0:
                await self._watch(1.0)
                continue
            share = (self._messages - published) / RATE / left - TAKEOVER_SECONDS
            at_owner = self._random.random() < OWNER
            if at_owner and await self._dies(await self._owner()):
                continue
            await self._watch(self._random.uniform(0, 2 * max(LEAST_SECONDS, share)))
            await self._strike(await self._owner() if at_owner else self._random.choice(self.bridges))

    async def _owner(self) -> Bridge:
        """Wait until a bridge owns the feed. Fails if none does for long."""
        deadline = time.monotonic() + PATIENCE
        while (owner := await self._members.owner()) is None or owner not in self.bridges:
            assert time.monotonic() < deadline, f"{IN_VAIN}{PATIENCE:g} s: an owner\n{self._texts()}"
            await self._watch(0.2)
        return owner

    async def _dies(self, owner: Bridge) -> bool:
        """Let an owner that is to die at a step come to it; return whether it has."""
        deadline = time.monotonic() + STEP_SECONDS
        while owner in self._armed and time.monotonic() < deadline:
            await self._watch(0.2)
        return owner not in self.bridges

    async def _disarm(self) -> None:
        """End those that would die at a chosen step, so that none does while the others are judged."""
        while armed := [bridge for bridge in self.bridges if bridge in self._armed]:
            await self._strike(armed[0])
            await self._watch(0.2)

    async def _strike(self, struck: Bridge) -> None:
        """Kill or end a bridge at this very moment, whatever it does, and start another at once."""
        kills, terms = self._kills - self.done["SIGKILL"], self._terms - self.done["SIGTERM"]
        is_kill = self._random.random() * (max(0, kills) + max(0, terms)) < kills
        if struck.process.poll() is not None:
            return  # it has died by itself
        states = struck.states()
        struck.signal(signal.SIGKILL if is_kill else signal.SIGTERM)
        code = await struck.wait(END_SECONDS)
        # One that is told to end before it listens to signals dies of it; one that is armed may be quicker.
        expected = {-signal.SIGKILL} if is_kill else {0}
        if not is_kill and struck.dies_of_sigterm():
            expected.add(-signal.SIGTERM)
        if code not in expected:
            self._died(struck)
            return
        self._count("SIGKILL" if is_kill else "SIGTERM", f"at random: {states[-1] if states else 'starting'}")
        self._replace(struck)

    async def _watch(self, seconds: float) -> None:
        """Let time pass, and start another bridge in the place of each that has died by itself."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for bridge in list(self.bridges):
                if bridge.process.poll() is not None:
                    self._died(bridge)
            await asyncio.sleep(min(left, 0.1))

    def _died(self, bridge: Bridge) -> None:
        """Count a death at a chosen step. Fails if the process ended for another reason."""
        armed, code = self._armed.get(bridge), bridge.process.poll()
        assert armed is not None, f"a bridge has ended with {code}:\n{bridge.text()[-2000:]}"
        assert code == (0 if armed.when == "stop" else -signal.SIGKILL), (
            f"{armed} {code}\n{bridge.text()[-2000:]}"
        )
        self._count("SIGTERM" if armed.when == "stop" else "SIGKILL", armed.step)
        self._replace(bridge)

    def _count(self, death: str, step: str) -> None:
        self.done[death] += 1
        self.steps[step] += 1

    def _replace(self, bridge: Bridge) -> None:
        self.bridges.remove(bridge)
        self._armed.pop(bridge, None)
        self._start(armed=self._random.random() < ARMED and self.done["SIGKILL"] < self._kills)

    def _start(self, *, armed: bool) -> None:
        if not armed:
            self.bridges.append(self._place.bridge(**self._settings))
            return
        step = self._random.choice(rarest(self.steps))
        function, when, number = STEPS[step]
        # Some are told to end there instead, which a step within the start would delay for long.
        if not number and self._terms > self.done["SIGTERM"] and self._random.random() < 0.2:
            when = "stop"
        command = "tests.killed", function, when, str(number or self._random.choice(CALLS)), "run"
        self.bridges.append(self._place._start(command, self._settings))
        self._armed[self.bridges[-1]] = Armed(step, when)

    def _is_live(self) -> bool:
        for bridge in self.bridges:
            assert bridge.process.poll() is None, bridge.text()
        return any("Live" in bridge.states() for bridge in self.bridges)

    def _texts(self) -> str:
        return "\n".join(bridge.text()[-2000:] for bridge in self.bridges)


def rarest(reached: Mapping[str, int]) -> list[str]:
    """Return the steps that were reached least often."""
    least = min(reached.get(step, 0) for step in STEPS)
    return [step for step in STEPS if reached.get(step, 0) == least]


def missed(reached: Mapping[str, int], kills: int) -> dict[str, int]:
    """Return the steps that were not reached often enough by a campaign of so many kills."""
    return {step: reached.get(step, 0) for step in STEPS if reached.get(step, 0) < kills // 50}


def needless(result: Mapping[str, Any]) -> int:
    """Return how many attempts to connect a round had above those of processes that came to it."""
    unconnected = sum(result["steps"].get(it, 0) for it in UNCONNECTED)
    caused: int = result["bridges"] + result["kills"] + result["terms"] - unconnected + SPARE_ATTEMPTS
    return max(0, int(result["figures"]["attempts"]) - caused)


async def play(
    cluster: dev.Cluster, directory: Path, number: int, kills: int, terms: int, messages: int
) -> Any:
    """Play a round and have it judged. Returns its result."""
    began = time.monotonic()
    place = Place(cluster, f"kills-{number}", directory)
    try:
        played = Round(place, number, kills, terms, messages)
        settings = {"seed": SEED + number, "rate": RATE, "limits_scale": played.scale, "ping_seconds": 1}
        provider = await Provider.start(place, **settings, resettle=0.1, revised=0.3, odd=0.01)
        await played.play(provider)
        report = await judged(
            place, provider, scale=played.scale, seed=SEED + number, margin=REPLAYED_SECONDS[played.margins]
        )
    finally:
        for bridge in place.bridges:
            bridge.kill()
    return {
        "round": number,
        "bridges": played.count,
        "margins": played.margins,
        "kills": played.done["SIGKILL"],
        "terms": played.done["SIGTERM"],
        "steps": dict(played.steps),
        **report.json(),
        "took_seconds": round(time.monotonic() - began),
    }


def part(whole: int, number: int) -> int:
    """Return how much of the whole falls to a round."""
    return whole * (number + 1) // ROUNDS - whole * number // ROUNDS


def write(total: Mapping[str, Any], machine: str) -> None:
    """Write into the page where how many died."""
    figures = total["figures"]
    rows = [[where, f"{times:,}"] for where, times in Counter(total["steps"]).most_common()]
    content = (
        f"{report.table(['where it died', 'times'], rows)}\n"
        f"{total['kills']} SIGKILLs and {total['terms']} SIGTERMs in {ROUNDS} rounds.\n"
        f"Of {figures['published']:,} messages {figures['bets']:,} bets and {figures['dead letters']:,} dead "
        f"letters are in their topics, each once.\n{machine}\n"
    )
    report.put(PAGE, "kills", content)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
async def test_kills(tmp_path: Path) -> None:
    extent = {"rounds": ROUNDS, "kills": KILLS, "terms": TERMS, "messages": MESSAGES, "seed": SEED}
    rounds = Rounds("kills", extent)
    results = []
    with ExitStack() as stack:
        cluster = None
        for number in range(ROUNDS):
            name = f"round-{number:02}"
            result = rounds.result(name)
            if result is None:
                cluster = cluster or stack.enter_context(
                    dev.start(tmp_path / "brokers", kafka_port=0, registry_port=0, brokers=3)
                )
                counts = part(KILLS, number), part(TERMS, number), part(MESSAGES, number)
                result = await play(cluster, rounds.begin(name), number, *counts)
                rounds.finish(name, result)
                print(json.dumps(result), flush=True)
            results.append(result)
    sums = sum((Counter(result["steps"]) for result in results), Counter[str]())
    figures = sum((Counter(result["figures"]) for result in results), Counter[str]())
    unclean = [result for result in results if not result["clean"]]
    total = {
        "campaign": "kills",
        **extent,
        **{name: sum(result[name] for result in results) for name in ("kills", "terms", "took_seconds")},
        "steps": dict(sums),
        "figures": dict(figures),
        "clean": not unclean,
        "anomalies": {result["round"]: result["anomalies"] for result in unclean},
    }
    print(json.dumps(total), flush=True)
    assert total["clean"], total["anomalies"]
    assert {result["round"]: count for result in results if (count := needless(result))} == {}
    assert (total["kills"] >= KILLS, total["terms"] >= TERMS) == (True, True)
    assert figures["published"] >= MESSAGES
    if KILLS >= FULL:
        assert missed(sums, KILLS) == {}
    if KILLS >= FULL and MESSAGES >= FULL_MESSAGES:
        write(total, results[-1]["machine"])
