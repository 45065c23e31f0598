"""Two feeds on one prefix: the second is refused before it connects. One that is over can be retired."""

from __future__ import annotations

import asyncio
import json
import time
from email.utils import formatdate

import pytest
from confluent_kafka import Producer

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge_sandbox.provider.server import Simulator
from tests.harness import Place, assert_exact, simulate, until
from tests.integration.publishing import prepared


def feed() -> Simulator:
    """Return a provider; all of them have the same betIds, as two brands of one sportsbook may."""
    return simulate(rate=10, history_seconds=60)


class Silent:
    """A provider that accepts connections and never answers the handshake."""

    async def __aenter__(self) -> Silent:
        self.attempts = 0
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"upgrade: websocket" in head.lower():
            self.attempts += 1
            await reader.read()  # until the bridge gives up
        else:  # it asks for the time
            date = formatdate(usegmt=True).encode()
            writer.write(b"HTTP/1.1 404 Not Found\r\nDate: %b\r\nContent-Length: 0\r\n\r\n" % date)
        writer.close()


def settings(name: str, provider: Simulator | Silent) -> dict[str, str]:
    return {"FEED__NAME": name, "FEED__BASE_URL": provider.url}


async def plant(place: Place, *feeds: tuple[str, int]) -> None:
    """Write a checkpoint of each of these feeds, which has received so many messages."""
    await asyncio.to_thread(prepared, place)
    registered = await asyncio.to_thread(lambda: place.run("schemas", "register", "--json"))
    topic = f"{place.prefix}.checkpoints"
    codec = Codec(load("feed-checkpoint"), json.loads(registered.stdout)[f"{topic}-value"])
    producer = Producer({"bootstrap.servers": place.cluster.bootstrap_servers, "log_level": 0})
    now = time.time()
    for name, count in feeds:
        counters = Counters(received=count, pings=count)
        checkpoint = Checkpoint(name, int(now) - 30, State.LIVE, (), counters, now, "me")
        producer.produce(topic, codec.encode(checkpoint.to_avro()), name.encode())
        assert producer.flush(20) == 0


async def test_a_second_feed_is_refused_before_it_connects(place: Place) -> None:
    async with feed() as one, feed() as two:
        first = place.bridge(**settings("one", one))
        await first.reaches("Live")
        second = place.bridge(**settings("two", two))
        await until(lambda: second.process.poll() is not None or "Live" in second.states(), "refused")
        if second.process.poll() is None:
            await asyncio.sleep(2)
            shown = place.run("checkpoint", "show", "--json", **settings("two", two))
            raise AssertionError(f"it is live: {json.loads(shown.stdout)['counters']}")
        assert (await second.wait(), two.connections) == (6, [])
        last = second.text().splitlines()[-1]
        for words in ("the feed one", f"{place.prefix}.", "BRIDGE_TOPICS__PREFIX", "checkpoint retire one"):
            assert words in second.text(), last
        redrive = await asyncio.to_thread(lambda: place.run("deadletters", "redrive", **settings("two", two)))
        assert redrive.returncode == 6, redrive.stderr
        assert "the feed one" in redrive.stderr
        doctor = await asyncio.to_thread(lambda: place.run("doctor", "--json", **settings("two", two)))
        [finding] = [found for found in json.loads(doctor.stdout) if found["check"] == "feeds"]
        assert finding["outcome"] == "fail"
        assert "the feed one" in finding["message"]
        assert_exact(await place.settled(one, first))


async def test_of_two_that_start_together_one_goes_on(place: Place) -> None:
    async with feed() as one, feed() as two:
        await asyncio.to_thread(prepared, place)
        bridges = {
            name: place.bridge(**settings(name, provider)) for name, provider in (("one", one), ("two", two))
        }
        await until(lambda: any(b.process.poll() is not None for b in bridges.values()), "one refused")
        [left] = [name for name, bridge in bridges.items() if bridge.process.poll() is None]
        [gone] = bridges.keys() - {left}
        providers = {"one": one, "two": two}
        assert await bridges[gone].wait() == 6
        assert providers[gone].connections == []
        await bridges[left].reaches("Live")
        # Nor does the one that lost come later, nor is the other held up by what it has written.
        again = place.bridge(**settings(gone, providers[gone]))
        assert await again.wait() == 6
        assert await bridges[left].end() == 0
        bridge = place.bridge(**settings(left, providers[left]))
        await bridge.reaches("Live")
        assert_exact(await place.settled(providers[left], bridge))


async def test_of_two_that_have_begun_together_the_first_one_goes_on(place: Place) -> None:
    await plant(place, ("one", 0), ("two", 0))
    async with Silent() as one, Silent() as two:
        lost = place.bridge(**settings("two", two))
        await until(lambda: lost.process.poll() is not None or two.attempts > 0, "refused")
        assert (lost.process.poll(), two.attempts) == (6, 0)
        left = place.bridge(**settings("one", one))
        await until(lambda: left.process.poll() is not None or one.attempts > 0, "a handshake")
        assert (left.process.poll(), one.attempts) == (None, 1)
        lost = place.bridge(**settings("two", two))
        assert (await lost.wait(), two.attempts) == (6, 0)
        await left.end()


@pytest.mark.long
async def test_a_feed_with_a_new_name_goes_on_where_the_old_one_ended(place: Place) -> None:
    async with feed() as provider:
        old, new = settings("old", provider), settings("new", provider)
        bridge = place.bridge(**old)
        await bridge.reaches("Live")
        retire = ("checkpoint", "retire", "old", "--yes", "--json")
        busy = await asyncio.to_thread(lambda: place.run(*retire, **new))
        assert busy.returncode == 1
        assert "the feed old is not free" in busy.stderr
        assert await bridge.end() == 0
        refused = place.bridge(**new)
        assert await refused.wait() == 6
        ran = await asyncio.to_thread(lambda: place.run(*retire, **new))
        assert ran.returncode == 0, ran.stderr
        before, after = (
            json.loads(place.run("checkpoint", "show", "--json", FEED__NAME=name).stdout)
            for name in ("old", "new")
        )
        assert before["reason"].startswith("retired by ")
        assert [after[n] for n in ("revision", "connections", "newestSettlement")] == [
            before[n] for n in ("revision", "connections", "newestSettlement")
        ]
        assert set(after["counters"].values()) == {0}
        bridge = place.bridge(**new)
        await bridge.reaches("Live")
        returned = place.bridge(**old)
        assert await returned.wait() == 6
        assert_exact(await place.settled(provider, bridge))
        assert await bridge.end() == 0
        audited = await asyncio.to_thread(lambda: place.run("audit"))
        assert audited.returncode == 0, audited.stdout
        twice = await asyncio.to_thread(lambda: place.run(*retire, **new))
        assert twice.returncode == 1
        assert "the feed old has already been retired" in twice.stderr
        unknown = await asyncio.to_thread(
            lambda: place.run("checkpoint", "retire", "typo", "--yes", FEED__NAME="new")
        )
        assert unknown.returncode == 1
        assert "no checkpoint of a feed typo" in unknown.stderr
        last = json.loads(place.run("checkpoint", "show", "--json", FEED__NAME="new").stdout)
        back = await asyncio.to_thread(
            lambda: place.run("checkpoint", "retire", "new", "--yes", "--json", **old)
        )
        assert back.returncode == 0, back.stderr
        goes_on = json.loads(place.run("checkpoint", "show", "--json", FEED__NAME="old").stdout)
        assert [goes_on[n] for n in ("revision", "connections")] == [
            last[n] for n in ("revision", "connections")
        ]
        assert goes_on["counters"] == before["counters"]
        audited = await asyncio.to_thread(lambda: place.run("audit"))
        assert audited.returncode == 0, audited.stdout
        assert not provider.breaches


async def test_a_feed_that_was_renamed_before_goes_on(place: Place) -> None:
    await plant(place, ("old", 5), ("new", 5))
    async with feed() as provider:
        bridge = place.bridge(**settings("new", provider))
        await bridge.reaches("Live")
        old = place.bridge(**settings("old", provider))
        assert await old.wait() == 6
        # Changed back, only an operator knows that the two were one feed all the time.
        assert await bridge.end() == 0
        retire = ("checkpoint", "retire", "new", "--yes", "--json")
        asked = await asyncio.to_thread(lambda: place.run(*retire, **settings("old", provider)))
        assert "give --position new" in asked.stderr
        told = await asyncio.to_thread(
            lambda: place.run(*retire, "--position", "new", **settings("old", provider))
        )
        assert told.returncode == 0, told.stderr
        assert "old goes on from the position of new" in told.stderr
        shown = await asyncio.to_thread(lambda: place.run("checkpoint", "show", "--json", FEED__NAME="new"))
        successor, last = json.loads(told.stdout)["successor"], json.loads(shown.stdout)
        assert (successor["feed"], successor["revision"]) == ("old", last["revision"])
        assert {attempt["at"] for attempt in last["connections"]} <= {
            attempt["at"] for attempt in successor["connections"]
        }
