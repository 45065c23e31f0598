"""A failed run leaves readers with the last complete snapshot, and reports the error and its place.

On a real Kafka; `tests/unit/rest` has every kind of invalid answer, `tests/unit/snapshots` every endpoint,
and `test_independent` what is left out.
"""

from __future__ import annotations

from typing import Any

from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.routes import Endpoint
from tests.harness import Place
from tests.integration.snapshots import Jobs, Topics, simulated

FAILURES: list[tuple[Endpoint, dict[str, Any], int, str]] = [
    ("sports", {"status": 400}, 10, "GET /api/translations/en/sports answered HTTP 400"),
    ("regions", {"status": 401}, 3, "GET /api/translations/en/regions: HTTP 401"),
    ("leagues", {"truncate": True}, 10, "failed, tried once; at last: "),
]


async def test_each_failure_leaves_the_last_snapshot(place: Place) -> None:
    async with simulated(bets=8) as provider:
        jobs, topics = Jobs(place, provider, attempts=1), Topics(place)
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
