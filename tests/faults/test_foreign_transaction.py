"""A foreign open transaction on the topic of bets hides the records committed after it began."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import time
import urllib.request

import pytest
from confluent_kafka import Producer

from bridge.kafka.open_transactions import HANGING_SECONDS
from bridge.sandbox import cluster as dev
from bridge.sandbox.cluster import maven
from bridge.sandbox.cluster.files import lock, silent
from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from tests.harness import Bridge, Place, assert_exact, until

PARTITIONS = 6
SETTINGS = {"LIMITS__SCALE": "1"}
ALERT_SECONDS = 60


@pytest.fixture(scope="module")
def tool(cluster: dev.Cluster) -> list[str]:
    """The command that `kafka-transactions.sh` runs: Kafka's class, with the broker's jars and its own."""
    with lock(maven.lock_file(), silent, "another download to end"):
        jar = maven.Repository(silent).file("org.apache.kafka", "kafka-tools", "4.3.0", "", "jar")
    [broker] = [server for name, server in cluster.servers.items() if name.startswith("kafka")]
    class_path = broker.command[list(broker.command).index("-cp") + 1]
    main = "org.apache.kafka.tools.TransactionsCommand"
    return [broker.command[0], "-XX:TieredStopAtLevel=1", "-cp", f"{class_path}:{jar}", main]


def open_elsewhere(place: Place, since: float) -> Producer:
    """Open a transaction in each partition of the bets, for longer than a test takes, as of that time."""
    other = Producer(
        {
            "bootstrap.servers": place.cluster.bootstrap_servers,
            "transactional.id": f"{place.prefix}.other-feed",
            "transaction.timeout.ms": 600_000,
            "log_level": 0,
        }
    )
    other.init_transactions(20)
    other.begin_transaction()
    for partition in range(PARTITIONS):
        other.produce(
            f"{place.prefix}.bets",
            b"never visible",
            b"other",
            partition=partition,
            timestamp=round(1000 * since),
        )
    assert other.flush(20) == 0
    return other


def run_pasted(tool: list[str], command: str) -> str:
    """Run a command that was printed, as its shell script would; return its output."""
    program, *arguments = shlex.split(command)
    assert program == "kafka-transactions.sh"
    done = subprocess.run([*tool, *arguments], capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def scraped(bridge: Bridge, path: str) -> str:
    """Return what the bridge answers."""
    [url] = [line["address"] for line in bridge.lines() if "address" in line]
    with urllib.request.urlopen(f"{url}{path}", timeout=10) as response:
        return str(response.read().decode())


def open_since(bridge: Bridge, topic: str) -> dict[int, float]:
    """Return the metric by partition: since when a transaction hides the rest."""
    name = "bridge_open_transaction_timestamp_seconds"
    rows = re.findall(rf"^{name}{{(.*)}} (\S+)$", scraped(bridge, "/metrics"), re.MULTILINE)
    found = {}
    for labels, value in rows:
        assert f'topic="{topic}"' in labels
        [partition] = re.findall(r'partition="(\d+)"', labels)
        found[int(partition)] = float(value)
    return found


async def test_a_hanging_transaction_is_named_and_ended_by_the_printed_commands(
    place: Place, tool: list[str]
) -> None:
    """A live bridge reports it within a minute; a new owner waits, says why, and goes on afterwards."""
    async with Simulator(SimulatorSettings(port=0, rate=100, history_seconds=5)) as feed:
        settings = {"FEED__BASE_URL": feed.url, **SETTINGS}
        bridge = place.bridge(**settings)
        await until(lambda: "Live" in bridge.states(), "live")
        began = time.time()
        since = began - HANGING_SECONDS
        other = await asyncio.to_thread(open_elsewhere, place, since)
        topic = f"{place.prefix}.bets"
        await until(lambda: len(open_since(bridge, topic)) == PARTITIONS, "the metric")
        assert time.time() - began < ALERT_SECONDS
        assert all(abs(at - since) < 0.01 for at in open_since(bridge, topic).values())
        health = json.loads(scraped(bridge, "/healthz"))
        assert (health["state"], len(health["openTransactions"])) == ("Live", PARTITIONS)
        [warning] = [line for line in bridge.lines() if line["event"] == "open transaction hides records"]
        assert "kafka-transactions.sh" in warning["what_to_do"]

        bridge.kill()
        connections = len(feed.connections)
        successor = place.bridge(**settings)

        def reason() -> str:
            return str(json.loads(scraped(successor, "/healthz"))["reason"])

        await until(lambda: "WaitingForKafka" in successor.states(), "waiting for Kafka")
        await until(lambda: "abort" in reason(), "the reason")
        assert f"an open transaction hides what is in {topic}: partition 0 from offset" in reason()
        assert len(feed.connections) == connections

        doctor = await asyncio.to_thread(lambda: place.run("doctor", **settings))
        assert doctor.returncode == 1, doctor.stdout
        printed = [line.strip() for line in doctor.stdout.splitlines() if "kafka-transactions.sh" in line]
        assert len(printed) == 2 * PARTITIONS
        describe, *_ = printed
        shown = await asyncio.to_thread(run_pasted, tool, describe)
        columns, *producers = [line.split("\t") for line in shown.splitlines() if line]
        starts = [dict(zip(columns, row, strict=False)) for row in producers]
        offset = re.findall(r"--start-offset (\d+)", doctor.stdout)[0]
        open_ = [row for row in starts if row["CurrentTransactionStartOffset"].strip() == offset]
        assert len(open_) == 1
        assert open_[0]["ProducerId"].strip().isdigit()
        for command in printed:
            if " abort " in command:
                await asyncio.to_thread(run_pasted, tool, command)

        await until(lambda: "Live" in successor.states(), "live")
        assert_exact(await place.settled(feed, successor))
        assert not feed.breaches
        await until(lambda: open_since(successor, topic) == {}, "the end of the metric")
        again = await asyncio.to_thread(lambda: place.run("doctor", "--json", **settings))
        [finding] = [one for one in json.loads(again.stdout) if one["check"] == "transactions"]
        assert finding["outcome"] == "ok", finding
        del other
