"""A foreign open transaction on the topic of bets hides the records committed after it began."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from bridge.formatting import format_utc
from bridge.kafka.open_transactions import HANGING_SECONDS
from bridge_sandbox import cluster as dev
from tests.alerts import Scrapes
from tests.harness import Bridge, Place, assert_exact, simulate, until
from tests.storm.operator import hanging
from tests.transactions_tool import TransactionsTool

pytestmark = pytest.mark.long

PARTITIONS = 2
SETTINGS = {"LIMITS__SCALE": "1", "TOPICS__PARTITIONS": str(PARTITIONS)}
ALERT_SECONDS = 180
"""More than 55 s, since the machine may be busy."""


@pytest.fixture(scope="module")
def tool(cluster: dev.Cluster) -> TransactionsTool:
    """Kafka's own."""
    return TransactionsTool(cluster)


def open_elsewhere(place: Place, since: float) -> Producer:
    """Open a transaction in each partition of the bets, for longer than a test takes, as of that time."""
    other, at = place.open_transaction("other-feed", transaction_timeout_ms=600_000), round(1000 * since)
    for partition in range(PARTITIONS):
        other.produce(f"{place.prefix}.bets", b"never visible", b"other", partition, timestamp=at)
    assert other.flush(20) == 0
    return other


def scraped(bridge: Bridge, path: str) -> str:
    """Return what the bridge answers."""
    with urllib.request.urlopen(f"{bridge.address()}{path}", timeout=10) as response:
        return str(response.read().decode())


def open_for(bridge: Bridge, topic: str) -> dict[int, float]:
    """Return the metric by partition: for how long a transaction was seen to hide the rest."""
    name = "bridge_open_transaction_seconds"
    rows = re.findall(rf"^{name}{{(.*)}} (\S+)$", scraped(bridge, "/metrics"), re.MULTILINE)
    found = {}
    for labels, value in rows:
        assert f'topic="{topic}"' in labels
        [partition] = re.findall(r'partition="(\d+)"', labels)
        found[int(partition)] = float(value)
    return found


def rows(printed: str) -> list[dict[str, str]]:
    """Return the table that Kafka's tool has printed."""
    columns, *found = [[cell.strip() for cell in line.split("\t")] for line in printed.splitlines() if line]
    return [dict(zip(columns, row, strict=False)) for row in found]


async def test_a_hanging_transaction_is_named_and_ended_by_the_documented_commands(
    place: Place, tool: TransactionsTool, tmp_path: Path
) -> None:
    scrapes, started = Scrapes(time.time()), time.monotonic()

    def scrape(bridge: Bridge) -> None:
        families = text_string_to_metric_families(scraped(bridge, "/metrics"))
        scrapes.take(time.monotonic() - started, {}, families)

    async with simulate(history_seconds=5) as feed:
        settings = {"FEED__BASE_URL": feed.url, **SETTINGS}
        bridge = place.bridge(**settings)
        await bridge.reaches("Live")
        began = time.time()
        since = began - 300  # as a batch that was kept through an outage
        other = await asyncio.to_thread(open_elsewhere, place, since)
        topic = f"{place.prefix}.bets"
        await until(lambda: len(open_for(bridge, topic)) == PARTITIONS, "the metric", every=1)
        at_once = open_for(bridge, topic)
        assert max(at_once.values()) <= time.time() - began

        def told() -> list[str]:
            warnings = [line for line in bridge.lines() if line["event"] == "open transaction hides records"]
            assert all("describe-producers" in line["what_to_do"] for line in warnings)
            assert not any(" abort " in line["what_to_do"] for line in warnings)
            return [what for line in warnings for what in line["what"].split("; ")]

        await until(lambda: len(told()) == PARTITIONS, "the log", ALERT_SECONDS, every=1)
        assert time.time() - began > HANGING_SECONDS
        await until(
            lambda: min(open_for(bridge, topic).values()) > HANGING_SECONDS,
            "the metric of the alert",
            every=1,
        )
        scrape(bridge)
        hides = [{"feed": "settlement-v4", "topic": topic, "partition": str(p)} for p in range(PARTITIONS)]
        scrapes.expect(SettlementTransactionHangs=hides)
        health = json.loads(scraped(bridge, "/healthz"))
        assert (health["state"], len(health["openTransactions"])) == ("Live", PARTITIONS)
        assert all(what.endswith(format_utc(round(since))) for what in health["openTransactions"])

        bridge.kill()
        connections = len(feed.connections)
        successor = place.bridge(**settings)

        def reason() -> str:
            return str(json.loads(scraped(successor, "/healthz"))["reason"])

        await successor.reaches("WaitingForKafka")
        await until(lambda: "describe-producers" in reason(), "the reason", every=1)
        assert f"an open transaction hides what is in {topic}: partition 0 from offset" in reason()
        assert " abort " not in reason()
        assert len(feed.connections) == connections

        doctor = await place.ran("doctor", **settings)
        assert doctor.returncode == 1, doctor.stdout
        describe, *others = [
            line.strip() for line in doctor.stdout.splitlines() if "kafka-transactions.sh" in line
        ]
        assert all("describe-producers" in line for line in (describe, *others))
        offsets = dict(re.findall(r"partition (\d+) from offset (\d+)", doctor.stdout))
        assert len(offsets) == PARTITIONS == 1 + len(others)
        shown = rows(await asyncio.to_thread(tool.pasted, describe))
        [producer] = [
            row["ProducerId"] for row in shown if row["CurrentTransactionStartOffset"] == offsets["0"]
        ]
        listed = rows(await asyncio.to_thread(tool.documented, "list", {}))
        assert [row["TransactionalId"] for row in listed if row["ProducerId"] == producer] == [
            f"{place.prefix}.other-feed"
        ]
        hidden = await asyncio.to_thread(hanging, place)
        assert {str(it.partition): str(it.offset) for it in hidden} == offsets
        assert {(it.topic, round(it.at)) for it in hidden} == {(topic, round(since))}
        for partition, offset in offsets.items():
            values = {"topic": topic, "partition": partition, "start-offset": offset}
            await asyncio.to_thread(tool.documented, "abort", values)

        await successor.reaches("Live")
        assert_exact(await place.settled(feed, successor))
        assert not feed.breaches
        await until(lambda: open_for(successor, topic) == {}, "the end of the metric", every=1)
        scrape(successor)
        scrapes.expect()
        again = await place.ran("doctor", "--json", **settings)
        [finding] = [one for one in json.loads(again.stdout) if one["check"] == "transactions"]
        assert finding["outcome"] == "ok", finding
        del other
    scrapes.judge(tmp_path, "SettlementTransactionHangs")  # scrapes are far between on a busy machine
