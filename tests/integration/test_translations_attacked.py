"""Topics that are lost between and during runs, and garbage in them, with the jobs as processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from tests.harness import Place
from tests.integration.independent import EVENT, Wrong, provided
from tests.integration.independent_jobs import Independent, bets_on

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def produce(place: Place, topic: str, key: bytes, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": place.cluster.bootstrap_servers, "log_level": 0})
    producer.produce(f"{place.prefix}.{topic}", value, key)
    assert producer.flush(30) == 0


async def test_a_lost_topic_is_filled_anew_after_a_narrowed_run_too(place: Place) -> None:
    """A narrowed run leaves records there, and is no reason to take them for all."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth))
        await jobs.well()
        await jobs.delete_topic("translations")
        await jobs.run("--kind", "sport")
        done = await jobs.well()  # says Complete, owed 0
        assert (await jobs.published(done)).keys() == provider.truth.translations().keys()


async def test_new_bets_are_asked_about_after_the_state_was_lost_during_a_run(place: Place) -> None:
    """What was seen is not taken for what is learnt anew."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth, range(4)))
        for _ in range(3):
            await jobs.well()
        loop = asyncio.get_running_loop()

        def anew(right: Any) -> Any:
            asyncio.run_coroutine_threadsafe(jobs.delete_topic("snapshot-state"), loop).result(60)
            config = {"cleanup.policy": "compact"}
            new = NewTopic(f"{place.prefix}.snapshot-state", 1, 1, config=config)
            admin = place.admin()
            for future in admin.create_topics([new]).values():
                future.result()
            return right

        jobs.place_bets(bets_on(provider.truth, [4]))
        provider.wrong = [Wrong(anew, EVENT, 4, times=1)]
        done = await jobs.run()
        provider.mend()
        jobs.place_bets(bets_on(provider.truth, [5, 6, 7]))
        done = await jobs.well()
        assert await jobs.published(done) == provider.truth.translations()


@pytest.mark.parametrize(
    ("key", "value"), [(b"translations/in-use/event:7", b"\xff"), (b"translations/owed/0", b'["event:x"]')]
)
async def test_garbage_in_the_state_is_passed_over(place: Place, key: bytes, value: bytes) -> None:
    """It is learnt again."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth))
        await jobs.well()
        produce(place, "snapshot-state", key, value)
        await jobs.well()


@pytest.mark.parametrize("name", ["translations", "currencies"])
async def test_a_broken_record_under_a_key_of_ours_is_written_again(place: Place, name: str) -> None:
    """Somebody else may write anything there."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth))
        await (jobs.well() if name == "translations" else jobs.run(name))
        key = {"translations": b"event:1", "currencies": b"EUR"}[name]
        produce(place, name, key, b"\0\0\0\0\1\xff\xff\xff\xff")
        done = await (jobs.run("--full") if name == "translations" else jobs.run(name))
        assert done.code == 0
