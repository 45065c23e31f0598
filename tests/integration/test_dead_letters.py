"""Dead letters on a real Kafka: listed, shown, exported and redriven, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
from typing import Any

import pytest

from bridge.records import topics
from bridge.registry import Registry
from bridge.stored.restore import PublishedReader
from tests.harness import Place
from tests.integration.publishing import settings_of
from tests.integration.redriven import Redriven, headers, kills, simulator

FIELDS = {"data.betSettlement", "data.selections[].settlement.settlementResult"}


def command(place: Place, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `bridge deadletters`."""
    return place.run("deadletters", *arguments, **settings)


def shown(place: Place, *arguments: str, **settings: str) -> Any:
    """What a command prints as JSON."""
    ran = command(place, *arguments, "--json", **settings)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


async def test_a_new_version_brings_in_what_an_older_one_could_not_read(place: Place) -> None:
    async with simulator(history_seconds=1) as feed:
        bets = Redriven(place, feed)
        await bets.fill(30)
        letters, before = bets.letters(), place.checkpoint()
        listed = await asyncio.to_thread(shown, place, "list")
        assert (listed["open"], listed["redriven"]) == (len(letters), 0)
        assert sum(kind["count"] for kind in listed["kinds"]) == len(letters)
        assert {kind["field"] for kind in listed["kinds"]} <= FIELDS

        ends = [len(place.read(topic)) for topic in ("bets", "deadletters", "checkpoints")]
        forecast = await asyncio.to_thread(shown, place, "redrive", "--dry-run")
        assert (forecast["letters"], forecast["transactions"]) == (len(letters), 0)
        assert [len(place.read(topic)) for topic in ("bets", "deadletters", "checkpoints")] == ends

        report = await bets.finished()
        assert report["outcomes"] == forecast["outcomes"] == {**report["outcomes"], **bets.outcomes()}
        assert report["outcomes"]["failed"] == 0 < report["transactions"]
        after = place.checkpoint()
        for name in ("revision", "state", "reason", "since", "connections", "newestSettlement"):
            assert after[name] == before[name], name
        assert (await bets.finished())["letters"] == 0
        listed = await asyncio.to_thread(shown, place, "list")
        assert (listed["open"], listed["redriven"], listed["kinds"]) == (0, len(letters), [])
        received = {letter.key(): headers(letter)["received"] for letter in letters}
        assert {headers(bet)["received"] for bet in place.read("bets") if bet.headers()} <= {
            *received.values()
        }
        restored = deduplicator(place)
        assert [key for key, at in received.items() if abs(restored(key) - float(at)) > 0.001] == []
        outcomes = await bets.check()
        assert outcomes["published"] > 0
        assert outcomes.keys() <= {"published", "stale"}


def deduplicator(place: Place) -> Any:
    """The time of receipt of a letter, as a new owner knows it."""
    settings = settings_of(place)
    with Registry(settings.registry) as registry:
        reader = PublishedReader(settings, topics.declare(settings), registry.codec("settled-bet"))
        return reader.deduplicator(0.0, lambda: False, lambda _: None).dead_letter_time


async def test_a_redrive_refuses_while_a_bridge_owns_the_feed(place: Place) -> None:
    async with simulator(history_seconds=1) as feed:
        bets = Redriven(place, feed)
        await bets.fill(5)
        bridge = bets.bridge()
        await bridge.reaches("Live")
        refused = await asyncio.to_thread(command, place, "redrive")
        assert refused.returncode == 1
        owner = next(line["owner"] for line in bridge.lines() if line["event"] == "starting")
        assert f"{owner} from 127.0.0.1 owns it" in refused.stderr.splitlines()[-1]
        assert bets.letters("redrive") == []
        forecast = await asyncio.to_thread(shown, place, "redrive", "--dry-run")
        assert forecast["letters"] == len(bets.letters())
        assert await bridge.end() == 0


@pytest.mark.long
async def test_a_redrive_that_is_killed_goes_on(place: Place) -> None:
    """Three kills, with a bridge between them: each bet once, in order of its versions.

    One that is stopped by SIGTERM leaves its place at once.
    """
    async with simulator(history_seconds=2) as feed:
        bets = Redriven(place, feed)
        await bets.fill(100)
        for number, kill in enumerate(kills(1)[:3]):
            await bets.killed(*kill)
            if number == 1:
                await bets.run_a_bridge()
        left = await asyncio.to_thread(shown, place, "list")
        stopped = await bets.redrive("tests.killed", "bridge.repair.ownership:OwnedFeed.commit", "stop", "1")
        assert stopped.process.returncode == 130, stopped.text()
        at_once = await asyncio.to_thread(shown, place, "redrive", **bets.settings())
        assert 0 < at_once["letters"] < left["open"]
        await bets.check()


def letter(place: Place, body: bytes, kind: str = "error", reason: str = "data.x: wrong", **more: str) -> str:
    """Write a dead letter, as a bridge would; returns its key."""
    key = more.pop("key", hashlib.sha256(body).hexdigest())
    given = {
        "kind": kind,
        "reason": reason,
        "feed": "settlement-v4",
        "revision": "1790000000",
        "received": "1790000000.5",
        "size": str(len(body)),
    }
    place.write("deadletters", body, key, headers=list({**given, **more}.items()))
    return key


async def test_what_cannot_be_redriven_stays(place: Place) -> None:
    async with simulator(history_seconds=1) as feed:
        bets = Redriven(place, feed)
        await bets.run_a_bridge()
    broken = letter(place, b'{"data":{"betId":"b"}}')
    bad = letter(place, b"\xff", reason="Invalid JSON: expected value", received="1790000100")
    letter(
        place, b"the head", "oversized", "9 bytes are more than feed.max_message_bytes = 8", key="ab12" * 16
    )
    letter(place, b"a sample", "sample")
    letter(place, b"of another feed", feed="other")
    letter(place, b"without headers", received="never")
    letter(place, b"outside of the directory", key="../elsewhere")

    def redriven(*arguments: str) -> Any:
        return shown(place, "redrive", *arguments)["outcomes"]

    assert redriven("--field", "data.x") == {**dict.fromkeys(redriven("--bet", "none"), 0), "failed": 1}
    assert redriven()["failed"] == 2
    listed = command(place, "list")
    assert listed.stdout.splitlines()[-1] == "3 open, 0 redriven"
    assert "1 oversized" in listed.stdout
    assert listed.stdout.count("1 failed again") == 2
    assert json.loads(listed.stderr)["count"] == 2
    found = shown(place, "show", broken[:8])
    assert (found["key"], found["tries"], found["outcome"]) == (broken, 2, "failed")
    assert (found["value"], found["headers"]["reason"]) == ('{"data":{"betId":"b"}}', "data.x: wrong")
    assert found["lastReason"].startswith("data.betSettlement: Field required")
    assert "tries: 1" in command(place, "show", bad).stdout
    exported = [json.loads(line) for line in command(place, "export", "--bet", "b").stdout.splitlines()]
    assert [one["key"] for one in exported] == [broken]
    directory = place.directory / "letters"
    assert command(place, "export", "--dir", str(directory), "--reason", "json").returncode == 0
    assert sorted(file.name for file in directory.iterdir()) == [f"{bad}.json", f"{bad}.message"]
    assert (directory / f"{bad}.message").read_bytes() == b"\xff"
    since = command(place, "export", "--from", "2026-09-21T14:14:00Z")
    assert [json.loads(line)["base64"] for line in since.stdout.splitlines()] == ["/w=="]
    missing = command(place, "show", "ffff")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "no dead letter has a key that begins with 'ffff'" in missing.stderr
