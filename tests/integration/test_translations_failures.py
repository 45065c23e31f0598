"""A failed run leaves readers with the last complete snapshot, and reports the error and its place.

Each endpoint and each kind of invalid answer once, on a real Kafka; `test_translations_errors` has all
combinations.
"""

from __future__ import annotations

from typing import Any

import pytest

from bridge.sandbox.provider.rest.faults import RestFault
from bridge.sandbox.provider.rest.routes import Endpoint
from tests.harness import Place
from tests.integration.snapshots import Jobs, Topics, simulated, without_ids

HTML = {"Content-Type": "text/html"}
ELSEWHERE = {"Location": "https://other.example/?k=1"}

# Clients of the registry are left to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

FAILURES: list[tuple[Endpoint, dict[str, Any], int, str]] = [
    ("sports", {"status": 400}, 10, "GET /api/translations/en/sports answered HTTP 400"),
    ("regions", {"status": 401}, 3, "GET /api/translations/en/regions: HTTP 401"),
    ("leagues", {"status": 404}, 10, "GET /api/translations/en/leagues answered HTTP 404"),
    ("competitors", {"status": 429}, 10, "GET /api/translations/en/competitors failed, tried once"),
    ("sports", {"status": 302, "headers": ELSEWHERE}, 10, "points to other.example."),
    ("regions", {"body": "<html>hello</html>", "headers": HTML}, 10, "answered with invalid JSON"),
    ("leagues", {"truncate": True}, 10, "failed, tried once; at last: "),
    ("competitors", {"status": 204, "body": ""}, 10, "answered HTTP 204"),
]
LEFT_OUT: list[tuple[Endpoint, dict[str, Any], str]] = [
    ("all-event", {"status": 500}, "GET /api/translations/all/event/"),
    ("all-markets", {"status": 502, "body": "<html>", "headers": HTML}, "HTTP 502: <html>"),
    ("markets", {"status": 503}, "/markets failed, tried once; at last: HTTP 503"),
    ("all-sport", {"status": 302, "headers": ELSEWHERE}, "points to other.example."),
    ("all-region", {"body": "<html>hello</html>", "headers": HTML}, "answered with invalid JSON"),
    ("all-league", {"truncate": True}, "failed, tried once; at last: "),
    ("all-competitor", {"body": '{"id": 1, "translations": {"en": 5}}'}, "translations.en: "),
    ("selection-templates", {"status": 204, "body": ""}, "answered HTTP 204"),
    ("market-type-templates", {"body": "[[]]"}, "[0]: "),
]


async def test_each_failure_leaves_the_last_snapshot(place: Place) -> None:
    """A reader at its ends has exactly it, and no record of the failed run."""
    lacking: dict[str, Any] = {"only_in_lists": {"de"}, "only_in_all": {"sv"}, "event_members": "ids"}
    async with simulated(bets=8, **lacking) as provider:
        jobs, topics = Jobs(place, provider, attempts=1, max_left_out_share=1), Topics(place)
        await jobs.fill()
        report = await jobs.run()
        whole = topics.present("translations")
        for number, (endpoint, fault, code, says) in enumerate(FAILURES):
            provider.rest.catalogue.rename("sport", 1, f"Another name {number}")
            provider.rest.faults.clear()
            provider.rest.faults.inject(RestFault(endpoint=endpoint, times=None, **fault))
            failure = await jobs.fails()
            assert failure.exit_code == code, endpoint
            assert says in str(failure), endpoint
            (snapshot,) = topics.snapshots("translations")
            assert snapshot["id"] == report.snapshot.id, endpoint
            assert topics.present("translations") == whole, endpoint
        assert topics.at_ends("translations", snapshot) == whole
        provider.rest.faults.clear()
        assert (await jobs.run(full=True)).written == 1
        await left_out(jobs, topics)


async def left_out(jobs: Jobs, topics: Topics) -> None:
    """Failures of single entries leave their records unchanged, and are reported with the reason."""
    before = without_ids(topics.present("translations"))
    for endpoint, fault, says in LEFT_OUT:
        jobs.provider.rest.faults.clear()
        jobs.provider.rest.faults.inject(RestFault(endpoint=endpoint, times=None, **fault))
        report = await jobs.run(full=True)
        assert report.removed == 0, endpoint
        assert any(says in left.why for left in report.snapshot.left_out), endpoint
        assert (report.snapshot.complete, report.snapshot.owed > 0) == (False, True), endpoint
        assert without_ids(topics.present("translations")) == before, endpoint
    jobs.provider.rest.faults.clear()
    well = await jobs.run()
    assert (well.written, well.snapshot.complete, well.snapshot.owed) == (0, True, 0)


@pytest.mark.parametrize(("status", "code"), [(401, 3), (404, 10)])
async def test_a_failed_process(place: Place, status: int, code: int) -> None:
    """It prints the error in one line and ends with its code, without a snapshot."""
    async with simulated(bets=8) as provider:
        jobs = Jobs(place, provider)
        provider.rest.faults.inject(RestFault(endpoint="leagues", times=None, status=status))
        failed = await jobs.command("translations")
    assert (failed.returncode, failed.stdout) == (code, ""), failed.stderr
    (line,) = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert "GET /api/translations/en/leagues" in line
    assert Topics(place).snapshots("translations") == []


async def test_no_right_to_some_of_it(place: Place) -> None:
    """The rest is published, the error names the endpoint, and its earlier records stay."""
    async with simulated(bets=8) as provider:
        jobs, topics = Jobs(place, provider), Topics(place)
        await jobs.fill()
        await jobs.run()
        before = topics.present("translations")
        catalogue = provider.rest.catalogue
        for league in catalogue.entries("league"):
            catalogue.remove("league", league.id)
        catalogue.rename("sport", 1, "Another name")
        provider.rest.faults.inject(RestFault(endpoint="leagues", times=None, status=403))
        partial = await jobs.command("translations")
        assert partial.returncode == 4, partial.stderr
        assert (
            "error: the provider gives no right to /api/translations/{lang}/leagues (403)" in partial.stderr
        )
        snapshot = topics.snapshots("translations")[-1]
        assert (snapshot["scope"], snapshot["forbidden"]) == ("Partial", ["/api/translations/{lang}/leagues"])
        after = topics.at_ends("translations", snapshot)
    assert {key for key in before if before[key] != after.get(key)} == {"sport:1"}
    assert set(after["sport:1"]["translations"].values()) == {"Another name"}
