"""One round of a storm: start everything, play the plan, let it pass, judge what is left."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from benchmarks.quota import CONFIGS_TOOL
from tests.chaos.owners import Members
from tests.chaos.provider import Provider
from tests.harness import Bridge, Place, until
from tests.judge import Case, Excuse, Report, judge, missing, read_gaps
from tests.processes import Piped
from tests.storm.cluster import PROVIDER, REGISTRY, Brokers, brokers
from tests.storm.operator import Hanging, end_hanging, go_on
from tests.storm.plan import Plan, Step
from tests.storm.processes import HeldBridge, HeldServer
from tests.storm.scene import History, Scene
from tests.transactions_tool import kafka_tool

LIMITS_SCALE = 60
"""How many times faster the limits run, at both ends: windows of 5 and 30 s, a bucket of a minute."""
STILL_SECONDS = 300.0
"""After so long without another bet, what is missing is taken for lost."""
HANGING_SECONDS = 90.0
"""After so long without another bet, a broker's log is asked whether Kafka has left a transaction open."""
START_SECONDS, MARGIN_SECONDS, CONNECT_SECONDS = 60, 5, 5
"""Settings of the bridges: `start`, out-of-orderness and safety margin each, connect time-out."""
POSITION_SECONDS = 2 * MARGIN_SECONDS + 20.0
"""How far behind the end the last position may be: margins, and the time until a bridge is live (10 s)."""
ASK_SECONDS = 1.0
LATE_SECONDS = 60.0
"""How long the bridges may take to catch up when all faults have ended; without an operator's help."""
JOINED_SECONDS = 30.0
"""How long until all of them are in the owner group then, one of them the owner."""
PROMPT = 0.1
"""The least share of the bets that must be committed within seconds: not all of them can wait for a fault."""
TRIES = 5
"""How many attempts an excuse may explain at most: one that is made, and those that are refused."""
SMALLEST_SEGMENT = 1024 * 1024
LARGEST_MESSAGE = 64 * 1024
"""Bytes; the bridge needs a segment of a topic of messages to be larger by `SMALLEST_SEGMENT`."""
PLAYED = 0.6
"""The least share of the planned faults that must hit something: what is down already cannot be hit again."""
DUE = 0.5
"""The least share of the bets of an undisturbed round that must be due: `forget` takes some away."""
PREFIX = "storm"
HEADER = "X-Bridge"
"""Has the credential by which the provider knows each bridge."""
SMALL = {
    "bets": {"segment.bytes": str(SMALLEST_SEGMENT + LARGEST_MESSAGE), "segment.ms": "5000"},
    "deadletters": {"segment.bytes": str(SMALLEST_SEGMENT + LARGEST_MESSAGE), "segment.ms": "5000"},
    "checkpoints": {
        "segment.bytes": str(SMALLEST_SEGMENT),
        "segment.ms": "5000",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "100",
    },
}
"""Settings of topics with the smallest segments. A cleaner that is never idle has work only in checkpoints:
bets stay for days (`topics.min_compaction_lag_days`), dead letters for ever."""


def shortfalls(result: Mapping[str, Any]) -> list[str]:
    """Return what makes a round too calm to prove anything."""
    planned, played = (sum(result[name].values()) for name in ("faults", "played"))
    figures = {"faults": played, **result["figures"]}
    # What was received again, or copied, is as late as that; and what the provider had forgotten is not due.
    is_anew = any(result["played"].get(name) for name in ("topic-anew", "lagging-mirror"))
    least = {
        "faults": PLAYED * planned,
        "bets": 0 if is_anew else DUE * result["rate"] * result["seconds"],
        "attempts": 2,
        "dead letters": 1,
        "prompt": 0 if is_anew else PROMPT * figures["bets"],
    }
    return [f"{figures[name]} {name}, fewer than {it:g}" for name, it in least.items() if figures[name] < it]


def run(plan: Plan, directory: Path) -> dict[str, Any]:
    """Run a round in an empty directory; returns its result.

    The directory then has `plan.json`, `history.jsonl`, a log of each process, and the data of the brokers
    unless the round was clean.
    """
    (directory / "plan.json").write_text(json.dumps(plan.json(), indent=1) + "\n")
    began = time.monotonic()
    with brokers(directory / "cluster", plan.bridges) as cluster:
        place = Place(cluster, PREFIX, directory, start=Piped)
        try:
            result = asyncio.run(_Round(plan, cluster, place).run())
        finally:
            for bridge in place.bridges:
                bridge.kill()
    result["took_seconds"] = round(time.monotonic() - began)
    if result["clean"]:
        shutil.rmtree(directory / "cluster")
    return result


def troubles(
    waited: float, aborted: Sequence[Hanging] | None, excuses: int, report: Report, scene: Scene
) -> list[str]:
    """Return what all bridges together have done that sound ones do not do.

    They took `waited` seconds to catch up; the operator has ended what is `aborted`, None unless called.
    """
    found = []
    # An owner writes the whole of its state into a new topic of checkpoints; and of gaps there may be none.
    harmless = {"checkpoints"} if scene.gaps else {"checkpoints", "gaps"}
    if (anew := scene.made_anew.keys() - harmless) and not scene.moved_to:
        found.append(f"all bridges: none has said that topics are others ({', '.join(sorted(anew))})")
    if waited > LATE_SECONDS and not aborted and not scene.moved_to:
        found.append(f"all bridges: they took {waited:.0f} s to catch up")
    if aborted == []:  # so what held back the rest was not Kafka, and a restart has mended it
        found.append("all bridges: the operator had to restart them, and no transaction hung")
    if (excused := report.figures["excused"]) > TRIES * excuses:
        found.append(f"all bridges: {excuses} excuses for {excused} attempts")
    return found


class _Round:
    def __init__(self, plan: Plan, cluster: Brokers, place: Place) -> None:
        self._plan, self._cluster, self._place = plan, cluster, place
        self._note = History(place.directory / "history.jsonl")
        self._excuses: list[Callable[[], list[Excuse]]] = []
        """Of each fault that has hit something; to be asked when the bridges have ended."""
        self._played: Counter[str] = Counter()
        """The faults that have hit something, and the owner if they were to."""
        self._aborted: list[Hanging] | None = None
        """What the operator has ended; None unless one was called."""
        self._absent: list[str] = []
        """What is wrong with the owner group in the end."""

    async def run(self) -> dict[str, Any]:
        plan, cluster = self._plan, self._cluster
        provider = await self._provider()
        cluster.open_provider(provider.url)
        scene = Scene(cluster.bootstrap_servers, PREFIX, provider, cluster.network, self._note)
        scene.start, scene.registry_url = f"{START_SECONDS}s", cluster.registry_url
        scene.configs_tool = kafka_tool(cluster, CONFIGS_TOOL)
        scene.read_gaps = partial(read_gaps, cluster.bootstrap_servers, cluster.registry_url, PREFIX)
        scene.began = time.time() - START_SECONDS
        for server in cluster.servers.values():
            scene.servers[server.name] = HeldServer(server, self._note)
        for name in cluster.bridges:
            scene.bridges[name] = HeldBridge(name, partial(self._bridge, name, scene), self._note)
        settings = self._settings(cluster.bridges[0], scene)
        watching = asyncio.create_task(_watch(scene, go_on(self._place, scene, settings)))
        try:
            await until(self._is_live, "a live bridge", so_far=self._logs)
            if plan.compacts:
                await asyncio.to_thread(self._compact)
            self._note("storm")
            async with asyncio.TaskGroup() as steps:
                steps.create_task(asyncio.sleep(plan.seconds))
                for number, step in enumerate(plan.steps):
                    steps.create_task(self._play(scene, number, step))
            await scene.control("clear")
            await provider.post("/stop")
            self._note("calm")
            case = Case(
                cluster.bootstrap_servers,
                cluster.registry_url,
                PREFIX,
                provider.control_url,
                plan.seed,
                limits_scale=LIMITS_SCALE,
                start_age=START_SECONDS,
                position_margin=POSITION_SECONDS,
                may_tear=True,
                max_message_bytes=LARGEST_MESSAGE,
                made_anew=tuple(scene.made_anew.items()),
                is_copied=scene.is_copied,
                known_gaps=tuple(scene.gaps),
                partitions=tuple(scene.partitions.items()),
            )
            waited, excused, report = await self._judged(case, scene)
            assert not watching.done(), watching.exception()
        finally:
            watching.cancel()
        unexpected = [what for bridge in scene.bridges.values() for what in bridge.unexpected]
        unexpected += self._absent + troubles(waited, self._aborted, len(excused), report, scene)
        self._note("end", clean=bool(report))
        return {
            "campaign": "storm",
            **{name: value for name, value in plan.json().items() if name != "steps"},
            "faults": dict(Counter(step.name for step in plan.steps)),
            "played": dict(self._played),
            "waited_seconds": round(waited),
            "excused": excused,
            "aborted": self._aborted or [],
            **report.json(),
            "ended_by_themselves": unexpected,
            "clean": bool(report) and not unexpected,
        }

    async def _provider(self) -> Provider:
        plan = self._plan
        return await Provider.start(
            self._place,
            clients={name: _credential(name) for name in self._cluster.bridges},
            seed=plan.seed,
            rate=plan.rate,
            limits_scale=LIMITS_SCALE,
            second=plan.second,
            ping_seconds=1,
            resettle=0.1,
            revised=0.3,
            odd=0.01,
            auth="header",
            auth_name=HEADER,
        )

    def _bridge(self, name: str, scene: Scene) -> Bridge:
        return self._place.bridge(**self._settings(name, scene))

    def _settings(self, name: str, scene: Scene) -> dict[str, str]:
        cluster = self._cluster
        return {
            "KAFKA__BOOTSTRAP_SERVERS": cluster.bootstrap_servers_of(name),
            "KAFKA__SESSION_TIMEOUT_MS": "6000",
            "KAFKA__HEARTBEAT_INTERVAL_MS": "1000",
            "KAFKA__TRANSACTION_TIMEOUT_MS": "10000",
            "REGISTRY__URL": cluster.url_of(name, REGISTRY, cluster.registry_url),
            "FEED__BASE_URL": cluster.url_of(name, PROVIDER, scene.provider.url),
            "FEED__AUTH": "header",
            "FEED__AUTH_NAME": HEADER,
            "FEED__AUTH_VALUE": _credential(name),
            "FEED__PROXY": "none",
            "FEED__START": scene.start,
            "FEED__ON_GAP": "continue",
            "FEED__IDLE_TIMEOUT_SECONDS": "6",
            "FEED__CONNECT_TIMEOUT_SECONDS": str(CONNECT_SECONDS),
            "FEED__LIVE_AFTER_PINGS_SECONDS": "10",
            "FEED__MAX_OUT_OF_ORDERNESS_SECONDS": str(MARGIN_SECONDS),
            "FEED__SAFETY_MARGIN_SECONDS": str(MARGIN_SECONDS),
            "FEED__MAX_MESSAGE_BYTES": str(LARGEST_MESSAGE),
            "LIMITS__SCALE": str(LIMITS_SCALE),
        }

    def _is_live(self) -> bool:
        return any("Live" in bridge.states() for bridge in self._place.bridges)

    def _logs(self) -> str:
        return "\n".join(bridge.text()[-2000:] for bridge in self._place.bridges)

    def _compact(self) -> None:
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                f"{PREFIX}.{topic}",
                incremental_configs=[
                    ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                    for name, value in settings.items()
                ],
            )
            for topic, settings in SMALL.items()
        ]
        admin = self._place.admin()
        for future in admin.incremental_alter_configs(resources).values():
            future.result()

    async def _play(self, scene: Scene, number: int, step: Step) -> None:
        key = f"{number} {step.name}"
        await asyncio.sleep(step.at)
        began = time.time()
        self._note("begin", key, step=step.json())
        hit = await step.fault.begin(scene, key)
        await asyncio.sleep(step.seconds)
        await step.fault.end(scene, key)
        hit |= key in scene.felt
        played = hit and key not in scene.stray
        self._played[step.name] += played
        self._note("end", key, hit=played)
        if hit:
            self._excuses.append(partial(step.fault.excuses, scene, key, began, time.time()))

    async def _judged(self, case: Case, scene: Scene) -> tuple[float, list[Excuse], Report]:
        """Judge what is there once all bridges have ended, which write until then.

        Returns how many seconds they took to catch up, and what was excused, too.
        """
        with tempfile.TemporaryDirectory(dir=self._place.directory, prefix="judge") as work:
            waited, until_still, left = await self._settled(case, Path(work), scene)
            self._absent = await self._group(scene)
            for bridge in scene.bridges.values():
                await bridge.close()
            if left and await asyncio.to_thread(missing, case, Path(work)) == left:
                waited = until_still  # what never comes is for the judge
            excused = [excuse for excuses in self._excuses for excuse in excuses()]
            case = replace(case, excused=tuple(excused), has_operator=bool(self._aborted or scene.moved_to))
            return waited, excused, await asyncio.to_thread(judge, case, Path(work))

    async def _group(self, scene: Scene) -> list[str]:
        """Wait until all bridges are in the owner group, and one has the feed. Returns what is wrong."""
        members, deadline = Members(self._place), time.monotonic() + JOINED_SECONDS
        while True:
            running = {members.name(held.bridge) for held in scene.bridges.values() if held.bridge}
            group = await members.group()
            names, holders = {it.name for it in group.members}, [it for it in group.members if it.holds]
            if names == running and len(running) == len(scene.bridges) and len(holders) == 1:
                return []
            if time.monotonic() > deadline:
                return [f"all bridges: {running} run, the owner group has {group.members}"]
            await asyncio.sleep(ASK_SECONDS)

    async def _settled(self, case: Case, work: Path, scene: Scene) -> tuple[float, float, int]:
        """Wait until nothing is missing, or nothing more comes.

        Returns how many seconds that took, how many until the last came, and how many are missing. Calls the
        operator once, if it is Kafka that holds back what is missing.
        """
        began = changed = time.monotonic()
        left = -1
        while time.monotonic() - changed < STILL_SECONDS:
            try:
                found = await asyncio.to_thread(missing, case, work)
            except (OSError, KafkaException) as error:  # brokers may still be starting
                self._note("no answer", reason=str(error))
                found = left
            if found == 0:
                await asyncio.sleep(2)  # what is doubled may still be on its way
                left = 0
                break
            if found != left:
                changed, left = time.monotonic(), found
                self._note("missing", count=found)
            elif (
                self._aborted is None
                and time.monotonic() - changed > HANGING_SECONDS
                and any(await asyncio.to_thread(self._place.markers_skipped))
            ):
                settings = self._settings(self._cluster.bridges[0], scene)
                self._aborted = await end_hanging(self._place, scene, settings)
                changed = time.monotonic()
            await asyncio.sleep(ASK_SECONDS)
        return time.monotonic() - began, changed - began, left


async def _watch(scene: Scene, operator: Coroutine[Any, Any, None]) -> None:
    """Restart what has ended, ask each bridge for its health, and do what they ask for, until cancelled."""
    async with asyncio.TaskGroup() as watching:
        watching.create_task(operator)
        watching.create_task(scene.watch())
        for bridge in scene.bridges.values():
            watching.create_task(bridge.probe())


def _credential(bridge: str) -> str:
    return f"credential of {bridge}"
