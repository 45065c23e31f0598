"""The bridge as a process, from a provider on a socket to a real Kafka."""

from __future__ import annotations

import asyncio
import json

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.harness import Place, assert_exact, simulate, until
from tests.malformed import MALFORMED


async def test_replay_and_live_arrive_whole(place: Place) -> None:
    """Bets from before and during the run are in the topic once, equal field by field, pings are answered.

    confluent-kafka's own deserializer, with the registry, reads them and the checkpoints.
    """
    async with simulate(rate=100, history_seconds=10, ping_seconds=0.5, odd=0.1) as feed:
        bridge = await place.live(feed, FEED__PING_REPLY="{pingId}")
        await asyncio.sleep(2)
        tally = await place.settled(feed, bridge)
        truth = list(feed.published())
        nameless = [m.body for m in truth if m.bet_id is None and m.version is not None]
        await until(lambda: len(place.read("deadletters")) >= len(nameless), "all dead letters")
        assert await bridge.end() == 0
        assert not feed.breaches
        pings = {json.loads(message.body).get("pingId") for message in truth} - {None}
        assert pings <= set(feed.replies)
    assert_exact(tally)
    assert tally.sent > 1_000
    assert sorted(letter.value() or b"" for letter in place.read("deadletters")) == sorted(nameless)
    counters = place.balanced_counters()
    assert (counters["published"], counters["deadLettered"]) == (tally.sent, len(nameless))
    assert counters["empty"] == sum(message.version is None for message in truth)
    assert min(counters["empty"], len(nameless), len(pings)) > 15
    with SchemaRegistryClient({"url": place.cluster.registry_url}) as registry:
        deserialize = AvroDeserializer(registry)
        for topic in ("bets", "checkpoints"):
            context = SerializationContext(f"{place.prefix}.{topic}", MessageField.VALUE)
            records = [deserialize(message.value(), context) for message in place.read(topic)]
            assert records
            assert all(record is not None for record in records)
            if topic == "bets":
                assert len(records) == tally.sent


async def test_malformed_messages_are_dead_lettered(place: Place) -> None:
    kinds = list(MALFORMED)
    spoilt: dict[bytes, str] = {}
    async with simulate(history_seconds=50, rate=40) as feed:
        samples = [json.loads(message.body) for message, _ in zip(feed.published(), range(50), strict=False)]
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        number = 0
        while len(spoilt) < 200:
            body, reason = MALFORMED[kinds[number % len(kinds)]](samples[number // len(kinds)], 0)
            if body not in spoilt:
                spoilt[body] = reason
                feed.inject(body)
            number += 1
            if number % 20 == 0:
                await asyncio.sleep(0.02)
            assert number < 2_000, "the kinds do not give 200 different messages"
        tally = await place.settled(feed, bridge)
        await until(lambda: len(place.read("deadletters")) >= 200, "all dead letters")
        assert await bridge.end() == 0
    assert_exact(tally)
    assert tally.sent >= 2_000
    letters = place.read("deadletters")
    assert sorted(letter.value() or b"" for letter in letters) == sorted(spoilt)
    assert len(set(kinds)) >= 20
    for letter in letters:
        header = dict(letter.headers() or [])["reason"]
        assert isinstance(header, bytes)
        assert spoilt[letter.value() or b""] in header.decode()
    assert place.checkpoint()["counters"]["deadLettered"] == 200


async def test_large_and_oversized_messages(place: Place) -> None:
    async with simulate(rate=20, compression="none") as feed:
        [sample] = [json.loads(message.body) for message, _ in zip(feed.published(), range(1), strict=False)]
        sample["data"]["betId"] = "a-large-one"
        sample["data"]["selections"] = [sample["data"]["selections"][0]] * 6_000
        large = json.dumps(sample).encode()
        assert 2_000_000 < len(large) < 6_000_000
        sample["data"]["betId"] = "x" * 6_000_000
        bridge = await place.live(feed, FEED__MAX_MESSAGE_BYTES="6000000")
        feed.inject(b"{}")  # in front: it is received when the large ones are
        feed.inject(large)
        feed.inject(json.dumps(sample).encode())
        await until(lambda: len(place.read("deadletters")) == 1, "the dead letter")
        await until(lambda: b"a-large-one" in [m.key() for m in place.read("bets")], "the large bet")
        await bridge.end()
        assert [attempt.status for attempt in feed.connections] == [101]
    [letter] = place.read("deadletters")
    facts = dict(letter.headers() or [])
    assert facts["kind"] == b"oversized"
    assert int(facts["size"] or 0) == len(json.dumps(sample))
    assert letter.value() == json.dumps(sample).encode()[: 64 * 1024]
    assert place.checkpoint()["counters"]["empty"] == 1
