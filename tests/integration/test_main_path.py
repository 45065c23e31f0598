"""The bridge as a process, from a provider on a socket to a real Kafka."""

from __future__ import annotations

import asyncio
import json

from confluent_kafka.admin import ConfigEntry, ConfigResource, NewTopic, ResourceType
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from bridge.avro.schemas import TOPICS
from bridge_sandbox.provider.faults import Drop
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Place, assert_exact, until
from tests.malformed import MALFORMED


def provider(**settings: object) -> Simulator:
    return Simulator(SimulatorSettings.model_validate({"port": 0, "rate": 100, **settings}))


async def test_replay_and_live_arrive_whole(place: Place) -> None:
    """Bets from before and during the run are in the topic once, equal field by field.

    confluent-kafka's own deserializer, with the registry, reads them and the checkpoints.
    """
    async with provider(history_seconds=10, ping_seconds=0.5) as feed:
        bridge = await place.live(feed)
        await asyncio.sleep(2)
        tally = await place.settled(feed, bridge)
        assert_exact(tally)
        assert tally.sent > 1_000
        assert await bridge.end() == 0
        assert not feed.breaches
    counters = place.balanced_counters()
    assert counters["published"] == tally.sent
    assert counters["pings"] > 0
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
    async with provider(history_seconds=50, rate=40) as feed:
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


async def test_odd_messages_come_out_as_the_interface_allows_them(place: Place) -> None:
    async with provider(history_seconds=10, odd=0.1) as feed:
        bridge = await place.live(feed, FEED__PING_REPLY="{pingId}")
        tally = await place.settled(feed, bridge)
        truth = list(feed.published())
        nameless = [m.body for m in truth if m.bet_id is None and m.version is not None]
        await until(lambda: len(place.read("deadletters")) >= len(nameless), "all dead letters")
        assert await bridge.end() == 0
        pings = {json.loads(message.body).get("pingId") for message in truth} - {None}
        assert pings <= set(feed.replies)
    assert_exact(tally)
    assert sorted(letter.value() or b"" for letter in place.read("deadletters")) == sorted(nameless)
    counters = place.checkpoint()["counters"]
    assert (counters["published"], counters["deadLettered"]) == (tally.sent, len(nameless))
    assert counters["empty"] == sum(message.version is None for message in truth)
    assert min(counters["empty"], len(nameless), len(pings)) > 15


async def test_large_and_oversized_messages(place: Place) -> None:
    async with provider(rate=20, compression="none") as feed:
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


async def test_wrong_credentials_end_with_3(place: Place) -> None:
    async with provider(auth="bearer", auth_value="right") as feed:
        settings = {"FEED__AUTH": "bearer", "FEED__AUTH_VALUE": "wr0ng-secret"}
        bridge = place.bridge(FEED__BASE_URL=feed.url, **settings)
        assert await bridge.wait() == 3
        assert "BRIDGE_FEED__AUTH" in bridge.text()
        assert "wr0ng-secret" not in bridge.text()


async def test_connections_are_spread_as_the_limits_ask(place: Place) -> None:
    async with provider(limits_scale=600, rate=20) as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url, LIMITS__SCALE="600", FEED__START="2m")
        for number in range(1, 10):
            await until(lambda n=number: len(feed.connections) >= n, f"connection {number}")  # type: ignore[misc]
            feed.inflict(Drop(abort=number % 2 == 0))
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
        assert not feed.breaches


async def test_who_reads_is_not_held_up_by_what_is_written(place: Place) -> None:
    async with provider(ping_seconds=0.05, rate=50) as feed:
        bridge = await place.live(feed)
        for command in (
            ["checkpoint", "show"],
            ["limits"],
            ["doctor"],
            ["tail", "--from-beginning", "--until-end"],
        ):
            shown = await asyncio.to_thread(place.run, *command, FEED__BASE_URL=feed.url)
            assert shown.returncode == 0, f"{command}: {shown.stdout} {shown.stderr}"
        second = place.bridge(FEED__BASE_URL=feed.url, FEED__NAME="another")
        assert await second.wait() == 6
        assert await bridge.end() == 0


async def test_run_refuses_bets_that_are_not_compacted(place: Place) -> None:
    name = f"{place.prefix}.bets"
    admin = place.admin()
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(20)
    refused = place.run("run", FEED__BASE_URL="http://127.0.0.1:1")
    assert refused.returncode == 6
    assert "cleanup.policy is delete, must be compact" in refused.stderr
    assert "bridge topics apply" in refused.stderr
    planned = place.run("topics", "plan", "--json")
    assert planned.returncode == 1
    assert {change["action"] for change in json.loads(planned.stdout)} == {
        "create",
        "alter",
        "leave as it is",
    }
    assert place.run("topics", "apply").returncode == 0
    resource = ConfigResource(ResourceType.TOPIC, name)

    def compacted() -> bool:
        config: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(20)
        lag = int(config["min.compaction.lag.ms"].value or 0)
        return config["cleanup.policy"].value == "compact" and lag == 7 * 86_400_000

    await until(compacted, "the broker knows what its controller has committed")


def test_wrong_settings_are_named(place: Place) -> None:
    refused = place.run("run", FEED__BASE_URI="http://127.0.0.1:1")
    assert refused.returncode == 2
    assert "did you mean feed.base_url" in refused.stderr


async def test_the_commands_that_show_print_json(place: Place) -> None:
    assert place.run("checkpoint", "show").returncode != 0
    registered = place.run("schemas", "register", "--json")
    assert set(json.loads(registered.stdout)) == {
        f"{place.prefix}.{topic}-value" for topic in TOPICS.values()
    }
    async with provider(history_seconds=2) as feed:
        bridge = await place.live(feed)
        tally = await place.settled(feed, bridge)
        await bridge.end()
    tailed = place.run("tail", "--from-beginning", "--until-end", "--json")
    lines = [json.loads(line) for line in tailed.stdout.splitlines()]
    assert len(lines) == tally.sent
    assert all(line["key"] == line["value"]["betId"] for line in lines)
