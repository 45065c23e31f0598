"""The commands that read topics, on a real Kafka: missing, foreign and recreated topics and records."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import NewPartitions
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.reader import BETS, read
from bridge.records import topics
from bridge.records.gap import Cause, FeedGap
from bridge.registry import Registry
from tests.bets import BARE_BET
from tests.harness import Place, until
from tests.integration.publishing import prepared

READERS = (
    ("tail", "--until-end"),
    ("replay",),
    ("gaps",),
    ("checkpoint", "show"),
    ("limits",),
)


def test_all_readers_report_a_mistyped_prefix(place: Place) -> None:
    with ThreadPoolExecutor(2) as at_once:
        for command, ran in zip(READERS, at_once.map(lambda c: place.run(*c), READERS), strict=True):
            topic = {"gaps": "gaps", "checkpoint": "checkpoints", "limits": "checkpoints"}.get(
                command[0], "bets"
            )
            assert (ran.returncode, ran.stdout, ran.stderr) == (
                6,
                "",
                f"error: there is no topic {place.prefix}.{topic}. Run `bridge topics apply`, or check "
                "topics.prefix.\n",
            )


def test_a_feed_that_nobody_knows_is_named_with_those_that_are_known(place: Place) -> None:
    prepared(place)
    nobody = place.run("gaps", "--feed", "one")
    assert nobody.returncode == 2
    assert nobody.stderr.endswith(f"under {place.prefix}; no feed has a checkpoint yet\n")
    for feed in ("one", "two"):
        place.write("checkpoints", b"a checkpoint", feed)
    well, mistyped = (place.run("gaps", "--feed", feed) for feed in ("two", "tow"))
    assert (well.returncode, well.stdout) == (0, "no gap has been declared\n")
    assert (mistyped.returncode, mistyped.stdout) == (2, "")
    assert mistyped.stderr == (
        "error: --feed tow: no feed of that name has a checkpoint or a gap under "
        f"{place.prefix}; known: one, two\n"
    )


def place_of_bets(place: Place) -> tuple[Settings, bytes]:
    """Settings of the place, after its topics were created, and a bet as a bridge would write it."""
    settings = prepared(place)
    with Registry(settings.registry) as registry:
        schema_id = registry.register(place.prefix)["settled-bet"]
    return settings, Codec(load("settled-bet"), schema_id).encode(BARE_BET)


class Tail:
    """Follows the bets of a place from now on."""

    def __init__(self, settings: Settings) -> None:
        self.seen: list[str] = []
        self.failed: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(settings,), daemon=True)
        self._thread.start()

    def _follow(self, settings: Settings) -> None:
        try:
            for bet in read(BETS, from_="end", follow=True, stop=self._over, settings=settings):
                self.seen.append(bet.key)
        except BaseException as error:  # noqa: BLE001  # the test raises it
            self.failed = error

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        assert self.failed is None, self.failed


@pytest.mark.parametrize("longer", [True, False], ids=["longer", "shorter"])
async def test_a_recreated_topic_is_followed_from_its_beginning(place: Place, longer: bool) -> None:
    settings, value = place_of_bets(place)
    with capture_logs() as lines:

        def reported() -> list[str]:
            return [line["topic"] for line in lines if "topic recreated" in line["event"]]

        tail = Tail(settings)
        for number in itertools.count():
            place.write("bets", value, f"old-{number}", 0)
            if len(tail.seen) > 9:
                break
            await asyncio.sleep(0.1)
        await until(lambda: tail.seen[-1] == f"old-{number}", "all old ones are shown")
        name = place.delete_topic("bets")
        topics.ensure(place.admin(), settings, topics.Topics.of_feed)
        new = [f"new-{n}" for n in range(number + 12 if longer else 5)]
        for key in new:
            place.write("bets", value, key, 0)
        await until(lambda: set(new) <= {*tail.seen}, "all new ones are shown", so_far=lambda: str(tail.seen))
        # the client may have found the new topic's beginning before the reader looks
        await until(lambda: reported() == [name], "the log reports it", so_far=lambda: str(lines))
        tail.end()
    assert reported() == [name]


async def test_partitions_that_are_added_are_followed_from_their_beginning(place: Place) -> None:
    settings, value = place_of_bets(place)
    name = topics.declare(settings).bets.name
    tail = Tail(settings)
    for number in itertools.count():
        place.write("bets", value, f"old-{number}", 0)
        if tail.seen:
            break
        await asyncio.sleep(0.1)
    admin = place.admin()
    admin.create_partitions([NewPartitions(name, 8)])[name].result(30)
    await until(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 8, "all of them")
    place.write("bets", value, "new-6", 6)
    place.write("bets", value, "new-7", 7)
    await until(lambda: {"new-6", "new-7"} <= {*tail.seen}, "both", so_far=lambda: str(tail.seen))
    tail.end()
    assert len(tail.seen) == len({*tail.seen})


def foreign(value: bytes, other: bytes) -> list[tuple[bytes, bytes]]:
    """Keys and values of records that no bridge writes."""
    return [
        (b"b", b"{" * 900_000),
        (b"b", b""),
        (b"\xff", value),
        (b"b", value[:-1]),
        (b"b", other),
        (b"b", b"\0\xff\xff\xff\xff" + value[5:]),
        (b"b", b"\0\x7f\xff\xff\xff" + b"no record"),
    ]


def test_foreign_records_are_skipped_and_logged(place: Place) -> None:
    settings, value = place_of_bets(place)
    declared = topics.declare(settings)
    with Registry(settings.registry) as registry:
        gap_id = registry.register(place.prefix)["feed-gap"]
    gap = Codec(load("feed-gap"), gap_id).encode(FeedGap("f", 1.0, 2.0, Cause.TOO_OLD, 3.0).to_avro())
    for topic, ours, other in (("bets", value, gap), ("gaps", gap, value)):
        for key, content in [(b"one", ours), *foreign(ours, other), (b"two", ours)]:
            place.write(topic, content, key, 0)
    for command, topic, keys in (
        (("tail", "--from-beginning", "--until-end", "--json"), declared.bets.name, ["one", "two"]),
        (("replay", "--json"), declared.bets.name, ["one", "two"]),
        (("gaps", "--json"), declared.gaps.name, None),
    ):
        ran = place.run(*command)
        assert ran.returncode == 0, ran.stderr
        if keys:
            assert [json.loads(line)["key"] for line in ran.stdout.splitlines()] == keys
            count = 7
        else:
            assert len(json.loads(ran.stdout)) == 3  # the key of a gap says nothing
            count = 6
        [line] = ran.stderr.splitlines()
        logged = json.loads(line)
        assert (logged["level"], logged["count"]) == ("warning", count)
        assert logged["first"].startswith(
            f"{topic} partition 0 offset 1 was not written by a bridge: not in the"
        )
        assert len(line) < 500


def test_a_foreign_checkpoint_is_reported_with_its_place(place: Place) -> None:
    settings, _ = place_of_bets(place)
    name = topics.declare(settings).checkpoints.name
    place.write("checkpoints", b"{}", settings.feed.name)
    for command in (("checkpoint", "show"), ("limits",), ("run",)):
        ran = place.run(*command, FEED__BASE_URL="http://127.0.0.1:1")
        assert ran.returncode == 6, ran.stderr
        assert f"{name} partition 0 offset 0 was not written by a bridge: not in the registry's" in ran.stderr
