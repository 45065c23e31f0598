"""The snapshot jobs at a place, against the simulated provider; and what a reader of the topics finds.

What is read is decoded by the schemas that the registry has, and compared with what the provider says: both
by other code than that of the jobs.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.cli.snapshot_tables import plan_as_json
from bridge.config import ApiSettings, KafkaSettings, RegistrySettings, Settings, TopicsSettings
from bridge.config.api import LISTED
from bridge.errors import BridgeError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.messages.model import read_feed_message
from bridge.records import topics
from bridge.registry import Registry
from bridge.snapshots import job
from bridge.snapshots.model import Job
from bridge.snapshots.report import Report
from bridge.snapshots.wanted import Task
from bridge_sandbox.demo.verify import WriterSchema
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes
from tests.harness import Bridge, Place, until

LANGUAGES = ("en", "sv", "de")
SMALL = Sizes(sports=3, regions=4, leagues=6, competitors=40, events=15)
FAST = {"session_timeout_ms": 1500, "heartbeat_interval_ms": 300, "fetch_wait_max_ms": 50}
"""A killed run keeps its place for a session; a reader learns of the end of a partition after a fetch."""

Datum = dict[str, Any]


@asynccontextmanager
async def simulated(
    sizes: Sizes = SMALL,
    *,
    bets: int = 40,
    seed: int = 7,
    rate: float = 1000.0,
    odd: float = 0.0,
    **policy: Any,
) -> AsyncIterator[Simulator]:
    """A provider with a history of this many messages, all but the `odd` ones bets; it publishes no more."""
    chosen = {"languages": LANGUAGES, "rate": rate, "burst": max(10, int(rate / 20)), **policy}
    settings = SimulatorSettings(
        port=0, seed=seed, rate=10, history_seconds=bets / 10, odd=odd, sizes=sizes, api=RestPolicy(**chosen)
    )
    async with Simulator(settings) as provider:
        provider.stop_publishing()
        yield provider


class Jobs:
    """The two jobs, with a token that must not appear in their output."""

    def __init__(self, place: Place, provider: Simulator, **api: Any) -> None:
        self.place, self.provider = place, provider
        self.token = provider.rest.tokens.mint(provider.clock())
        self.token_file = place.directory / "provider.token"
        self.token_file.write_text(self.token)
        self._api: dict[str, Any] = {
            "base_url": provider.url,
            "token_file": str(self.token_file),
            "requests_per_second": 1000,
            "languages": LANGUAGES,
            "proxy": "none",
            **api,
        }

    def environment(self, **settings: str) -> dict[str, str]:
        """Settings of a process, as variables without `BRIDGE_`."""
        api = {f"API__{name.upper()}": _as_text(value) for name, value in self._api.items()}
        return {**api, **{f"KAFKA__{name.upper()}": str(value) for name, value in FAST.items()}, **settings}

    def settings(self) -> Settings:
        """Settings of a run in this process."""
        return settings_at(self.place, FAST, api=ApiSettings(**self._api))

    async def command(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a process, to its end."""
        done = await asyncio.to_thread(self.place.run, *arguments, **self.environment(**settings))
        self.must_not_tell(done.stdout + done.stderr)
        return done

    async def published(self, *arguments: str, **settings: str) -> Datum:
        """The JSON report of a command that must succeed."""
        done = await self.command(*arguments, "--json", **settings)
        assert done.returncode == 0, done.stderr
        await self._until_visible(arguments[0])
        found: Datum = json.loads(done.stdout)
        return found

    def start(self, *arguments: str, **settings: str) -> Bridge:
        """Start a command as a process."""
        return self.place.bridge(*arguments, **self.environment(**settings))

    def task(self, name: Job = "translations", *, full: bool = False, **narrowed: Any) -> Task:
        """The task of the command line; restricted by `kinds`, `languages` and `events`."""
        if name == "currencies":
            return Task(name, full=full)
        return Task.translations(self.settings().api, full=full, **narrowed)

    async def run(self, name: Job = "translations", *, full: bool = False, **narrowed: Any) -> Report:
        """One run in this process."""
        task = self.task(name, full=full, **narrowed)
        steps: dict[str, tuple[int, int]] = {}

        def progress(what: str, done: int, total: int) -> None:
            steps[what] = done, total

        report = await asyncio.to_thread(job.run, self.settings(), task, progress, threading.Event())
        assert {what: steps[what] for what in steps if steps[what][0] != steps[what][1]} == {}
        self.must_not_tell(repr(report) + json.dumps(report.as_json()))
        await self._until_visible(name)
        return report

    async def _until_visible(self, name: str) -> None:
        await until(lambda: self._visible(name) and self._visible("snapshots"), "all of it to be visible")

    def _visible(self, topic: str) -> bool:
        """Whether the markers of all transactions are written: a commit does not wait for them."""
        client, topic = clients.admin(self.settings().kafka), f"{self.place.prefix}.{topic}"
        try:
            count = admin.partition_count(client, topic)
            ends, visible = (admin.end_offsets(client, topic, count, visible=v) for v in (False, True))
        except KafkaUnavailable:
            return False
        return ends == visible

    async def plan(self, name: Job = "translations", *, full: bool = False, **narrowed: Any) -> Datum:
        """The requests planned for such a run."""
        settings = self.settings()
        task = self.task(name, full=full, **narrowed)
        rows = await asyncio.to_thread(job.plan, settings, task, quiet)
        return plan_as_json(rows, settings.api.requests_per_second)

    async def fails(self, name: Job = "translations") -> BridgeError:
        """The error of a full run in this process."""
        with pytest.raises(BridgeError) as caught:
            await self.run(name, full=True)
        self.must_not_tell(str(caught.value))
        return caught.value

    def must_not_tell(self, text: str) -> None:
        """Assert that neither the token nor a usable part of it appears."""
        for part in self.token.split("."):
            assert part not in text

    async def fill(self) -> list[Datum]:
        """Write the bets of the provider's history to the topic, as `bridge run` would; returns them."""
        bodies = [(message.at, message.body) for message in self.provider.published()]
        await asyncio.to_thread(produce_bets, self.settings(), bodies)
        return [json.loads(body)["data"] for _, body in bodies]

    async def place_bets(self, bets: Iterable[Datum], age: float = 0) -> None:
        """Write these bets to the topic, as if received `age` seconds ago."""
        bodies = [(self.provider.now() - age, orjson.dumps({"data": bet})) for bet in bets]
        await asyncio.to_thread(produce_bets, self.settings(), bodies)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def quiet(what: str, done: int, total: int) -> None:
    """Ignore progress."""


def settings_at(place: Place, kafka: Mapping[str, object], **sections: Any) -> Settings:
    """Settings of a program in this process, with these properties of Kafka and other sections."""
    servers = {"bootstrap_servers": place.cluster.bootstrap_servers}
    return Settings(
        kafka=KafkaSettings.model_validate({**servers, **kafka}),
        registry=RegistrySettings(url=place.cluster.registry_url),
        topics=TopicsSettings(prefix=place.prefix),
        **sections,
    )


async def delete_topic(place: Place, name: str) -> str:
    """Delete a topic of the place; return its whole name when no broker has it."""
    return await asyncio.to_thread(place.delete_topic, name)


def produce_bets(settings: Settings, bodies: Iterable[tuple[float, bytes]]) -> None:
    """Write the bets of these messages to their topic, as received at these moments."""
    feed = settings.feed.model_copy(update={"start": "1h"})  # no checkpoint covers these bets
    there = settings.model_copy(update={"feed": feed})
    declared = topics.ensure(clients.admin(settings.kafka), there, topics.Topics.all)
    with Registry(settings.registry) as registry:
        codec = Codec(load("settled-bet"), registry.register(settings.topics.prefix)["settled-bet"])
    producer = Producer(
        {
            "bootstrap.servers": str(settings.kafka.bootstrap_servers),
            "transactional.id": f"{settings.topics.prefix}.bets",
            "partitioner": "murmur2_random",
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for at, body in bodies:
        bet = read_feed_message(body)["data"]
        assert bet is not None
        key = (bet["betId"] or "").encode()
        producer.produce(declared.bets.name, codec.encode(bet), key, timestamp=round(at * 1000))
        producer.poll(0)
    producer.commit_transaction(30)


class Topics:
    """The records that a `read_committed` reader finds, decoded with the writer's schema."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._schemas: dict[int, WriterSchema] = {}

    def decode(self, value: bytes) -> Datum:
        """A record's datum."""
        schema_id = int.from_bytes(value[1:5], "big")
        if schema_id not in self._schemas:
            with SchemaRegistryClient({"url": self._place.cluster.registry_url}) as registry:
                text = registry.get_schema(schema_id).schema_str or ""
            self._schemas[schema_id] = WriterSchema(text)
        return self._schemas[schema_id].read(value[5:])

    def all(self, topic: str) -> list[Datum]:
        """Every record except tombstones, including replaced ones."""
        values = [message.value() for message in self._place.messages(topic)]
        return [self.decode(value) for value in values if value is not None]

    def hidden(self, topic: str) -> int:
        """The number of records visible only to `read_uncommitted` readers."""
        seen = (
            len(self._place.read(topic, isolation=f"read_{level}")) for level in ("uncommitted", "committed")
        )
        return next(seen) - next(seen)

    def snapshots(self, name: Job) -> list[Datum]:
        """The Snapshot records of a job, oldest first."""
        return [datum for datum in self.all("snapshots") if datum["job"] == name]

    def present(self, name: str) -> dict[str, Datum]:
        """Key → current record of a topic."""
        return self._compacted(self._place.messages(name))

    def at_ends(self, name: Job, snapshot: Datum) -> dict[str, Datum]:
        """Key → record, read up to where the snapshot ends."""
        ends = {place["partition"]: place["offset"] for place in snapshot["ends"]}
        return self._compacted(self._place.messages(name, ends=ends))

    def _compacted(self, messages: Iterable[Message]) -> dict[str, Datum]:
        values = {message.key(): message.value() for message in messages}
        return {(key or b"").decode(): self.decode(x) for key, x in values.items() if x is not None}


@dataclass
class Mentioned:
    """The keys that bets refer to, from the provider's JSON."""

    events: set[int] = field(default_factory=set)
    with_markets: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    @classmethod
    def by(cls, bets: Iterable[Datum]) -> Mentioned:
        """The items of these bets, including those of bet builders."""
        found = cls()
        for bet in bets:
            for item in bet.get("selections") or ():
                found._add(item)
        return found

    def _add(self, item: Datum) -> None:
        sport, event = item["sportId"], (item.get("event") or {}).get("id")
        self.keys |= {f"sport:{sport}", f"league:{item['competitionId']}", f"region:{item['countryId']}"}
        if event:
            self.events.add(event)
            self.keys.add(f"event:{event}")
        for part in (item, *(item.get("betBuilderItems") or ())):
            selection, market = part["selectionId"], part.get("market")
            self.keys |= {f"selection:{selection}", f"selection-template:{selection}"}
            if event:
                self.with_markets.add(event)
            if market:
                self.keys.add(f"market-type-template:{sport}:{market['type']}")
                if event:
                    self.keys.add(f"market:{event}:{market['id']}")


def expected(provider: Simulator, bets: Iterable[Datum]) -> dict[str, Datum]:
    """Key → the expected record after a full run, from the simulator's truth alone."""
    mentioned, policy = Mentioned.by(bets), provider.rest.policy
    truth = list(provider.rest.catalogue.truth())
    competitors = {
        f"competitor:{number}"
        for known in truth
        if known.kind == "event" and known.id in mentioned.events
        for number in _members(known.relations)
    }
    found: dict[str, Datum] = {}
    for known in truth:
        relations, texts = dict(known.relations), {str(k): text for k, text in known.texts.items()}
        key = key_of(known.kind, known.id, relations)
        if known.kind in (*LISTED, "selection-template"):
            relations = {}  # which the interface does not give
        match known.kind:
            case "event":
                is_there = known.id in mentioned.events
            case "market" | "selection":
                is_there = relations["eventId"] in mentioned.with_markets
            case "selection-template" | "market-type-template":
                is_there = key in mentioned.keys
            case _:
                is_there = True
                if key not in mentioned.keys | competitors:  # only its list is read
                    texts = {k: text for k, text in texts.items() if k not in policy.only_in_all}
        if is_there:
            found[key] = {"kind": known.kind, "id": known.id, "translations": texts, **_relations(relations)}
    return found


def key_of(kind: str, number: int, relations: Mapping[str, Any]) -> str:
    """The key of a record, by the simulator's truth."""
    within = {"market": "eventId", "market-type-template": "sportId"}.get(kind)
    return f"{kind}:{number}" if within is None else f"{kind}:{relations[within]}:{number}"


def _members(relations: Mapping[str, int | tuple[int, ...]]) -> tuple[int, ...]:
    members = relations["competitorIds"]
    assert isinstance(members, tuple)
    return members


def _relations(known: Mapping[str, Any]) -> Datum:
    names = ("eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId")
    return {name: list(value) if isinstance(value := known.get(name), tuple) else value for name in names}


def without_ids(records: Mapping[str, Datum]) -> dict[str, Datum]:
    """The records without the ids of the snapshots in which they changed."""
    return {key: {k: v for k, v in record.items() if k != "snapshotId"} for key, record in records.items()}
