"""A run that takes long publishes on its way: each snapshot is whole, and a kill costs nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridge.snapshots import job
from tests.harness import Place, until
from tests.integration.snapshots import Datum, Jobs, Topics, expected, simulated, without_ids

LISTED = ("sport", "region", "league", "competitor")


def asked_about(provider: Any) -> set[int]:
    """The events whose names were asked for."""
    return {
        int(exchange.target.rpartition("/")[2])
        for exchange in provider.rest.requests
        if exchange.endpoint == "all-event"
    }


def events_in(records: dict[str, Datum]) -> list[int]:
    return [record["id"] for record in records.values() if record["kind"] == "event"]


async def test_each_portion_is_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PORTION_SECONDS", 0.2)
    async with simulated(bets=60) as provider:
        jobs, topics = Jobs(place, provider, requests_per_second=20), Topics(place)
        bets = await jobs.fill()
        report = await jobs.run()
        wanted = expected(provider, bets)
    *portions, last = topics.snapshots("translations")
    assert len(portions) > 2
    assert (last["id"], last["scope"], last["owed"]) == (report.snapshot.id, "Complete", 0)
    assert {portion["scope"] for portion in portions} == {"Partial"}
    newest, before = 2**63, set[str]()
    for number, portion in enumerate(portions, 1):
        assert portion["id"] == f"{report.snapshot.id}.{number}"
        found = topics.at_ends("translations", portion)
        counts = {kind: found_of["records"] for kind, found_of in portion["counts"].items()}
        assert sum(counts.values()) == len(found), "no record of another portion is within the ends"
        assert all(counts[kind] for kind in LISTED)
        new = events_in({key: record for key, record in found.items() if key not in before})
        assert max(new, default=0) < newest, "the newest events come first"
        newest, before = min([newest, *new]), {*found}
    assert without_ids(topics.present("translations")) == wanted
    assert without_ids(topics.at_ends("translations", last)) == wanted
    seen = {record["snapshotId"] for record in topics.all("translations")}
    assert seen <= {snapshot["id"] for snapshot in (*portions, last)}
    assert report.written >= len(wanted)


@pytest.mark.long
async def test_a_first_run_that_is_killed_goes_on(place: Place) -> None:
    async with simulated(bets=60) as provider:
        jobs, topics = Jobs(place, provider, requests_per_second=1.0), Topics(place)
        bets = await jobs.fill()
        bridge = jobs.start("translations", API__CONCURRENCY="1")
        await until(lambda: bool(topics.snapshots("translations")), "names within a minute", seconds=60)
        await asyncio.sleep(1)
        bridge.kill()
        assert events_in(first := topics.present("translations"))
        provider.rest.requests.clear()
        quick = Jobs(place, provider)
        report = await quick.published("translations")
        assert (report["full"], report["complete"]) == (True, True)
        assert not asked_about(provider) & {*events_in(first)}
        assert without_ids(topics.present("translations")) == expected(provider, bets)
        assert (await quick.published("translations"))["full"] is False
