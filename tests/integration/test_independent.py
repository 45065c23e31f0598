"""Failures of single answers are left out and owed; the rest is published, and the next run completes it.

Against an independent provider, with the jobs as processes on the real Kafka.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.harness import Place
from tests.integration.independent import (
    ACTIVE,
    ALL_MARKETS,
    EVENT,
    HALF,
    LANGUAGES,
    LISTED,
    LISTS,
    MARKET_TYPES,
    MARKETS,
    PRECISION,
    SELECTIONS,
    Datum,
    Provider,
    Truth,
    Wrong,
    changed,
    provided,
)
from tests.integration.independent_jobs import Independent, bets_on, equal_but

pytestmark = pytest.mark.long


@asynccontextmanager
async def betting(
    place: Place, events: int = 8, competitors: int = 24, **api: Any
) -> AsyncIterator[tuple[Independent, Provider, dict[str, Datum]]]:
    """The jobs, a provider of names for bets on all of its events, and the records that are right."""
    with provided(Truth.of(events, competitors)) as provider:
        jobs = Independent(place, provider, **api)
        await jobs.place_bets(bets_on(provider.truth))
        yield jobs, provider, provider.truth.translations()


def without_markets(*events: int, status: int = 500) -> list[Wrong]:
    """Makes the provider answer every request for the markets of these events like this."""
    return [Wrong(status, endpoint, event) for event in events for endpoint in (ALL_MARKETS, MARKETS)]


def of_markets(provider: Provider, *events: int) -> set[str]:
    """The keys of the markets and selections of these events."""
    found = provider.truth.translations().items()
    return {k for k, r in found if r["kind"] in ("market", "selection") and r["eventId"] in events}


async def test_ids_from_0_and_a_lone_403_that_is_tried_again(place: Place) -> None:
    async with betting(place, attempts=2) as (jobs, provider, truth):
        provider.wrong = [Wrong(403, EVENT, 2, times=1)]
        done = await jobs.well()
        assert provider.asked[EVENT, 2, None] == 2
        found = await jobs.published(done)
        assert {f"{kind}:0" for kind in (*LISTED, "event", "selection", "market:0")} <= found.keys()
        assert found == truth
        assert (await jobs.well()).report["written"] == (await jobs.well("--full")).report["written"] == 0


async def test_a_403_that_ends(place: Place) -> None:
    async with betting(place, attempts=2) as (jobs, provider, truth):
        provider.wrong = [Wrong(403, EVENT, 2)]
        done = await jobs.partial()
        equal_but(await jobs.published(done), truth, ["event:2"])
        (left,) = done.report["leftOut"]
        assert (left["endpoint"], left["id"]) == (EVENT, "2")
        assert "403" in left["why"]

        provider.mend()
        narrowed = await jobs.run("--kind", "sport")  # pays nothing of what is owed
        assert (await jobs.snapshot(narrowed))["scope"] == "Partial"
        provider.mend()
        done = await jobs.well()
        assert provider.ids(EVENT) == {2}
        assert provider.ids(ALL_MARKETS) | provider.ids(SELECTIONS) | provider.ids(MARKET_TYPES) == set()
        assert await jobs.published(done) == truth


async def test_a_right_that_is_granted_later(place: Place) -> None:
    async with betting(place, attempts=2) as (jobs, provider, truth):
        provider.wrong = [Wrong(403, SELECTIONS), Wrong(403, MARKET_TYPES)]
        others = {key: datum for key, datum in truth.items() if "template" not in key}
        for _ in range(2):
            done = await jobs.partial()
            assert set(done.report["forbidden"]) == {SELECTIONS, MARKET_TYPES}
            assert await jobs.published(done) == others
        provider.mend()
        done = await jobs.well()
        assert await jobs.published(done) == truth
        assert provider.ids(EVENT) == set()


async def test_a_404_for_one_language(place: Place) -> None:
    async with betting(place) as (jobs, provider, truth):
        provider.wrong = [Wrong(404, ALL_MARKETS, 1), Wrong(404, MARKETS, 1, "sv"), Wrong(404, EVENT, 3)]
        done = await jobs.run()
        assert done.code in (0, 4), done.stderr
        found = await jobs.published(done)
        lost = of_markets(provider, 1)
        equal_but(found, truth, lost | of_markets(provider, 3) | {"event:3"})
        assert {key: found.get(key, {}).get("translations", {}).keys() for key in lost} == {
            key: {"en", "de"} for key in lost
        }
        (unknown,) = [note for note in done.report["notes"] if "unknown to the provider" in note]
        assert re.findall(r"\d+", unknown)[-1] == "3"
        provider.mend()
        assert await jobs.published(await jobs.well("--full")) == truth  # what was answered is not owed


async def test_markets_that_always_fail(place: Place) -> None:
    with provided(Truth.of(14)) as provider:
        jobs, truth = Independent(place, provider, attempts=2), provider.truth.translations()
        await jobs.place_bets(bets_on(provider.truth, range(8)))
        provider.wrong = without_markets(1)
        wanted = provider.truth.translations(range(8))
        for _ in range(2):
            metrics = place.directory / "metrics"
            provider.asked.clear()
            done = await jobs.partial("--metrics-file", str(metrics))
            assert done.left_out(ALL_MARKETS, MARKETS) == done.left_out_everywhere() == {"1"}
            assert all("500" in left["why"] for left in done.report["leftOut"])
            assert provider.asked[ALL_MARKETS, 1, None]
            assert re.search(r"^bridge_snapshot_left_out\w*({.*})? [1-9]", metrics.read_text(), re.MULTILINE)
            lost = of_markets(provider, 1)
            assert await jobs.published(done) == {key: wanted[key] for key in wanted.keys() - lost}

        await jobs.place_bets(bets_on(provider.truth))
        provider.wrong = without_markets(*range(10))
        many = {"attempts": 1, "max_left_out_share": 1}
        done = await jobs.partial(**many)
        equal_but(await jobs.published(done), truth, of_markets(provider, 1, 8, 9))
        assert done.left_out(ALL_MARKETS, MARKETS) == {"1", "8", "9"}
        done = await jobs.partial("--full", **many)
        assert done.left_out(ALL_MARKETS, MARKETS) == {str(event) for event in range(10)}
        equal_but(await jobs.published(done), truth, of_markets(provider, 1, 8, 9))

        provider.mend()
        done = await jobs.well()
        assert provider.ids(ALL_MARKETS) == set(range(10))
        assert await jobs.published(done) == truth


async def test_one_bad_thing_among_thousands(place: Place) -> None:
    async with betting(place, 120, 2_000) as (jobs, provider, truth):
        listed = LISTS["competitor"]
        provider.wrong = [
            Wrong(changed(None, 1234, "translation"), listed, language="sv"),
            Wrong(changed(f"A{HALF}", 1500, "translation"), listed, language="en"),
            Wrong(lambda right: right[:-5], listed, language="de"),  # comes back short
            Wrong(changed(999, "eventTranslation", "id"), EVENT, 5),
            Wrong(changed(HALF, "eventTranslation", "translations", "sv"), EVENT, 6),
            Wrong(changed(f"{HALF}A", 0, "selections", 1, "translations", "de"), ALL_MARKETS, 7),
            Wrong(changed(f"{HALF}A", 0, "selections", 1, "translation"), MARKETS, 7, "de"),
            Wrong(403, EVENT, 8, times=1),
            Wrong(500, ALL_MARKETS, 9),
            Wrong(500, MARKETS, 9),
            Wrong(400, SELECTIONS, 77),
            Wrong(400, MARKET_TYPES, 2),
        ]
        done = await jobs.partial(max_left_out_share=0.5)
        assert done.left_out(listed) == {"1234", "1500"}
        assert done.left_out(EVENT) == {"5", "6"}
        assert done.left_out(SELECTIONS) == {"77"}
        assert done.left_out(MARKET_TYPES)
        of_events = done.left_out(ALL_MARKETS, MARKETS)
        assert "9" in of_events
        assert of_events & {"7", "29"}  # the event, or the selection
        assert "8" not in done.left_out_everywhere()
        bad = {"event:5", "event:6", "selection:29", "selection-template:77", "competitor:1234"}
        bad |= {f"competitor:{n}" for n in (1500, *range(1995, 2000))}
        bad |= {f"market-type-template:{sport}:2" for sport in range(3)} | of_markets(provider, 9)
        equal_but(await jobs.published(done), truth, bad)

        provider.mend()
        done = await jobs.well()
        assert provider.ids(EVENT) == {5, 6}
        assert provider.ids(ALL_MARKETS) == {7, 9}
        assert provider.ids(SELECTIONS) == {77}
        assert await jobs.published(done) == truth


async def test_one_symbol(place: Place) -> None:
    with provided() as provider:
        jobs, truth = Independent(place, provider), provider.truth.exchanged("KWD", "OLD", "XAU")
        await jobs.place_bets(bets_on(provider.truth, currencies=["EUR", "KWD", "OLD", "XAU"]))
        provider.wrong = [Wrong(404, PRECISION, "KWD"), Wrong(500, PRECISION, "OLD")]
        spoil = changed(HALF, 40, "symbol")
        provider.wrong += [Wrong(lambda right: spoil(right) if len(right) > 40 else right, ACTIVE)]
        done = await jobs.partial("currencies")
        assert done.left_out(PRECISION) == {"KWD", "OLD"}
        assert done.left_out(ACTIVE)
        equal_but(await jobs.published(done), {s: truth[s] for s in truth.keys() - {"KWD", "OLD"}})
        provider.mend()
        done = await jobs.well("currencies")
        assert provider.ids(PRECISION) == {"KWD", "OLD"}
        assert await jobs.published(done) == truth


async def test_too_much_of_it(place: Place) -> None:
    async with betting(place, 120) as (jobs, provider, truth):
        provider.wrong = [Wrong(500, LISTS["sport"], language=LANGUAGES[1])]
        await jobs.fails()
        provider.wrong = [Wrong(500, EVENT, event) for event in range(60)]
        await jobs.fails()
        assert jobs.topics.present("translations") == {}
        done = await jobs.partial(max_left_out_share=0.6)
        assert done.left_out(EVENT) == {str(event) for event in range(60)}
        assert done.report["owed"] >= 60
        equal_but(await jobs.published(done), truth, [f"event:{event}" for event in range(60)])
        provider.wrong = provider.wrong[:8]
        for _ in range(20):  # a run asks about no more owed things after five in a row without an answer
            done = await jobs.partial()
            if done.left_out_everywhere() == {str(event) for event in range(8)}:
                break
        assert done.left_out_everywhere() == {str(event) for event in range(8)}
        provider.mend()
        done = await jobs.well()
        assert await jobs.published(done) == truth
        assert provider.ids(EVENT) == set(range(8))


async def test_a_list_of_one_currency(place: Place) -> None:
    async with betting(place) as (jobs, provider, _):
        truth = provider.truth.exchanged()
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
