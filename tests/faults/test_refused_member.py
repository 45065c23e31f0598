"""Kafka keeps a bridge out of its owner group: it says why, is not ready, and gets in once it can."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from confluent_kafka import Consumer

from tests.harness import Bridge, Place, simulate, until


@contextmanager
def stray(place: Place, **properties: str) -> Iterator[None]:
    """A consumer that is no bridge in the owner group."""
    over, joined = threading.Event(), threading.Event()
    consumer = Consumer(
        {
            "bootstrap.servers": place.cluster.bootstrap_servers,
            "group.id": f"{place.prefix}.settlement-v4.owner",
            "client.id": "stray",
            **properties,
        }
    )
    consumer.subscribe([f"{place.prefix}.checkpoints"], on_assign=lambda *_: joined.set())

    def poll() -> None:
        while not over.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert joined.wait(60)
        yield
    finally:
        over.set()
        thread.join()


async def refused(bridge: Bridge, words: str) -> None:
    """Wait until the bridge says that it is kept out, in log and probe."""
    await until(lambda: words in bridge.text(), "the reason", so_far=bridge.text, seconds=60)
    [line] = [line for line in bridge.lines() if words in line.get("reason", "")][:1]
    assert (line["state"], "Kafka refuses this member" in line["reason"]) == ("Standby", True)
    answer = await bridge.get("/readyz")
    while words not in answer.json().get("reason", ""):  # with the next heartbeat
        answer = await bridge.get("/readyz")
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert (await bridge.get("/healthz")).status_code == HTTPStatus.OK  # a restart would not help


async def test_a_stray_consumer_in_the_owner_group(place: Place) -> None:
    async with simulate() as feed:
        assert place.run("topics", "apply").returncode == 0
        with stray(place, **{"partition.assignment.strategy": "range"}):
            bridge = place.bridge(FEED__BASE_URL=feed.url)
            await refused(bridge, "Inconsistent group protocol")
        await bridge.reaches("Live")
        assert await bridge.end() == 0
