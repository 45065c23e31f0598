"""`bridge translations` on the real Kafka: its records match the provider, and bets join with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.harness import Place
from tests.integration.snapshots import Jobs, Topics, expected, simulated


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
