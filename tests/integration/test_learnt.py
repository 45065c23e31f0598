"""What is in use is learnt once, what is named is published, and what shrinks is not believed at once.

Against an independent provider, with the jobs as processes on the real Kafka.
"""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.harness import Place
from tests.integration.independent import (
    ACTIVE,
    EVENT,
    LANGUAGES,
    LISTED,
    LISTS,
    SINGLES,
    Market,
    Provider,
    Truth,
    Wrong,
    provided,
    texts,
)
from tests.integration.independent_jobs import Independent, bet_on, bets_on, equal_but

# Clients of the registry are left to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

BETS = 30_000
DAY = 86_400.0


async def test_ids_from_0(place: Place) -> None:
    """What the provider names under 0 is a name like any other."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth))
        done = await jobs.well()
        found = await jobs.published(done)
        assert {f"{kind}:0" for kind in (*LISTED, "event", "selection", "market:0")} - found.keys() == set()
        assert found == provider.truth.translations()
        assert (await jobs.well()).report["written"] == (await jobs.well("--full")).report["written"] == 0


async def test_the_first_text_of_a_list_stands(place: Place) -> None:
    """Also where the list has the same id once more."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth))
        again = [{"id": 6, "language": "en", "translation": f"another {n}"} for n in range(2)]
        provider.wrong = [Wrong(lambda right: [*right, *again], LISTS["league"], language="en")]
        done = await jobs.well()
        assert await jobs.published(done) == provider.truth.translations()


async def test_a_selection_that_a_later_event_uses_again(place: Place) -> None:
    """It has the texts of that event alone, whichever of the two was asked about first."""
    truth = Truth.of()
    for old, new in ((1, 4), (2, 5), (3, 6)):
        again = next(iter(truth.events[old].markets.values())).selections
        named = {n: {k: t for k, t in texts(f"again {n}").items() if k != "de"} for n in again}
        truth.events[new].markets[100 + new] = Market(1, texts(f"market {100 + new}"), named)
    wanted = truth.translations()
    assert wanted["selection:4"]["translations"].keys() == {"en", "sv"}
    with provided(truth) as provider:
        jobs = Independent(place, provider)
        events: set[int] = set()
        for more in ({1, 4, 2, 6}, {5, 3}):  # both at once; the old one first; the later one first
            events |= more
            jobs.place_bets(bets_on(truth, more))
            assert await jobs.published(await jobs.well()) == truth.translations(events)
        jobs.place_bets(bets_on(truth))
        await jobs.well()
        done = await jobs.well("--full")
        assert done.report["written"] == 0
        assert await jobs.published(done) == wanted


async def test_languages_in_another_order(place: Place) -> None:
    """All of them are no narrowed run."""
    with provided() as provider:
        jobs = Independent(place, provider)
        jobs.place_bets(bets_on(provider.truth))
        assert LANGUAGES == ("en", "sv", "de")
        done = await jobs.well("--language", "sv", "--language", "en", "--language", "de")
        assert await jobs.published(done) == provider.truth.translations()
        assert (await jobs.well()).report["bets"] == 0


async def test_a_topic_of_bets_that_was_made_anew(place: Place) -> None:
    """Longer than the old one, so that the old position is a place in it: none of its bets is passed over."""
    with provided(Truth.of(60)) as provider:
        jobs, wanted = Independent(place, provider), provider.truth.translations()
        before, after = range(12), range(12, 60)
        jobs.place_bets(bets_on(provider.truth, before))
        await jobs.well()
        await jobs.delete_topic("bets")
        jobs.place_bets(bets_on(provider.truth, after))
        done = await jobs.well()
        assert done.report["bets"] == len(after)
        old = provider.truth.translations(before).keys() - provider.truth.translations(after).keys()
        equal_but(await jobs.published(done), wanted, old)


async def test_ids_are_learnt_once(place: Place) -> None:
    """Whatever becomes of a run, of those before it and of the bets: no later one reads them again."""
    with provided(Truth.of(9)) as provider:
        jobs, truth = Independent(place, provider), provider.truth
        whole = bets_on(truth, range(8))
        jobs.place_bets(whole)
        jobs.place_bets(bet_on(truth, n % 8, f"small {n}", most=1) for n in range(BETS - len(whole)))
        done = await jobs.well()
        assert done.report["bets"] == BETS
        assert await jobs.published(done) == truth.translations(range(8))
        assert (await jobs.well()).report["bets"] == 0
        exchanged = truth.exchanged()
        assert await jobs.published(await jobs.well("currencies")) == exchanged
        assert (await jobs.well("currencies")).report["bets"] == 0

        jobs.place_bets(bets_on(truth, [8], ["KWD"]))
        provider.wrong = [Wrong(500, LISTS["sport"]), Wrong(500, ACTIVE)]
        await jobs.fails()
        await jobs.fails("currencies")
        provider.mend()
        done = await jobs.well()
        assert done.report["bets"] == 0
        assert await jobs.published(done) == truth.translations()
        done = await jobs.well("currencies")
        assert done.report["bets"] == 0
        assert await jobs.published(done) == truth.exchanged("KWD")

        await jobs.delete_topic("snapshot-state")
        assert (await jobs.well()).report["bets"] == BETS + 1

        forget_records(place, "bets")
        planned = await jobs.run("--plan", "--full")
        assert planned.report["endpoints"][EVENT]["atLeast"] == len(truth.events)
        provider.mend()
        done = await jobs.well("--full")
        assert (done.report["bets"], done.report["removed"]) == (0, 0)
        assert provider.ids(EVENT) == truth.events.keys()
        done = await jobs.well("currencies", "--full")
        assert (done.report["bets"], done.report["removed"]) == (0, 0)


async def test_it_is_remembered_when_bets_mentioned_it(place: Place) -> None:
    """What is asked anew, and what is forgotten, goes by that, though no bet is read again."""
    with provided() as provider:
        jobs, truth = Independent(place, provider), provider.truth
        jobs.place_bets(bets_on(truth, [6, 7]), age=5 * DAY)
        jobs.place_bets(bets_on(truth, range(6)))
        assert await jobs.published(await jobs.well()) == truth.translations(range(6))
        provider.mend()
        done = await jobs.well("--full", recent_days=10)
        assert done.report["bets"] == 0
        assert await jobs.published(done) == truth.translations()
        done = await jobs.well("--full", recent_days=1, keep_days=4)
        assert done.report["bets"] == 0
        left = truth.translations(range(6))
        assert await jobs.published(done) == left
        assert done.report["removed"] == len(truth.translations()) - len(left)


def forget_records(place: Place, name: str) -> None:
    """Take all records of a topic away, as its retention might if it were not compacted."""
    admin, topic = place.admin(), f"{place.prefix}.{name}"

    def set_policy(policy: str) -> None:
        entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()

    set_policy("compact,delete")
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    all_of_it = [TopicPartition(topic, partition, OFFSET_END) for partition in partitions]
    for future in admin.delete_records(all_of_it).values():
        future.result()
    set_policy("compact")


def emptied() -> list[Wrong]:
    """What makes a provider know no sport, region, league and competitor any more."""
    return [
        *(Wrong(lambda right: [], endpoint) for endpoint in LISTS.values()),
        *(Wrong(lambda right: {**right, "translations": {}}, endpoint) for endpoint in SINGLES.values()),
    ]


def unused(provider: Provider) -> set[str]:
    """The keys of what is in lists, and neither a bet nor an event of one refers to."""
    events = provider.truth.events.values()
    used = {f"{kind}:{getattr(event, kind)}" for event in events for kind in LISTED[:3]}
    used |= {f"competitor:{n}" for event in events for n in event.competitors}
    return {f"{kind}:{n}" for kind, known in provider.truth.names.items() for n in known} - used


async def test_an_emptied_provider(place: Place) -> None:
    """It is told, and believed by the second full run alone, but for what bets mention; then all is well."""
    with provided() as provider:
        jobs, truth = Independent(place, provider), provider.truth.translations()
        jobs.place_bets(bets_on(provider.truth))
        await jobs.well()
        provider.wrong = emptied()
        for arguments in ((), ("--full",), ()):
            done = await jobs.run(*arguments)
            assert done.code in (0, 4), done.stderr
            assert done.report["removed"] == 0
            notes = " ".join(done.report["notes"])
            assert [kind for kind in LISTED if kind not in notes] == []
            assert await jobs.published(done) == truth
        done = await jobs.run("--full")
        gone = unused(provider)
        assert {key.partition(":")[0] for key in gone} == set(LISTED)
        assert await jobs.published(done) == {key: truth[key] for key in truth.keys() - gone}
        assert done.report["removed"] == len(gone)
        notes = " ".join(done.report["notes"])
        assert [kind for kind in LISTED if kind not in notes] == []
        provider.mend()
        assert await jobs.published(await jobs.well()) == truth


async def test_a_list_that_shrinks_once(place: Place) -> None:
    """A full run that finds it whole again makes the next short one the first; a share of 1 believes it."""
    with provided() as provider:
        jobs, truth = Independent(place, provider), provider.truth.translations()
        jobs.place_bets(bets_on(provider.truth))
        await jobs.well()
        for _ in range(2):
            provider.wrong = emptied()
            assert (await jobs.run("--full")).report["removed"] == 0
            provider.mend()
            assert await jobs.published(await jobs.well("--full")) == truth
        provider.wrong = emptied()
        done = await jobs.run("--full", max_shrink_share=1)
        assert await jobs.published(done) == {key: truth[key] for key in truth.keys() - unused(provider)}


async def test_a_list_of_one_currency(place: Place) -> None:
    """Nothing of it is believed at first; then what no bet uses goes, and what one uses stays."""
    with provided() as provider:
        jobs, truth = Independent(place, provider), provider.truth.exchanged()
        jobs.place_bets(bets_on(provider.truth))
        assert len(await jobs.published(await jobs.well("currencies"))) == 41
        provider.wrong = [Wrong(lambda right: [c for c in right if c["symbol"] == "EUR"], ACTIVE)]
        for arguments in ((), ("--full",), ()):
            done = await jobs.run("currencies", *arguments)
            assert done.code in (0, 4), done.stderr
            assert done.report["removed"] == 0
            assert done.report["notes"]
            assert await jobs.published(done) == truth
        done = await jobs.run("currencies", "--full")
        found = await jobs.published(done)
        assert found.keys() == {"EUR", "SEK", "BTC"}
        assert {s: r["precision"] for s, r in found.items()} == {s: truth[s]["precision"] for s in found}
        assert done.report["notes"]
        provider.mend()
        assert await jobs.published(await jobs.well("currencies")) == truth
