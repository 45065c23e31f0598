"""`bridge translations` on the real Kafka: its records match the provider, and bets join with them."""

from __future__ import annotations

from collections import defaultdict

from tests.harness import Place
from tests.integration.snapshots import Jobs, Mentioned, Topics, expected, simulated


async def test_every_id_of_a_bet_joins_with_its_text(place: Place) -> None:
    async with simulated(bets=150) as provider:
        jobs, topics = Jobs(place, provider), Topics(place)
        wanted = expected(provider, await jobs.fill())
        report = await jobs.run()
        languages = set(map(str, provider.rest.policy.languages))
    records, bets = topics.present("translations"), [*topics.present("bets").values()]
    mentioned = Mentioned.by(bets)
    keys = {key for key in mentioned.keys if key in wanted or not key.startswith("selection:")}
    for event in mentioned.events:
        keys |= {f"competitor:{team}" for team in records[f"event:{event}"]["competitorIds"]}
    for key in keys:
        assert records[key]["translations"] == wanted[key]["translations"], key
        assert records[key]["translations"].keys() == languages, key
    assert {key.partition(":")[0] for key in keys} == {row.kind for row in report.coverage}
    assert {row.share(language) for row in report.coverage for language in languages} == {1.0}
    assert any(item["betBuilderItems"] for bet in bets for item in bet["selections"] or ())
    lines: defaultdict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for item in (item for bet in bets for item in bet["selections"] or ()):
        for part in (item, *(item["betBuilderItems"] or ())):
            if item["event"] and part["market"]:
                event, market = item["event"]["id"], part["market"]
                name = records[f"market:{event}:{market['id']}"]["translations"]["en"]
                lines[event, market["type"]][market["id"]] = name
    twins = [names for names in lines.values() if len(names) > 1]
    assert twins
    assert all(len(set(names.values())) == len(names) for names in twins)
