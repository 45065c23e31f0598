"""`bridge replay` on a real Kafka, of records from a bridge and of made-up ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from tests.harness import Place, assert_exact, simulate

EXAMPLE = Path(__file__).parents[2] / "examples" / "settled-bet.record.json"
PARTITIONS = 6


def words(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def replayed(place: Place, *arguments: str) -> list[dict[str, Any]]:
    """The output of `bridge replay --json`."""
    ran = place.run("replay", "--json", *arguments)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def places(found: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """Partition and offset of the printed records, in order."""
    return [(bet["partition"], bet["offset"]) for bet in found]


def place_of(message: Message) -> tuple[int, int]:
    return message.partition() or 0, message.offset() or 0


def prepared(place: Place) -> bytes:
    """A settled bet, as bytes that can be written to the place's topic, which is created."""
    applied = place.run("topics", "apply")
    assert applied.returncode == 0
    assert f"{place.prefix}.checkpoints: created: 1 partition, " in applied.stdout
    registered = place.run("schemas", "register", "--json")
    assert registered.returncode == 0, registered.stderr
    datum = json.loads(EXAMPLE.read_text("utf-8"))
    schema_id = json.loads(registered.stdout)[f"{place.prefix}.bets-value"]
    return Codec(load("settled-bet"), schema_id).encode(datum)


class Writer:
    """Writes to the topic of bets in transactions, and begins with one."""

    def __init__(self, place: Place, name: str) -> None:
        self._topic = f"{place.prefix}.bets"
        self.producer = place.open_transaction(name)

    def write(self, partition: int, key: str, value: bytes | None, at: float = 0) -> None:
        """Add a record with a timestamp in milliseconds."""
        self.producer.produce(self._topic, value, key, partition=partition, timestamp=round(at))
        assert self.producer.flush(20) == 0


async def test_a_window_holds_what_was_received_in_it(place: Place) -> None:
    async with simulate(rate=60, history_seconds=6, resettle=0.2) as feed:
        bridge = await place.live(feed)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
    bets = await asyncio.to_thread(place.read, "bets")
    times = sorted(bet.timestamp()[1] for bet in bets)
    first, last = times[len(times) // 4], times[len(times) * 3 // 4]
    inside = [bet for bet in bets if first <= bet.timestamp()[1] < last]
    assert 0 < len(inside) < len(bets)

    found = replayed(place, "--from", words(first), "--to", words(last))
    assert sorted(places(found)) == sorted(map(place_of, inside))
    stamps = [bet["timestamp"] for bet in found]
    assert stamps == sorted(stamps)
    assert len({bet["partition"] for bet in found}) == PARTITIONS
    assert replayed(place, "--to", words(times[0])) == []

    everything = replayed(place)
    assert sorted(places(everything)) == sorted(map(place_of, bets))
    bet_id, versions = Counter(bet["key"] for bet in everything).most_common(1)[0]
    assert versions > 1
    one = replayed(place, "--from", "1h", "--bet", bet_id)
    assert one == [bet for bet in everything if bet["key"] == bet_id]
    assert [bet["value"]["settlementVersion"] for bet in one] == list(range(1, versions + 1))
    without_option = place.run("replay", "--bet", bet_id).stdout.splitlines()
    assert [json.loads(line) for line in without_option] == one


def test_other_transactions_neither_show_nor_hold_up(place: Place) -> None:
    value, now = prepared(place), time.time() * 1000
    good = Writer(place, "good")
    for partition in range(PARTITIONS):
        good.write(partition, f"good-{partition}", value, now)
    good.producer.commit_transaction(20)
    aborted, opened, hidden = (Writer(place, name) for name in ("aborted", "opened", "hidden"))
    for partition in range(PARTITIONS):
        aborted.write(partition, "aborted", value, now + 1)
    aborted.producer.abort_transaction(20)
    for partition in range(1, PARTITIONS):
        opened.write(partition, "opened", value, now + 2)
    for partition in range(PARTITIONS):
        hidden.write(partition, "hidden", value, now + 3)
    hidden.producer.commit_transaction(20)

    visible = [f"good-{partition}" for partition in range(PARTITIONS)]
    assert sorted(bet["key"] for bet in replayed(place)) == [*visible, "hidden"]
    opened.producer.commit_transaction(20)
    shown = Counter(bet["key"] for bet in replayed(place))
    assert shown == {**dict.fromkeys(visible, 1), "opened": PARTITIONS - 1, "hidden": PARTITIONS}


def test_what_was_committed_long_after_its_receipt_is_found(place: Place) -> None:
    value, received = prepared(place), time.time() * 1000 - 3_600_000
    writer = Writer(place, "writer")
    for number in range(3):
        if number:
            writer.producer.begin_transaction()
        writer.write(0, f"{number}", value, received + number)
        writer.producer.commit_transaction(20)
    found = replayed(place, "--from", words(received - 1_000), "--to", words(received + 1_000))
    assert [bet["key"] for bet in found] == ["0", "1", "2"]


def test_records_of_no_time_are_shown_as_they_are(place: Place, tmp_path: Path) -> None:
    value = prepared(place)
    place.configure("bets", message_timestamp_after_max_ms=str(2**63 - 1))
    bet_id = json.loads(EXAMPLE.read_text("utf-8"))["betId"]
    extremes = [1, int(time.time()) * 10**9, 2**63 - 1]
    for at in extremes:
        place.write("bets", value, bet_id.encode(), timestamp=at)
    assert [bet["timestamp"] for bet in replayed(place)] == extremes
    for number, form in enumerate(("table", "json", "csv", "parquet")):
        file = tmp_path / str(number)
        ran = place.run("replay", "--format", form, *(["--output", str(file)] if form == "parquet" else []))
        assert ran.returncode == 0, (form, ran.stderr)
    tail = ["tail", "--from-beginning", "--until-end", "--bet", bet_id]
    for command in (["explain", bet_id], ["explain", bet_id, "--json"], tail):
        ran = place.run(*command)
        assert ran.returncode == 0, (command, ran.stderr)
    audited = place.run("audit", "--json")
    assert json.loads(audited.stdout)["records"]["bets"] == 3, audited.stderr
