"""The judge on a real Kafka: what a real bridge leaves is clean, and each fault planted on it is seen."""

from __future__ import annotations

import asyncio
import json
import re
import time
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

import fastavro
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient

from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import PATIENCE, Place
from tests.judge import Anomaly, Case, Report, judge, missing, visible

SCALE = 100


def post(feed: Simulator, path: str, **parameters: object) -> None:
    """Change the provider, from a thread."""
    request = Request(f"{feed.control_url}{path}", json.dumps(parameters).encode(), method="POST")
    with urlopen(request, timeout=30) as answer:
        answer.read()


async def test_planted_anomalies_are_seen_and_nothing_else(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible, "STUCK_SECONDS", 10.0)  # before the open transaction times out
    settings = SimulatorSettings(
        port=0, control_port=0, rate=40, history_seconds=20, resettle=0.3, odd=0.05, limits_scale=SCALE
    )
    async with Simulator(settings) as feed:
        case = Case(
            bootstrap_servers=place.cluster.bootstrap_servers,
            registry_url=place.cluster.registry_url,
            prefix=place.prefix,
            control_url=feed.control_url or "",
            seed=7,
            limits_scale=SCALE,
        )
        chosen = {"FEED__BASE_URL": feed.url, "LIMITS__SCALE": str(SCALE)}
        for is_last in (False, False, True):
            bridge = place.bridge(**chosen)
            await bridge.reaches("Live")
            await asyncio.to_thread(post, feed, "/faults/garbage", count=6)
            if not is_last:
                await asyncio.to_thread(post, feed, "/faults/drop", abort=True)
                await asyncio.sleep(1)
                bridge.kill()
        await asyncio.to_thread(post, feed, "/stop")
        await asyncio.to_thread(until_nothing_is_missing, case, tmp_path)
        assert await bridge.end() == 0
        report = await asyncio.to_thread(judged, case, tmp_path)
        assert report, str(report)
        figures = report.figures
        assert figures["bets"] == figures["records"] > 800
        assert figures["dead letters"] > 18
        left_open = await asyncio.to_thread(plant, place)
        message = next(it for it in feed.published() if it.bet_id).body.replace(b'"betId":"', b'"betId":"x')
        for body in (message.decode(), "no bet"):  # which no bridge receives any more
            await asyncio.to_thread(post, feed, "/faults/garbage", body=body)
        found = (await asyncio.to_thread(judged, case, tmp_path)).anomalies
    left_open.abort_transaction(60)
    first = {name: it.first for name, it in found.items()}
    assert {name: it.count for name, it in found.items()} == {
        Anomaly.LOST_WRITE: 1,
        Anomaly.DUPLICATE: 3,  # both bets, and the dead letter
        Anomaly.ABORTED_READ: 1,
        Anomaly.CHECKPOINT_BACK: 1,
        Anomaly.DEAD_LETTER_LOST: 1,
        Anomaly.DEAD_LETTER_ALTERED: 1,
        Anomaly.WRONG_FIELD: 1,
        Anomaly.STUCK_OFFSET: 1,
        Anomaly.COUNTERS: 3,  # they fall, and are fewer than the bets and the dead letters
        Anomaly.POSITION_BEHIND: 1,  # the last one is the first again
    }, first
    assert first[Anomaly.LOST_WRITE].startswith("bet x")
    assert first[Anomaly.ABORTED_READ].endswith("written without a transaction, are visible")
    assert re.search(r": data.payout \S+ became -1.5$", first[Anomaly.WRONG_FIELD])
    assert first[Anomaly.STUCK_OFFSET].startswith("checkpoints, partition 0: ")


def plant(place: Place) -> Producer:
    """Write what no bridge would: all but an aborted transaction is an anomaly.

    A bet again, as it is and with another payout; the first checkpoint again; a dead letter cut short,
    without a transaction. Returns a producer whose transaction stays open.
    """
    bet, checkpoint, letter = (place.read(topic)[0] for topic in ("bets", "checkpoints", "deadletters"))

    def write(producer: Producer, message: Message, value: bytes | None) -> None:
        at = message.timestamp()[1]
        producer.produce(message.topic() or "", value, message.key(), timestamp=at, headers=message.headers())
        assert producer.flush(60) == 0

    planted, left_open = (place.open_transaction(str(number)) for number in range(2))
    write(planted, bet, bet.value())
    planted.abort_transaction(60)
    planted.begin_transaction()
    write(planted, bet, bet.value())
    write(planted, bet, with_payout(place, bet.value() or b"", -1.5))
    write(planted, checkpoint, checkpoint.value())
    planted.commit_transaction(60)
    write(place.producer(), letter, (letter.value() or b"")[:-1])
    write(left_open, checkpoint, checkpoint.value())
    return left_open


def with_payout(place: Place, value: bytes, payout: float) -> bytes:
    """The record of a bet with another payout."""
    with SchemaRegistryClient({"url": place.cluster.registry_url}) as registry:
        text = registry.get_schema(int.from_bytes(value[1:5], "big")).schema_str or ""
    schema, changed = fastavro.parse_schema(json.loads(text)), BytesIO()
    datum: Any = fastavro.schemaless_reader(BytesIO(value[5:]), schema, None)
    fastavro.schemaless_writer(changed, schema, {**datum, "payout": payout})
    return value[:5] + changed.getvalue()


def judged(case: Case, directory: Path) -> Report:
    """Judge, with a directory of its own."""
    with TemporaryDirectory(dir=directory) as work:
        return judge(case, Path(work))


def until_nothing_is_missing(case: Case, work: Path) -> None:
    """Wait until every bet is visible. Fails after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while left := missing(case, work):
        assert time.monotonic() < deadline, f"{left} bets are missing"
        time.sleep(0.5)
