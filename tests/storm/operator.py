"""The operator of a storm, who ends what Kafka has left open as docs/operations.md says (decision 0036)."""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

from bridge.config import KafkaSettings, Settings, TopicsSettings
from bridge.kafka.open_transactions import first_times, hidden
from tests.harness import Place, until
from tests.storm.scene import Scene
from tests.transactions_tool import TransactionsTool

KEY = "operator"
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
    for bridge in scene.bridges.values():
        bridge.take_down(KEY, kill=False)
    await until(lambda: all(it.bridge is None for it in scene.bridges.values()), "the end of the bridges")
    await asyncio.sleep(ENDED_SECONDS)
    found = await asyncio.to_thread(left_open, place)
    if found:
        await asyncio.to_thread(_end, place, found, settings)
        scene.note("operator", aborted=found)
    for bridge in scene.bridges.values():
        bridge.let_up(KEY)
    return found


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
    places, unknown, *_ = hidden(client, [name for name in topics if name.startswith(f"{place.prefix}.")])
    assert not unknown, unknown
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=place.cluster.bootstrap_servers),
        topics=TopicsSettings(prefix=place.prefix),
    )
    times = first_times(settings, places)
    return [Hanging(*at, times[at]) for at in places]
