"""`tail`, `replay` and `explain` with their filters and formats, and `bridge.reader`, on a real Kafka."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Any

import fastavro
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from pyarrow import parquet

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.errors import SettingsError
from bridge.kafka.partitioner import partition_of
from bridge.reader import (
    BETS,
    DEAD_LETTERS,
    GAPS,
    TRANSLATIONS,
    Names,
    Removed,
    changes,
    read,
    read_batches,
)
from bridge.reader.money import payout_of
from bridge.reader.source import Source
from bridge.records import topics
from bridge.records.gap import Cause, FeedGap
from bridge.registry import Registry
from tests.bets import BARE_BET
from tests.harness import PATIENCE, Place, assert_exact, simulate
from tests.integration.publishing import prepared

HOUR = 3_600_000
NOW = round(time.time() * 1000)
AMOUNT = {
    "currency": "EUR",
    "value": 1050,
    "precision": 2,
    "placementExchangeRate": 1.0,
    "settlementExchangeRate": None,
}


class Written:
    """Topics of a place, with records that a test has chosen."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.settings = prepared(place)
        declared = topics.declare(self.settings)
        self.topics = declared
        with Registry(self.settings.registry) as registry:
            ids = registry.register(place.prefix)
        self.codecs = {name: Codec(load(name), schema_id) for name, schema_id in ids.items()}
        self.producer = place.producer()

    def bet(self, key: str, at: int = NOW, **changes: Any) -> None:
        """A bet that was received at a time, milliseconds."""
        datum = BARE_BET | {"betId": key, "settlementTime": at * 1000, "amount": AMOUNT} | changes
        self.produce(self.topics.bets.name, key, self.codecs["settled-bet"].encode(datum), at)

    def produce(self, topic: str, key: str, value: bytes | None, at: int = NOW, **more: Any) -> None:
        while True:
            try:
                self.producer.produce(topic, value, key, timestamp=at, **more)
                return
            except BufferError:
                self.producer.poll(0.1)

    def flush(self) -> None:
        assert self.producer.flush(60) == 0


@pytest.fixture
def written(place: Place) -> Written:
    return Written(place)


def keys(place: Place, *arguments: str) -> list[str]:
    """The keys of the bets that a command prints."""
    ran = place.run(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line)["key"] for line in ran.stdout.splitlines()]


def item(sport: int, league: int) -> dict[str, Any]:
    example = json.loads((Path(__file__).parents[2] / "examples/settled-bet.record.json").read_text("utf-8"))
    found: dict[str, Any] = example["selections"][0] | {"sportId": sport, "competitionId": league}
    return found


def test_filters_narrow_each_other(written: Written) -> None:
    tail = ("tail", "--from-beginning", "--until-end")
    written.bet("plain", NOW)
    written.bet("again", NOW + 1)
    written.bet("again", NOW + 2, settlementVersion=2, betSettlement="Lose")
    written.bet("sport", NOW + 3, selections=[item(11, 5), item(12, 6)])
    written.bet("money", NOW + 4, amount=AMOUNT | {"currency": "SEK"}, selections=[item(12, 6)])
    gap = FeedGap(written.settings.feed.name, (NOW + 3) / 1000, (NOW + 4) / 1000, Cause.TOO_OLD, NOW / 1000)
    other = FeedGap("other", 0, (NOW + HOUR) / 1000, Cause.TOO_OLD, NOW / 1000)
    for found in (gap, other):
        value = written.codecs["feed-gap"].encode(found.to_avro())
        written.produce(written.topics.gaps.name, found.feed, value, partition=0)
    written.flush()
    for arguments, expected in (
        ((), {"plain", "again", "sport", "money"}),
        (("--bet", "again"), {"again"}),
        (("--bet", "again", "--bet", "plain"), {"again", "plain"}),
        (("--bet", "again", "--result", "Win", "--resettled"), set()),
        (("--resettled",), {"again"}),
        (("--sport", "11", "--sport", "13"), {"sport"}),
        (("--league", "6"), {"sport", "money"}),
        (("--league", "6", "--currency", "SEK"), {"money"}),
        (("--result", "Lose"), {"again"}),
        (("--gap",), {"sport"}),
    ):
        assert {*keys(written.place, "replay", *arguments)} == expected, arguments
    assert {*keys(written.place, *tail, "--league", "6", "--currency", "SEK")} == {"money"}


def test_a_bet_is_looked_for_where_its_key_belongs(written: Written) -> None:
    home = partition_of(b"b", written.topics.bets.partitions)
    written.bet("b")
    value = written.codecs["settled-bet"].encode(BARE_BET)
    written.produce(
        written.topics.bets.name, "b", value, partition=(home + 1) % written.topics.bets.partitions
    )
    written.flush()
    assert keys(written.place, "replay", "--bet", "b") == ["b"]
    assert keys(written.place, "replay", "--bet", "b", "--all-partitions") == ["b", "b"]
    for command, where in (
        (("replay", "--bet"), "nothing found in the partition of its key; --all-partitions searches all"),
        (("replay", "--all-partitions", "--bet"), "nothing found"),
        (("explain",), "no record or dead letter mentions the bet nobody"),
    ):
        nothing = written.place.run(*command, "nobody")
        assert nothing.returncode == 1
        assert f"error: {where}. Is the id complete?\n" in nothing.stderr


def test_what_cannot_be_is_refused(written: Written, tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("precious")
    for arguments, code, reason in (
        (["--output", ".", "--format", "csv"], 2, "give the name of a file"),
        (["--output", str(tmp_path / "none" / "a.csv")], 2, "none does not exist"),
        (["--output", str(there)], 2, "the file already exists"),
        (["--to-topic", "b", "--names", "en"], 2, "copies records as they are"),
        (["--to-topic", written.topics.gaps.name], 2, "is a topic of the bridge itself"),
        (
            ["--to-topic", f"{written.place.prefix}.none"],
            6,
            "there is no such topic. Create it with --create",
        ),
        (["--create"], 2, "--create is for --to-topic"),
    ):
        ran = written.place.run("replay", *arguments)
        assert (ran.returncode, ran.stdout) == (code, ""), arguments
        assert reason in ran.stderr
    assert there.read_text() == "precious"


BETS_EXPORTED, KILLS = int(os.environ.get("EXPORTED", "3000")), int(os.environ.get("KILLS", "2"))
"""More are tried by `EXPORTED=1000000 KILLS=10 pytest -n 0 -k interrupted_export` with this file."""
SAVED = BETS_EXPORTED // 30
"""Bets between two times at which an export can be killed."""


def slowly(written: Written, output: Path, pause: float = 0.3) -> subprocess.Popen[bytes]:
    """Start an export in a process that saves often, pauses after it, and may be killed."""
    program = (
        "import sys, time; from bridge.inspection import export, merging, replay; "
        "replay.SAVE_SECONDS = export.PART_SECONDS = 0; "
        f"merging.BATCH = {SAVED}; "
        "plain = export.Export._save; "
        f"export.Export._save = lambda self, offsets: (plain(self, offsets), time.sleep({pause})); "
        f"sys.argv = ['bridge', 'replay', '--output', {str(output)!r}]; "
        "from bridge.cli import main; main()"
    )
    python = Path(__file__).parents[2] / ".venv" / "bin" / "python"
    return subprocess.Popen([python, "-c", program], env=written.place.environment(), stderr=subprocess.PIPE)


def exported(output: Path) -> list[tuple[str, Decimal]]:
    """The bets in a file: id and payout."""
    if output.suffix == ".csv":
        with output.open(newline="") as file:
            return [(row["betId"], Decimal(row["payout"])) for row in csv.DictReader(file)]
    if output.suffix == ".parquet":
        return [(row["betId"], row["exactPayout"]) for row in parquet.read_table(output).to_pylist()]
    if output.suffix == ".avro":
        with output.open("rb") as content:
            bets: list[Any] = [*fastavro.reader(content)]
        return [(row["betId"], payout_of(row["payout"])) for row in bets]
    values = [json.loads(line)["value"] for line in output.read_text().splitlines()]
    return [(value["betId"], Decimal(value["payout"])) for value in values]


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["json", "csv", "avro", "parquet"])
def test_an_interrupted_export_goes_on(written: Written, tmp_path: Path, suffix: str) -> None:
    for number in range(BETS_EXPORTED):
        written.bet(f"{number:05}", NOW - HOUR + number % 3_000_000, payout=number + 0.1 + 0.2)
    written.flush()
    directory = tmp_path / "exports"
    directory.mkdir()
    output, resume = directory / f"bets.{suffix}", directory / f"bets.{suffix}.resume"
    for kill in range(KILLS):
        least = (kill + 1) * BETS_EXPORTED // (KILLS + 2)
        export = slowly(written, output)
        deadline = time.monotonic() + PATIENCE
        while not (resume.exists() and json.loads(resume.read_bytes())["bets"] >= least):
            assert export.poll() is None, export.stderr and export.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        export.send_signal(signal.SIGKILL)
        export.communicate()
        written.bet(f"late-{kill}", NOW)
        written.flush()
        assert not output.exists()
    before = resume.stat().st_mtime_ns
    busy = slowly(written, output, pause=60)
    while resume.stat().st_mtime_ns == before:
        assert busy.poll() is None
        time.sleep(0.01)
    second = written.place.run("replay", "--output", str(output))
    assert (second.returncode, "another export is writing this file" in second.stderr) == (2, True)
    busy.kill()
    busy.communicate()
    other = written.place.run("replay", "--output", str(output), "--currency", "EUR")
    assert other.returncode == 2
    assert "was started with other options" in other.stderr
    done = written.place.run("replay", "--output", str(output))
    assert done.returncode == 0, done.stderr
    assert f"{BETS_EXPORTED} bets in {output}" in done.stderr
    assert [*directory.iterdir()] == [output]
    at_once = directory.parent / output.name
    whole = (
        "replay",
        "--to",
        datetime.fromtimestamp((NOW - 1) / 1000, UTC).isoformat(),
        "--output",
        str(at_once),
    )
    assert written.place.run(*whole).returncode == 0
    if suffix in ("json", "csv"):
        assert at_once.read_bytes() == output.read_bytes()
    else:
        assert exported(at_once) == exported(output)
    exact = [Decimal(number) + Decimal("0.3") for number in range(BETS_EXPORTED)]
    assert exported(output) == [(f"{number:05}", payout) for number, payout in enumerate(exact)]


INTERRUPTED_AFTER = 1_000
INTERRUPTED = f"""
import os, signal
from bridge.__main__ import main
from bridge.reader.decoding import MessageDecoder
plain, seen = MessageDecoder.decode, []
def decode(self, message):
    seen.append(message)
    if len(seen) == {INTERRUPTED_AFTER}:
        os.kill(os.getpid(), signal.SIGINT)
    return plain(self, message)
MessageDecoder.decode = decode
main()
"""
"""A command that gets Ctrl-C while it decodes a bet."""


@pytest.mark.parametrize("suffix", ["parquet", ""])
def test_ctrl_c_keeps_what_was_searched(written: Written, tmp_path: Path, suffix: str) -> None:
    for number in range(2 * INTERRUPTED_AFTER):
        written.bet(f"{number}", NOW - HOUR + number)
    written.bet("match", amount=AMOUNT | {"currency": "SEK"})
    written.flush()
    directory = tmp_path / "exports"
    directory.mkdir()
    output, target = directory / f"bets.{suffix}", f"{written.place.prefix}.copy"
    to = ("--output", str(output)) if suffix else ("--to-topic", target, "--create")
    command = "replay", "--currency", "SEK", *to
    python = Path(__file__).parents[2] / ".venv" / "bin" / "python"
    environment = written.place.environment()
    ended = subprocess.run(
        [python, "-c", INTERRUPTED, *command], env=environment, stderr=subprocess.PIPE, check=False
    )
    assert ended.stderr.splitlines()[-1] == b"interrupted: repeat the command to resume", ended.stderr
    if suffix:
        note = json.loads(output.with_name(f"{output.name}.resume").read_bytes())
        assert sum(note["offsets"].values()) == INTERRUPTED_AFTER
    kept = {path.suffix for path in directory.iterdir()}
    assert kept <= {".partial", ".partial-1", ".resume"}
    done = written.place.run(*command)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("resuming after")
    if suffix:
        assert [*directory.iterdir()] == [output]
        assert [bet for bet, _ in exported(output)] == ["match"]
    else:
        assert [message.key() for message in written.place.messages("copy")] == [b"match"]


def test_a_copy_to_a_topic_holds_each_bet_once(written: Written) -> None:
    place, target = written.place, f"{written.place.prefix}.copy"
    admin, narrow = place.admin(), place.make_topic("narrow", 3)
    for number in range(50):
        written.bet(f"{number}", NOW - 3_000 + number)
    written.flush()
    copy = "replay", "--to-topic", target, "--from", "1h"
    first = place.run(*copy, "--create")
    assert (first.returncode, first.stderr) == (0, f"50 bets copied to {target}\n")
    # Received before the interval of the second attempt would begin, in the one of the first.
    written.bet("new", round(time.time() * 1000) - HOUR + 800)
    written.flush()
    time.sleep(1.2)
    second = place.run(*copy)
    assert second.stderr.splitlines()[-1] == f"1 bet copied to {target}", second.stderr
    original, copied = (
        {(m.partition(), m.key(), m.value(), m.timestamp()[1]) for m in place.messages(topic)}
        for topic in ("bets", "copy")
    )
    assert copied == original
    assert len(copied) == 51
    created = topics.DeclaredTopic(target, 6, written.topics.bets.config)
    [config] = topics._configs(admin, [created])
    assert created.config.items() <= config.items()
    written.produce(narrow, "other", b"")
    written.flush()
    for to, code, reason in ((target, 2, "has another copy"), (narrow, 6, "has 3 partitions")):
        refused = place.run("replay", "--to-topic", to, "--from", "2h")
        assert (refused.returncode, reason in refused.stderr) == (code, True), refused.stderr
    assert len([*place.messages("copy")]) == 51
    place.delete_topic("copy")
    place.make_topic("copy", 6)
    written.produce(target, "other", b"")
    written.flush()
    refused = place.run(*copy)
    assert (refused.returncode, "has records, and no copy" in refused.stderr) == (2, True), refused.stderr


def test_a_tombstone_is_copied_and_told_and_no_bet(written: Written) -> None:
    place, target = written.place, f"{written.place.prefix}.copy"
    written.bet("kept", NOW - 1)
    written.bet("erased")
    written.flush()
    copy = "replay", "--to-topic", target, "--from", "1h"
    assert place.run(*copy, "--create").returncode == 0
    written.produce(written.topics.bets.name, "erased", None)
    written.flush()
    shown = place.run("replay", "--from", "1h", "--json")
    assert [json.loads(line)["key"] for line in shown.stdout.splitlines()] == ["kept", "erased"]
    note = json.loads(shown.stderr)
    assert (note["event"], note["count"]) == ("tombstones left out", 1)
    file = place.directory / "bets.avro"
    exported = place.run("replay", "--from", "1h", "--output", str(file))
    assert exported.stderr.splitlines()[-1].startswith("2 bets "), exported.stderr
    assert "tombstones left out" in exported.stderr
    assert place.run(*copy).returncode == 0
    assert {m.key(): m.value() is None for m in place.messages("copy")} == {b"kept": False, b"erased": True}
    told = json.loads(place.run("explain", "erased", "--json").stdout)["events"]
    assert [event["what"] for event in told][-1] == "erased, by a tombstone"


def test_a_copy_commits_the_offsets_of_all_partitions(written: Written) -> None:
    place, target = written.place, written.place.make_topic("sparse", 6)
    admin = place.admin()
    for number in range(50):
        written.bet(f"{number}", NOW - 3_000 + number)
    written.flush()
    copy = "replay", "--to-topic", target, "--from", "1h", "--bet", "7"
    assert place.run(*copy).stderr == f"1 bet copied to {target}\n"
    groups = admin.list_consumer_groups().result().valid
    [group] = [each.group_id for each in groups if target in each.group_id]
    [found] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    assert {place.partition for place in found.result().topic_partitions} == {*range(6)}
    assert "resuming after" in place.run(*copy).stderr
    assert len([*place.messages("sparse")]) == 1


def test_a_copy_of_gaps_ends_with_one_that_is_declared_meanwhile(written: Written) -> None:
    place, target = written.place, written.place.make_topic("of-gaps", 6)

    def declare(start: int) -> None:
        at = (NOW + start) / 1000
        gap = FeedGap(written.settings.feed.name, at, at + 1, Cause.TOO_OLD, NOW / 1000)
        name = written.topics.gaps.name
        written.produce(name, gap.feed, written.codecs["feed-gap"].encode(gap.to_avro()), partition=0)
        written.flush()

    for number in range(20):
        written.bet(f"{number}", NOW - HOUR + 1_000 * number)
    declare(-HOUR + 10_000)
    copy = "replay", "--to-topic", target, "--gap"
    assert place.run(*copy).stderr == f"1 bet copied to {target}\n"
    declare(-HOUR + 5_000)
    refused = place.run(*copy)
    assert (refused.returncode, "before a gap was declared (--gap)" in refused.stderr) == (2, True)
    assert [message.key() for message in place.messages("of-gaps")] == [b"10"]


def test_a_reader_that_begins_at_the_end_finds_what_becomes_visible(written: Written) -> None:
    settings, key = written.settings, b"hidden"
    producer = written.place.open_transaction("late")
    value = written.codecs["settled-bet"].encode(BARE_BET | {"betId": key.decode()})
    producer.produce(written.topics.bets.name, value, key, timestamp=NOW)
    assert producer.flush(30) == 0
    with closing(Source(settings, BETS.name, "end", until=None)) as source:
        producer.commit_transaction(30)
        deadline, found = time.monotonic() + 60, list[bytes | None]()
        while not found and time.monotonic() < deadline:
            found += [message.key() for message in source.messages()]
    assert found == [key]


def test_a_reader_begins_and_ends_where_it_is_told(written: Written) -> None:
    """At a time, an age, an offset and the end; a tombstone is seen only by whoever asks for it."""
    for number in range(10):
        value = written.codecs["settled-bet"].encode(BARE_BET)
        at = NOW - HOUR + number * 60_000
        written.produce(written.topics.bets.name, f"{number}", value, at, partition=0)
    written.produce(written.topics.bets.name, "0", None, partition=0)
    written.flush()
    settings = written.settings
    begin = datetime.fromtimestamp((NOW - HOUR) / 1000, UTC)

    def found(**options: Any) -> list[str]:
        return [bet.key for bet in read(BETS, settings=settings, **options)]

    assert found() == [*"0123456789"]
    assert found(from_=begin + timedelta(minutes=7)) == ["7", "8", "9"]
    assert found(from_=datetime.now(UTC) - begin - timedelta(minutes=6, seconds=30)) == ["7", "8", "9"]
    assert found(from_={0: 8}) == ["8", "9"]
    assert found(from_={0: 2}, until={0: 4}) == ["2", "3"]
    assert found(from_="end") == []
    last = list(changes(BETS, settings=settings))[-1]
    assert isinstance(last, Removed)
    for options, reason in (
        ({"from_": {0: 99}}, "has no offset 99: it ends at 11"),
        ({"from_": {77: 0}}, "has no partition 77"),
        ({"until": {0: 99}}, "cannot be read up to offset 99"),
        ({"from_": begin.replace(tzinfo=None)}, "has no zone"),
        ({"from_": "yesterday"}, "give a datetime or a timedelta"),
    ):
        with pytest.raises(SettingsError, match=reason):
            found(**options)


def translated(written: Written, key: str, kind: str, texts: dict[str, str], **ids: Any) -> None:
    """A translation."""
    fields = ("eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId")
    datum = {
        "kind": kind,
        "id": int(key.rpartition(":")[2]),
        **{name: ids.get(name) for name in fields},
        "translations": texts,
        "snapshotId": "1",
    }
    written.produce(written.topics.translations.name, key, written.codecs["translation"].encode(datum))


def test_names_follow_the_translations(written: Written) -> None:
    one = item(11, 5) | {
        "countryId": 7,
        "event": {"id": 77, "name": None, "isLive": False, "startTime": None},
        "market": {"id": 3, "type": 4, "name": None, "properties": None},
        "selectionId": 9,
        "betBuilderItems": [
            {
                "market": {"id": 8, "type": 4, "name": None, "properties": None},
                "selectionId": 10,
                "settlement": None,
            }
        ],
    }
    written.bet("b", selections=[one, one | {"event": None, "betBuilderItems": None}])
    translated(written, "event:77", "event", {"en": "Malmö – Gent"}, competitorIds=[1, 2])
    translated(written, "competitor:2", "competitor", {"en": "Gent"})
    translated(written, "sport:11", "sport", {"en": "Football", "de": "Fußball"})
    translated(written, "league:5", "league", {"en": "Cup"})
    translated(written, "market:77:3", "market", {"en": "Winner"})
    translated(written, "market:77:8", "market", {"en": "Goals"})
    translated(written, "selection:9", "selection", {"en": "Malmö"})
    translated(written, "selection:10", "selection", {"en": "Over 2.5"})
    written.flush()
    [bet] = read(BETS, settings=written.settings)
    with Names(written.settings) as names:
        assert len(names) == 8
        first, second = names.of(bet, "en")
        assert (first.event, first.competitors, first.sport) == ("Malmö – Gent", [None, "Gent"], "Football")
        assert (first.league, first.region, first.market, first.selection) == ("Cup", None, "Winner", "Malmö")
        assert [(leg.market, leg.selection) for leg in first.legs] == [("Goals", "Over 2.5")]
        assert (second.event, second.market, second.selection) == (None, None, "Malmö")
        assert names.of(bet, "de")[0].sport == "Fußball"
        translated(written, "region:7", "region", {"en": "Sweden"})
        written.produce(written.topics.translations.name, "league:5", None)
        written.flush()
        deadline = time.monotonic() + 60
        while (item_ := names.of(bet, "en")[0]).region is None or item_.league is not None:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert (item_.region, item_.league) == ("Sweden", None)
    kinds = [translation.kind for translation in read(TRANSLATIONS, settings=written.settings)]
    assert sorted({*kinds}) == ["competitor", "event", "league", "market", "region", "selection", "sport"]
    shown = written.place.run("replay", "--names", "de", "--format", "csv")
    assert "Fußball" in shown.stdout
    shown = written.place.run("replay", "--names", "xx", "--format", "csv")
    assert (shown.returncode, "Fußball" in shown.stdout) == (0, False)
    assert shown.stderr.startswith("no translations in 'xx'; available languages: de, en")


async def test_a_bet_is_explained(place: Place) -> None:
    # The first 256 bets settle none again (see `stream`), and a bridge may be live within a second.
    async with simulate(rate=60, history_seconds=6, resettle=0.3) as feed:
        for _ in range(2):
            bridge = await place.live(feed)
            assert_exact(await place.settled(feed, bridge))
            assert await bridge.end() == 0
    bets = [json.loads(line) for line in (await place.ran("replay", "--resettled")).stdout.splitlines()]
    key = bets[-1]["key"]
    versions = [json.loads(line) for line in place.run("replay", "--bet", key).stdout.splitlines()]
    headers: list[tuple[str, str | bytes | None]] = [
        *(("kind", "error"), ("reason", "data.betSettlement: 99 is not a result"), ("feed", "settlement-v4")),
        *(("revision", "1"), ("received", "1.0"), ("size", "9")),
    ]
    body = json.dumps({"data": {"betId": key, "betSettlement": 99}})
    place.write("deadletters", body.encode(), "digest", headers=headers)
    mark = [("kind", "redrive"), ("outcome", "failed"), ("reason", "again"), ("tries", "2"), headers[2]]
    for digest in ("digest", "other"):
        place.write("deadletters", None, digest, headers=mark)
    moved = place.run("checkpoint", "set", "--revision", "5m", "--yes", "--reason", "resent")
    assert moved.returncode == 0, moved.stderr
    assert place.run("checkpoint", "show").stdout.count("moved the position") == 1
    wrong = place.run("audit", "--feed", "nobody")
    assert wrong.stderr.endswith(f"under {place.prefix}; known: settlement-v4\n")

    shown = place.run("explain", key)
    assert shown.returncode == 0, shown.stderr
    told = json.loads(place.run("explain", key, "--json").stdout)["events"]
    settlements = [event for event in told if event["record"].get("key") == key]
    assert [event["record"] for event in settlements] == versions
    for event, version in zip(settlements, versions, strict=True):
        value = version["value"]
        assert event["what"].endswith(f"{value['betSettlement']} v{value['settlementVersion']}")
        assert (
            f"{place.prefix}.bets partition {version['partition']} offset {version['offset']}"
            in event["details"]
        )
    assert settlements[0]["what"].startswith("first settlement: ")
    assert "changed: settlementVersion: 1 → 2" in settlements[1]["details"]
    assert any(detail.startswith("changed: settlementTime: 2") for detail in settlements[1]["details"])
    [letter] = [event for event in told if event["what"] == "dead letter (error)"]
    assert "data.betSettlement: 99 is not a result" in letter["details"]
    assert [letter.reason for letter in read(DEAD_LETTERS, settings=prepared(place))] == [headers[1][1]]
    assert not [*read(GAPS, settings=prepared(place))]
    [redriven] = [event for event in told if event["what"].startswith("redriven")]
    assert (redriven["what"], redriven["record"]["key"]) == ("redriven: failed", "digest")
    assert redriven["details"][:3] == ["reason again", "tries 2", "of the dead letter digest"]
    assert shown.stdout.count("the feed changed hands") == 1
    [move] = [event for event in told if event["what"] == "the position was moved"]
    assert move["details"][0].endswith(": resent")
    assert key in shown.stdout.splitlines()[0]
    nobody = place.run("explain", "nobody")
    assert (
        nobody.returncode,
        nobody.stderr.count("error: no record or dead letter mentions the bet nobody"),
    ) == (1, 1)


def test_hours_that_are_over_have_a_file_each(written: Written, tmp_path: Path) -> None:
    directory = tmp_path / "bets"
    directory.mkdir()
    now = datetime.now(UTC)
    hours = [now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back) for back in (3, 2)]
    for number, hour in enumerate((hours[0], hours[0], hours[1])):
        written.bet(f"{number}", round(hour.timestamp() * 1000) + 1000 * number)
    written.bet("now", NOW)
    written.flush()
    export = "replay", "--from", "3h", "--output", str(directory), "--format", "json", "--partition", "hour"
    names = [f"{hour:%Y-%m-%dT%HZ}.json" for hour in hours]
    ran = written.place.run(*export)
    assert ran.returncode == 0, ran.stderr
    found = {path.name: [bet for bet, _ in exported(path)] for path in sorted(directory.iterdir())}
    assert {name: found.get(name) for name in names} == {names[0]: ["0", "1"], names[1]: ["2"]}
    assert "now" not in [*chain(*found.values())]
    assert all(name.endswith(".json") for name in found)
    (directory / names[0]).write_text("kept")
    (directory / names[1]).unlink()
    assert written.place.run(*export).returncode == 0
    assert (directory / names[0]).read_text() == "kept"
    assert [bet for bet, _ in exported(directory / names[1])] == ["2"]
    for arguments, reason in (
        (("--from", "3h", "--partition", "hour", "--format", "json"), "--partition needs"),
        ((*export[1:3], "--output", "none", *export[5:]), "there is no such directory"),
    ):
        refused = written.place.run("replay", *arguments)
        assert (refused.returncode, reason in refused.stderr) == (2, True), refused.stderr


def test_other_topics_are_written_whole(written: Written, tmp_path: Path) -> None:
    translated(written, "sport:11", "sport", {"en": "Football"})
    translated(written, "event:77", "event", {"en": "Final"}, competitorIds=[1, 2])
    written.produce(written.topics.translations.name, "sport:12", None)
    written.flush()
    shown = written.place.run("replay", "--topic", "translations")
    lines = {line["key"]: line["value"] for line in map(json.loads, shown.stdout.splitlines())}
    assert (lines["event:77"]["competitorIds"], lines["sport:12"]) == ([1, 2], None)
    for name in ("names.parquet", "names.avro"):
        output = tmp_path / name
        ran = written.place.run("replay", "--topic", "translations", "--output", str(output))
        assert (ran.returncode, ran.stderr) == (0, f"2 records in {output}\n")
    rows = {row["key"]: row for row in parquet.read_table(tmp_path / "names.parquet").to_pylist()}
    assert (rows["sport:11"]["translations"], rows["event:77"]["competitorIds"]) == (
        [("en", "Football")],
        [1, 2],
    )
    with (tmp_path / "names.avro").open("rb") as content:
        found: list[Any] = [*fastavro.reader(content)]
    assert sorted(each["kind"] for each in found) == ["event", "sport"]
    again = written.place.run("replay", "--topic", "translations", "--output", str(output))
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    wrong = written.place.run("replay", "--topic", "gaps", "--from", "1h")
    assert (wrong.returncode, "--topic gaps takes only" in wrong.stderr) == (2, True)


def test_batches_have_the_records_and_their_places(written: Written) -> None:
    for number in range(5):
        written.bet(f"{number}", NOW - 1000 + number, selections=[item(11, number)])
    written.produce(written.topics.bets.name, "gone", None)
    written.produce(written.topics.bets.name, "foreign", b"no Avro")
    written.flush()
    batches = [*read_batches(BETS, settings=written.settings, rows=2)]
    assert [batch.num_rows for batch in batches] == [2, 2, 1]
    rows = [row for batch in batches for row in batch.to_pylist()]
    bets = {bet.key: bet for bet in read(BETS, settings=written.settings)}
    assert {row["key"] for row in rows} == {*bets}
    for row in rows:
        bet = bets[row["key"]]
        assert (row["partition"], row["offset"], row["timestamp"]) == (
            bet.partition,
            bet.offset,
            bet.received_at,
        )
        assert row["selections"][0]["competitionId"] == bet.items[0]["competitionId"]
    stop = Event()
    following = read_batches(BETS, settings=written.settings, follow=True, stop=stop)
    assert sum(next(following).num_rows for _ in range(1)) >= 1
    stop.set()
    assert sum(batch.num_rows for batch in following) <= 4
    with pytest.raises(SettingsError, match="cannot be read as batches"):
        next(read_batches(DEAD_LETTERS, settings=written.settings))


def test_an_hour_is_not_written_while_some_of_it_is_hidden(written: Written, tmp_path: Path) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    inside = round(hour.timestamp() * 1000)
    topic, value = written.topics.bets.name, written.codecs["settled-bet"].encode(BARE_BET | {"betId": "b"})
    hanging = written.place.open_transaction("hangs")
    hanging.produce(topic, value, "hidden", partition=0, timestamp=inside)
    assert hanging.flush(30) == 0
    written.produce(topic, "b", value, inside + 1, partition=0)
    written.flush()
    directory = tmp_path / "bets"
    directory.mkdir()
    export = "replay", "--from", "2h", "--output", str(directory), "--format", "avro", "--partition", "hour"
    refused = written.place.run(*export)
    assert (refused.returncode, [*directory.iterdir()]) == (1, []), refused.stderr
    assert "an open transaction may hide bets received before" in refused.stderr
    hanging.abort_transaction(30)
    assert written.place.run(*export).returncode == 0
    assert [bet for bet, _ in exported(directory / f"{hour:%Y-%m-%dT%HZ}.avro")] == ["b"]
