"""The operator of a storm, who does what docs/operations.md and the messages of the bridge say.

That is to end what Kafka has left open (decision 0036), and to go on with topics that are others, or lack
records.
"""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

from bridge.config import KafkaSettings, Settings, TopicsSettings
from bridge.kafka.open_transactions import first_times, hidden
from tests.harness import Place
from tests.storm.identities import all_down, let_up
from tests.storm.scene import Scene
from tests.transactions_tool import TransactionsTool

KEY = "operator"
GOING_ON = "operator who goes on"
ASK_SECONDS = 0.5
TRIES = 12
ANSWER_SECONDS = 20.0
ENDED_SECONDS = 20.0
"""By then Kafka has ended what bridges had open: their time-out is 10 s."""
BEFORE_SECONDS = 60
"""From the first hidden record back to the new position: its batch may have waited for Kafka."""


class Hanging(NamedTuple):
    """An open transaction that hides what is behind it in a partition."""

    topic: str
    partition: int
    offset: int
    at: float
    """Timestamp of its first record there, Unix seconds."""


async def end_hanging(place: Place, scene: Scene, settings: dict[str, str]) -> list[Hanging]:
    """Stop all bridges, abort what hangs, set the position back to before it, and let the bridges go on."""
    await all_down(scene, KEY)
    await asyncio.sleep(ENDED_SECONDS)
    found = await asyncio.to_thread(left_open, place)
    if found:
        await asyncio.to_thread(_end, place, found, settings)
        scene.note("operator", aborted=found)
    let_up(scene, KEY)
    return found


async def go_on(place: Place, scene: Scene, settings: dict[str, str]) -> None:
    """Type what bridges that have ended with exit 6 have named, again and again, until cancelled."""
    while True:
        await asyncio.sleep(ASK_SECONDS)
        asked = [it.asks_for for it in scene.bridges.values() if it.asks_for is not None]
        if not asked or scene.busy:
            continue
        await all_down(scene, GOING_ON)
        command = ["checkpoint", "set", "--revision", str(min(asked)), "--yes", "--reason", "as it says"]
        for _ in range(TRIES):  # brokers may be away, and a dead member keeps its place for a while
            typed = await asyncio.to_thread(place.run, *command, **settings)
            scene.note("operator", typed=" ".join(command), code=typed.returncode, said=typed.stderr[-500:])
            if typed.returncode == 0:
                scene.moved_to.append(min(asked))
                break
            await asyncio.sleep(5)
        for bridge in scene.bridges.values():
            bridge.asks_for = None
        let_up(scene, GOING_ON)


def _end(place: Place, found: list[Hanging], settings: dict[str, str]) -> None:
    tool = TransactionsTool(place.cluster)
    for it in found:
        values = {"topic": it.topic, "partition": it.partition, "start-offset": it.offset}
        tool.documented("abort", values)
    before = int(min(it.at for it in found)) - BEFORE_SECONDS
    shown = place.run("checkpoint", "show", "--json", **settings)
    assert shown.returncode == 0, shown.stderr
    if json.loads(shown.stdout)["revision"] > before:
        why = "what was aborted may be missing"
        moved = place.run(
            "checkpoint", "set", "--revision", str(before), "--yes", "--reason", why, **settings
        )
        assert moved.returncode == 0, moved.stderr


def left_open(place: Place) -> list[Hanging]:
    """Return what hides records now, where Kafka itself has skipped the markers that would end it."""
    skipped = place.markers_skipped()
    return [it for it in hanging(place) if (it.topic, it.partition) in skipped]


def hanging(place: Place) -> list[Hanging]:
    """Return what hides records now, in all topics of the place."""
    client = place.admin()
    topics = client.list_topics(timeout=ANSWER_SECONDS).topics
    places, look = hidden(client, [name for name in topics if name.startswith(f"{place.prefix}.")])
    assert not look.unknown, look.unknown
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=place.cluster.bootstrap_servers),
        topics=TopicsSettings(prefix=place.prefix),
    )
    times = first_times(settings, places)
    return [Hanging(*at, times[at]) for at in places]
