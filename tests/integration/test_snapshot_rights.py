"""A Kafka that does not let the job do one thing or the other: it ends at once, and says which.

`bridge run` too, where it shares what decides. The cluster makes topics by itself, as some do: so whoever
looks for one must not make it by looking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.reader.names import LOOK_SECONDS
from bridge.snapshots.model import Job
from bridge_sandbox.provider.faults import Drop, Forget
from bridge_sandbox.provider.rest.faults import RestFault
from tests.harness import Bridge, Place, assert_exact, simulate, until
from tests.integration.rights import (
    CONFIGS,
    DESCRIBE,
    GROUP,
    ID,
    READ,
    SOON_SECONDS,
    TOPIC,
    WRITE,
    Right,
    assert_names,
    denied,
)
from tests.integration.snapshots import Jobs, Topics, simulated
from tests.integration.test_gaps import four_days_ago
from tests.time_lapse import TimeLapse

pytestmark = pytest.mark.xdist_group("rights")
"""One broker is started for all of them."""

TRIED_AGAIN = "Kafka failed, retrying"
PUBLISHED = '"snapshot published"'
JOBS: tuple[Job, ...] = ("translations", "currencies")
ONE: tuple[Job, ...] = ("currencies",)


class Lacked(NamedTuple):
    """A right of each job, and the exit code of one without it."""

    code: int
    rights: dict[Job, Right]


def lacked(
    code: int, operation: AclOperation, kind: ResourceType, name: str, *, jobs: tuple[Job, ...] = JOBS
) -> Lacked:
    """The same right of both jobs; `{}` stands for the job. One of them where both do the same."""
    return Lacked(code, {job: Right(operation, kind, name.format(job)) for job in jobs})


def assert_refused(job: Bridge, lacked: Lacked, name: Job, prefix: str) -> None:
    """Assert that a job has ended with the code, and named the right."""
    text = f"{name} without {lacked.rights[name]}\n{job.text()}"
    assert job.process.returncode == lacked.code, text
    assert_names(text, lacked.rights[name].words(prefix))


OF_A_FIRST_RUN = (
    lacked(6, READ, TOPIC, "bets", jobs=ONE),
    lacked(8, WRITE, TOPIC, "snapshot-state"),
    lacked(8, WRITE, TOPIC, "{}"),
    lacked(8, WRITE, TOPIC, "snapshots", jobs=ONE),
    lacked(8, WRITE, ID, "{}"),
)
OF_A_LATER_RUN = (
    lacked(6, READ, GROUP, "{}.owner"),
    lacked(6, DESCRIBE, GROUP, "reader", jobs=ONE),
    lacked(6, DESCRIBE, TOPIC, "bets", jobs=ONE),
    lacked(6, READ, TOPIC, "snapshot-state"),
    lacked(6, READ, TOPIC, "snapshots", jobs=ONE),
    lacked(6, DESCRIBE, TOPIC, "snapshots", jobs=ONE),
    lacked(6, READ, TOPIC, "{}", jobs=ONE),
    lacked(6, DESCRIBE, TOPIC, "{}", jobs=ONE),
    lacked(6, CONFIGS, TOPIC, "{}", jobs=ONE),
)


async def test_a_right_that_is_missing(guarded: Place) -> None:
    async with simulated(bets=8) as provider:
        jobs, topics = Jobs(guarded, provider), Topics(guarded)
        await jobs.fill()
        for rights in (OF_A_FIRST_RUN, OF_A_LATER_RUN):
            before = topics.all("snapshots")
            for lacked in rights:
                with denied(guarded, *lacked.rights.values()):
                    running = {job: jobs.start(job) for job in lacked.rights}
                    for job, process in running.items():
                        await process.wait(SOON_SECONDS)
                        jobs.must_not_tell(process.text())
                        assert_refused(process, lacked, job, guarded.prefix)
                        assert TRIED_AGAIN not in process.text(), process.text()
            assert topics.all("snapshots") == before
            await asyncio.gather(*map(jobs.published, JOBS))  # what is read below is there, too


OFTEN_TAKEN = (
    lacked(8, WRITE, TOPIC, "{}"),
    lacked(6, READ, TOPIC, "snapshot-state"),
    lacked(6, READ, GROUP, "{}.owner"),
)


@pytest.mark.parametrize(
    "rights",
    [
        OFTEN_TAKEN,
        pytest.param(
            [one for one in (*OF_A_FIRST_RUN, *OF_A_LATER_RUN) if one not in OFTEN_TAKEN],
            marks=pytest.mark.long,
        ),
    ],
)
async def test_a_right_of_a_job_that_is_taken_away(guarded: Place, rights: Sequence[Lacked]) -> None:
    async with simulated(bets=8) as provider:
        jobs = Jobs(guarded, provider)
        await jobs.fill()
        for lacked in rights:
            running = {job: jobs.start(job, "--every", "1s") for job in lacked.rights}
            for process in running.values():
                await until(lambda p=process: PUBLISHED in p.text(), "a run", so_far=process.text)  # type: ignore[misc]
            with denied(guarded, *lacked.rights.values()):
                if Right(READ, TOPIC, "bets") in lacked.rights.values():
                    await jobs.fill()  # a run reads only what is new
                for job, process in running.items():
                    await process.wait(SOON_SECONDS)
                    assert_refused(process, lacked, job, guarded.prefix)
        await asyncio.gather(*map(jobs.published, JOBS))


RIGHTS_OF_THE_FEED = (
    (8, Right(WRITE, TOPIC, "bets")),
    (8, Right(WRITE, TOPIC, "checkpoints")),
    (8, Right(WRITE, TOPIC, "deadletters")),
    (8, Right(WRITE, ID, "settlement-v4")),
    (6, Right(READ, GROUP, "settlement-v4.owner")),
)


async def test_a_right_of_the_feed(guarded: Place) -> None:
    """Missing or taken away while it runs, `bridge run` ends with the documented code and names it.

    One that is missing costs no connection attempt: a supervisor may restart the bridge again and again.
    """

    async def lacking(place: Place, code: int, right: Right) -> None:
        async with simulate(rate=50, odd=0.1) as feed:
            with denied(place, right):
                missing = place.bridge(FEED__BASE_URL=feed.url)
                assert await missing.wait(SOON_SECONDS) == code, f"{right}\n{missing.text()}"
                assert feed.connections == []
            taken = [place.bridge(FEED__BASE_URL=feed.url)]
            await taken[0].reaches("Live")
            if right.kind is GROUP:  # all that a standby uses
                taken.append(place.bridge(FEED__BASE_URL=feed.url))
                await until(lambda: "owns the feed" in taken[1].text(), "a standby", so_far=taken[1].text)
            with denied(place, right):
                for bridge in taken:
                    assert await bridge.wait(SOON_SECONDS) == code, f"{right}\n{bridge.text()}"
        for bridge in (missing, *taken):
            assert_names(bridge.text(), right.words(place.prefix))

    await asyncio.gather(
        *(
            lacking(guarded.below(str(number)), code, right)
            for number, (code, right) in enumerate(RIGHTS_OF_THE_FEED)
        )
    )


async def test_a_gap_that_could_not_be_declared(guarded: Place) -> None:
    right, (_, start) = Right(WRITE, TOPIC, "gaps"), four_days_ago()
    async with simulate() as feed:
        with denied(guarded, right):
            bridge = guarded.bridge(FEED__BASE_URL=feed.url, FEED__START=start, FEED__ON_GAP="continue")
            assert await bridge.wait(SOON_SECONDS) == 8, bridge.text()
        assert_names(bridge.text(), right.words(guarded.prefix))
        assert feed.connections == []


async def test_a_gap_that_may_not_be_declared_any_more(guarded: Place) -> None:
    right = Right(WRITE, TOPIC, "gaps")
    async with simulate(history_seconds=10) as feed:
        bridge = guarded.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: bool(guarded.read("bets")), "bets", so_far=bridge.text)
        with denied(guarded, right):
            feed.inflict(Forget())
            feed.inflict(Drop())
            assert await bridge.wait(SOON_SECONDS) == 8, bridge.text()
        assert_names(bridge.text(), right.words(guarded.prefix))
        assert guarded.read("gaps") == []
        again = guarded.bridge(FEED__BASE_URL=feed.url)
        assert await again.wait() == 5, again.text()
    assert len(guarded.read("gaps")) == 1


async def test_a_right_that_the_next_owner_needs(guarded: Place) -> None:
    async def lacking(place: Place, right: Right) -> None:
        async with simulate(rate=50, odd=0.1) as feed:
            first = await place.live(feed)
            await until(lambda: bool(place.read(right.name)), "something to read")
            with denied(place, right):
                assert await first.end() == 0, first.text()
                doctor = await place.ran("doctor", "--startup", FEED__BASE_URL=feed.url)
                topic = f"{place.prefix}.{right.name}"
                assert (doctor.returncode, topic in doctor.stdout) == (1, True), doctor.stdout
                second = place.bridge(FEED__BASE_URL=feed.url)
                assert await second.wait(SOON_SECONDS) == 6, second.text()
                assert f"no right to {right.words(place.prefix)}; grant it" in second.text()
            assert_exact(await place.settled(feed, place.bridge(FEED__BASE_URL=feed.url)))

    rights = (
        Right(READ, TOPIC, "bets"),
        Right(READ, TOPIC, "checkpoints"),
        Right(READ, TOPIC, "deadletters"),
        Right(CONFIGS, TOPIC, "bets"),
    )
    await asyncio.gather(*(lacking(guarded.below(str(number)), right) for number, right in enumerate(rights)))


async def test_a_copy_to_a_topic_that_may_not_be_written(guarded: Place) -> None:
    async with simulated(bets=8) as provider:
        await Jobs(guarded, provider).fill()
    right, partitions = (
        Right(WRITE, TOPIC, "copy"),
        admin.partition_count(guarded.admin(), f"{guarded.prefix}.bets"),
    )
    target = guarded.make_topic("copy", partitions)
    command = ("replay", "--to-topic", target)
    with denied(guarded, right):
        copied = await guarded.ran(*command)
    assert copied.returncode == 8, copied.stderr
    assert_names(copied.stderr, right.words(guarded.prefix))
    copied = await guarded.ran(*command)
    assert copied.returncode == 0, copied.stderr
    assert len(guarded.read("copy")) == len(guarded.read("bets"))


@pytest.mark.parametrize(("operation", "topic"), [(DESCRIBE, "bets"), (READ, "translations")])
async def test_a_right_of_a_reader_that_is_taken_away(
    guarded: Place, operation: AclOperation, topic: str
) -> None:
    async with simulated(bets=8) as provider:
        jobs = Jobs(guarded, provider)
        await jobs.fill()
        await jobs.published("translations")
        tail = guarded.bridge("tail", "--from-beginning", *(["--names", "en"] if topic != "bets" else []))
        await until(lambda: bool(tail.output()), "bets are shown", so_far=tail.text)
        right = Right(operation, TOPIC, topic)
        with denied(guarded, right):
            if topic != "bets":
                await asyncio.sleep(LOOK_SECONDS)
                await jobs.fill()  # names are looked up for what comes
            assert await tail.wait(SOON_SECONDS) == 6, tail.text()
        assert_names(tail.text(), right.words(guarded.prefix))


@pytest.mark.long
async def test_an_owner_that_does_not_see_a_topic_goes_on_and_prometheus_tells(
    guarded: Place, tmp_path: Path
) -> None:
    async with simulate() as feed, TimeLapse(every=1) as lapse:
        bridge = lapse.pods["a"] = guarded.bridge(FEED__BASE_URL=feed.url)
        await bridge.reaches("Live")
        await lapse.pass_by(300)
        lapse.scrapes.expect()
        with denied(guarded, Right(DESCRIBE, TOPIC, "gaps")):
            await lapse.pass_by(525)
            lapse.scrapes.expect(SettlementTransactionsUnwatched={"namespace": "n", "feed": "settlement-v4"})
        await lapse.pass_by(225)
        lapse.scrapes.expect()
        assert_exact(await guarded.settled(feed, bridge))
    lapse.scrapes.judge(tmp_path, "SettlementTransactionsUnwatched")


async def test_a_topic_that_is_deleted_while_the_provider_is_asked(guarded: Place) -> None:
    async def lacking(place: Place, topic: str) -> None:
        async with simulated(bets=8) as provider:
            jobs, name, client = Jobs(place, provider), f"{place.prefix}.{topic}", place.admin()
            await jobs.fill()
            provider.rest.faults.inject(RestFault(endpoint="active-currencies", delay=2))
            bridge = jobs.start("currencies")
            await until(lambda: bool(provider.rest.requests), "the provider is asked", so_far=bridge.text)
            for deleted in client.delete_topics([name]).values():
                deleted.result(20)
            assert await bridge.wait(SOON_SECONDS) == 6, bridge.text()
            assert f"error: the topic {name} is gone" in bridge.text()
            assert name not in admin.metadata(client).topics

    await asyncio.gather(*(lacking(guarded.below(topic), topic) for topic in ("currencies", "snapshots")))


def test_a_look_makes_no_topic(guarded: Place) -> None:
    client, name = guarded.admin(), f"{guarded.prefix}.bets"
    assert admin.topic_id(client, name, 10) is None
    with pytest.raises(KafkaUnavailable, match=f"{name} does not exist"):
        admin.partition_count(client, name)
    assert name not in admin.metadata(client).topics
