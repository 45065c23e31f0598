"""`bridge translations` on the real Kafka: its records match the provider, and bets join with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, get_args

import pytest

from bridge_sandbox.provider.rest.routes import ENDPOINTS, Currencies
from bridge_sandbox.provider.world.entities import Sizes
from tests.harness import Place
from tests.integration.snapshots import Jobs, Topics, expected, simulated, without_ids

LARGE = Sizes(sports=40, regions=60, leagues=1_000, competitors=4_000, events=400)
FIVE = ("en", "sv", "de", "el", "ja")


@pytest.mark.long
async def test_a_large_provider(place: Place) -> None:
    lacking: dict[str, Any] = {"only_in_lists": {"ja"}, "only_in_all": {"el"}, "event_members": "ids"}
    async with simulated(LARGE, bets=60, languages=FIVE, **lacking) as provider:
        jobs, topics, catalogue = (
            Jobs(place, provider, languages=FIVE),
            Topics(place),
            provider.rest.catalogue,
        )
        wanted = expected(provider, await jobs.fill())
        report = await jobs.published("translations")
        found = topics.present("translations")
        assert without_ids(found) == wanted
        assert {record["snapshotId"] for record in found.values()} == {report["snapshot"]}
        assert (report["written"], report["removed"], report["full"]) == (len(wanted), 0, True)
        endpoints = Counter(exchange.endpoint for exchange in provider.rest.requests)
        assert set(endpoints) == set(ENDPOINTS) - set(get_args(Currencies))
        assert {exchange.status for exchange in provider.rest.requests} == {200}
        assert report["requests"] == endpoints.total()

        again = await jobs.run()
        assert (again.written, again.removed, again.full, again.bets) == (0, 0, False, 0)

        unused = sorted(
            {known.id for known in catalogue.truth() if known.kind == "league"}
            - {record["leagueId"] for record in found.values() if record["kind"] == "event"}
        )
        catalogue.rename("league", unused[0], "Ligan", "sv")
        renamed = await jobs.run()
        assert (renamed.written, renamed.removed) == (1, 0)
        key = f"league:{unused[0]}"
        wanted[key]["translations"]["sv"] = "Ligan"
        assert topics.present("translations")[key] == {**wanted[key], "snapshotId": renamed.snapshot.id}

        catalogue.remove("league", unused[1])
        assert (await jobs.run()).removed == 0
        removed = await jobs.run(full=True)
        if removed.removed == 0:  # one of so few leagues is more than the share
            removed = await jobs.run(full=True)
        assert (removed.written, removed.removed) == (0, 1)
        del wanted[f"league:{unused[1]}"]
        assert without_ids(topics.present("translations")) == wanted


async def test_no_refusal_at_the_rate_that_is_allowed(place: Place) -> None:
    rate = 60
    async with simulated(rate=rate, burst=8, only_in_lists={"de"}) as provider:
        jobs = Jobs(place, provider, requests_per_second=rate, concurrency=8)
        await jobs.fill()
        await jobs.run()
        log = list(provider.rest.requests)
    assert {exchange.status for exchange in log} == {200}
    seconds = log[-1].at - log[0].at
    assert len(log) - 4 < seconds * rate


async def test_every_id_of_a_bet_joins_with_its_text(place: Place) -> None:
    async with simulated(bets=150) as provider:
        jobs, topics = Jobs(place, provider), Topics(place)
        wanted = expected(provider, await jobs.fill())
        report = await jobs.run()
        languages = set(map(str, provider.rest.policy.languages))
    names = {key: record["translations"] for key, record in topics.present("translations").items()}
    events = {k: r for k, r in topics.present("translations").items() if r["kind"] == "event"}
    joined: Counter[str] = Counter()
    lines: defaultdict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for bet in topics.present("bets").values():
        for item in bet["selections"] or ():
            for key in _keys(item, events):
                assert names[key] == wanted[key]["translations"], key
                assert names[key].keys() == languages, key
                joined[key.partition(":")[0]] += 1
            for part in (item, *(item["betBuilderItems"] or ())):
                if item["event"] and part["market"]:
                    event, market = item["event"]["id"], part["market"]
                    name = names[f"market:{event}:{market['id']}"]["en"]
                    lines[event, market["type"]][market["id"]] = name
            joined["bet builder"] += bool(item["betBuilderItems"])
    assert joined.keys() == {row.kind for row in report.coverage} | {"bet builder"}
    assert {row.share(language) for row in report.coverage for language in languages} == {1.0}
    twins = [names for names in lines.values() if len(names) > 1]
    assert twins
    assert all(len(set(names.values())) == len(names) for names in twins)


def _keys(item: dict[str, Any], events: dict[str, Any]) -> list[str]:
    """The keys of the records that an item of a bet refers to; teams by way of its event."""
    sport, event = item["sportId"], item["event"] and item["event"]["id"]
    found = [f"sport:{sport}", f"league:{item['competitionId']}", f"region:{item['countryId']}"]
    if event:
        found.append(f"event:{event}")
        teams = events[f"event:{event}"]["competitorIds"]
        assert len(teams) > 1
        found += [f"competitor:{team}" for team in teams]
    for part in (item, *(item["betBuilderItems"] or ())):
        found.append(f"selection-template:{part['selectionId']}")
        if event:
            found.append(f"selection:{part['selectionId']}")
        if part["market"]:
            found.append(f"market-type-template:{sport}:{part['market']['type']}")
            if event:
                found.append(f"market:{event}:{part['market']['id']}")
    return found
