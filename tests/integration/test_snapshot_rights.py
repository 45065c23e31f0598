"""A Kafka that does not let the job do one thing or the other: it ends at once, and says which.

`bridge run` too, where it shares what decides. The cluster makes topics by itself, as some do: so whoever
looks for one must not make it by looking.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.sandbox import cluster
from bridge.sandbox.provider.rest.faults import RestFault
from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from tests.brokers import broker_with, creating_topics
from tests.harness import END_SECONDS, Bridge, Place, assert_exact, until
from tests.integration.snapshots import Jobs, Topics, simulated
from tests.time_lapse import TimeLapse

pytestmark = pytest.mark.xdist_group("rights")
"""One broker is started for all of them."""

EVERYBODY = "User:ANONYMOUS"
TRIED_AGAIN = "Kafka failed, retrying"
TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE = AclOperation.READ, AclOperation.WRITE
DESCRIBE, CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    """A broker with access control lists; resources without one are free to all."""

    def change(properties: str) -> str:
        return "\n".join(
            [
                creating_topics(properties),
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found=true",
                "",
            ]
        )

    with broker_with(tmp_path_factory.mktemp("strict"), change) as running:
        yield running


@pytest.fixture
def guarded(strict: cluster.Cluster, tmp_path: Path) -> Iterator[Place]:
    """Topics of this test on that broker."""
    bridges: list[Bridge] = []
    yield Place(strict, f"r{next(_numbers)}", tmp_path, bridges)
    for bridge in bridges:
        bridge.kill()


@contextmanager
def denied(place: Place, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
    """Deny one right; all others on the resource stay."""
    client = place.admin()
    rules = [
        AclBinding(kind, f"{place.prefix}.{name}", ResourcePatternType.LITERAL, EVERYBODY, "*", *rule)
        for rule in (
            (AclOperation.ALL, AclPermissionType.ALLOW),
            (operation, AclPermissionType.DENY),
        )
    ]
    for future in client.create_acls(rules).values():
        future.result(20)
    try:
        yield
    finally:
        filters = [
            AclBindingFilter(
                rule.restype,
                rule.name,
                rule.resource_pattern_type,
                rule.principal,
                rule.host,
                rule.operation,
                rule.permission_type,
            )
            for rule in rules
        ]
        for removed in client.delete_acls(filters).values():
            removed.result(20)


def assert_names(text: str, right: str) -> None:
    """Assert that an error names a right, perhaps among others: Kafka does not say which topic it means."""
    what, _, resource = right.rpartition(" ")
    named = text.partition("no right to ")[2].partition("; grant it")[0].split(" or to ")
    assert [one for one in named if one.startswith(what) and resource in one.split()], text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("kind", "name", "operation", "code", "right"),
    [
        (TOPIC, "currencies", WRITE, 8, "Write the topic {}"),
        (TOPIC, "snapshots", WRITE, 8, "Write the topic {}"),
        (ID, "currencies", WRITE, 8, "Write the transactional id {}"),
        (GROUP, "currencies.owner", READ, 6, "Read the group {}"),
        (GROUP, "reader", DESCRIBE, 6, "Describe the group {}"),
        (TOPIC, "bets", READ, 6, "Read the topic {}"),
        (TOPIC, "bets", DESCRIBE, 6, "Describe the topic {}"),
        (TOPIC, "currencies", DESCRIBE, 6, "Describe the topic {}"),
        (TOPIC, "snapshots", DESCRIBE, 6, "Describe the topic {}"),
        (TOPIC, "currencies", CONFIGS, 6, "DescribeConfigs the topic {}"),
    ],
)
async def test_a_right_that_is_missing(
    guarded: Place, kind: ResourceType, name: str, operation: AclOperation, code: int, right: str
) -> None:
    """The documented exit code and the right, without a retry; the next run publishes."""
    async with simulated(bets=8) as provider:
        jobs, topics = Jobs(guarded, provider), Topics(guarded)
        await jobs.fill()
        with denied(guarded, kind, name, operation):
            refused = await jobs.command("currencies")
        assert refused.returncode == code, refused.stderr
        assert_names(refused.stderr, right.format(f"{guarded.prefix}.{name}"))
        assert TRIED_AGAIN not in refused.stderr
        assert topics.snapshots("currencies") == []
        if code == 8 or name in ("bets", "reader", "currencies.owner"):  # it had the lock, or asked for it
            await jobs.published("currencies")


@pytest.mark.parametrize(
    ("kind", "name", "operation", "code", "right"),
    [
        (TOPIC, "bets", WRITE, 8, "Write the topic {}"),
        (TOPIC, "checkpoints", WRITE, 8, "Write the topic {}"),
        (TOPIC, "deadletters", WRITE, 8, "Write the topic {}"),
        (ID, "settlement-v4", WRITE, 8, "Write the transactional id {}"),
        (GROUP, "settlement-v4.owner", READ, 6, "Read the group {}"),
    ],
)
async def test_a_right_of_the_feed(
    guarded: Place, kind: ResourceType, name: str, operation: AclOperation, code: int, right: str
) -> None:
    """Missing or taken away while it runs, `bridge run` ends with the documented code and names it."""
    settings = SimulatorSettings.model_validate({"port": 0, "rate": 200, "odd": 0.1})
    async with Simulator(settings) as feed:
        with denied(guarded, kind, name, operation):
            missing = guarded.bridge(FEED__BASE_URL=feed.url)
            assert await missing.wait() == code, missing.text()
        taken = guarded.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: "Live" in taken.states(), "live", so_far=taken.text)
        with denied(guarded, kind, name, operation):
            assert await taken.wait(END_SECONDS) == code, taken.text()
        for bridge in (missing, taken):
            assert_names(bridge.text(), right.format(f"{guarded.prefix}.{name}"))


@pytest.mark.parametrize(
    ("name", "operation", "right"),
    [
        ("checkpoints", READ, "Read"),
        ("deadletters", READ, "Read"),
        ("bets", CONFIGS, "DescribeConfigs"),
    ],
)
async def test_a_right_that_the_next_owner_needs(
    guarded: Place, name: str, operation: AclOperation, right: str
) -> None:
    """The one that owns the feed may go on without; the doctor finds it before the next one starts."""
    settings = SimulatorSettings.model_validate({"port": 0, "rate": 200, "odd": 0.1})
    topic = f"{guarded.prefix}.{name}"
    async with Simulator(settings) as feed:
        first = guarded.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: "Live" in first.states(), "live", so_far=first.text)
        with denied(guarded, TOPIC, name, operation):
            assert await first.end() == 0, first.text()
            doctor = await asyncio.to_thread(guarded.run, "doctor", "--startup", FEED__BASE_URL=feed.url)
            assert (doctor.returncode, topic in doctor.stdout) == (1, True), doctor.stdout
            second = guarded.bridge(FEED__BASE_URL=feed.url)
            assert await second.wait() == 6, second.text()
            assert f"no right to {right} the topic {topic}; grant it" in second.text()
        assert_exact(await guarded.settled(feed, guarded.bridge(FEED__BASE_URL=feed.url)))


@pytest.mark.parametrize(
    ("kind", "name", "operation", "code", "right"),
    [
        (TOPIC, "snapshots", WRITE, 8, "Write the topic {}"),
        (ID, "currencies", WRITE, 8, "Write the transactional id {}"),
        (TOPIC, "snapshot-state", READ, 6, "Read the topic {}"),
        (TOPIC, "bets", DESCRIBE, 6, "Describe the topic {}"),
        (GROUP, "currencies.owner", READ, 6, "Read the group {}"),
    ],
)
async def test_a_right_of_a_job_that_is_taken_away(
    guarded: Place, kind: ResourceType, name: str, operation: AclOperation, code: int, right: str
) -> None:
    """The next run ends the process with the documented code and names it; later ones publish again."""
    async with simulated(bets=8) as provider:
        jobs, topics = Jobs(guarded, provider), Topics(guarded)
        await jobs.fill()
        job = jobs.start("currencies", "--every", "1s")
        await until(lambda: len(topics.snapshots("currencies")) > 1, "a second run", so_far=job.text)
        with denied(guarded, kind, name, operation):
            assert await job.wait(END_SECONDS) == code, job.text()
        assert_names(job.text(), right.format(f"{guarded.prefix}.{name}"))
        await jobs.published("currencies")


@pytest.mark.parametrize(("operation", "right"), [(READ, "Read"), (DESCRIBE, "Describe")])
async def test_a_right_of_a_reader_that_is_taken_away(
    guarded: Place, operation: AclOperation, right: str
) -> None:
    """`bridge tail` ends with exit 6, also while there is nothing to read."""
    async with simulated(bets=8) as provider:
        await Jobs(guarded, provider).fill()
        tail = guarded.bridge("tail", "--from-beginning")
        await until(lambda: bool(tail.output()), "bets are shown", so_far=tail.text)
        with denied(guarded, TOPIC, "bets", operation):
            assert await tail.wait(END_SECONDS) == 6, tail.text()
        assert_names(tail.text(), f"{right} the topic {guarded.prefix}.bets")


@pytest.mark.long
async def test_an_owner_that_does_not_see_a_topic_goes_on_and_prometheus_tells(
    guarded: Place, tmp_path: Path
) -> None:
    """Nobody sees which transactions hide its records."""
    async with Simulator(SimulatorSettings(port=0, rate=20)) as feed, TimeLapse(every=1) as lapse:
        bridge = lapse.pods["a"] = guarded.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: "Live" in bridge.states(), "live", so_far=bridge.text)
        await lapse.pass_by(300)
        lapse.scrapes.expect()
        with denied(guarded, TOPIC, "gaps", DESCRIBE):
            await lapse.pass_by(525)
            lapse.scrapes.expect(SettlementTransactionsUnwatched={"namespace": "n", "feed": "settlement-v4"})
        await lapse.pass_by(225)
        lapse.scrapes.expect()
        assert_exact(await guarded.settled(feed, bridge))
    lapse.scrapes.judge(tmp_path, "SettlementTransactionsUnwatched")


@pytest.mark.parametrize("topic", ["currencies", "snapshots"])
async def test_a_topic_that_is_deleted_while_the_provider_is_asked(guarded: Place, topic: str) -> None:
    """A write would recreate it here without its settings, so the job does not write."""
    async with simulated(bets=8) as provider:
        jobs, name, client = Jobs(guarded, provider), f"{guarded.prefix}.{topic}", guarded.admin()
        await jobs.fill()
        provider.rest.faults.inject(RestFault(endpoint="active-currencies", delay=2))
        bridge = jobs.start("currencies")
        await until(lambda: bool(provider.rest.requests), "the provider is asked", so_far=bridge.text)
        for deleted in client.delete_topics([name]).values():
            deleted.result(20)
        assert await bridge.wait() == 6, bridge.text()
        assert f"error: the topic {name} is gone" in bridge.text()
        assert name not in admin.metadata(client).topics


def test_a_look_makes_no_topic(guarded: Place) -> None:
    """Otherwise a deleted one would exist again, without its settings."""
    client, name = guarded.admin(), f"{guarded.prefix}.bets"
    assert admin.topic_id(client, name, 10) is None
    with pytest.raises(KafkaUnavailable, match=f"{name} is not there"):
        admin.partition_count(client, name)
    assert name not in admin.metadata(client).topics
