"""A snapshot job with `--every`: repeated runs, health and metrics, and its end."""

from __future__ import annotations

import re
import signal
import time
from typing import Any

from bridge_sandbox.provider.rest.faults import RestFault
from tests.harness import Bridge, Place, until
from tests.integration.snapshots import Jobs, Topics, simulated


def logged(bridge: Bridge, event: str) -> list[dict[str, Any]]:
    """Return the log lines of an event."""
    return [line for line in bridge.lines() if line["event"] == event]


async def runs(bridge: Bridge, result: str) -> int:
    """Return the number of runs with that result, by the metrics."""
    text = (await bridge.get("/metrics")).text
    found = re.search(rf'^bridge_snapshot_runs_total{{result="{result}",.*}} (.*)$', text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


PUBLISHED, FAILED = "snapshot published", "snapshot failed, what is published stays"


async def test_it_runs_again_and_survives_a_provider_that_fails(place: Place) -> None:
    async with simulated(bets=8) as provider:
        jobs, topics = Jobs(place, provider, attempts=1), Topics(place)
        await jobs.fill()
        bridge = jobs.start("translations", "--every", "1s")
        await until(lambda: len(logged(bridge, PUBLISHED)) > 1, "a second run")
        assert [(line["full"], line["written"] > 0) for line in logged(bridge, PUBLISHED)][:2] == [
            (True, True),
            (False, False),
        ]
        assert [(await bridge.get(path)).status_code for path in ("/healthz", "/readyz", "/")] == [200] * 3
        assert (await runs(bridge, "failed"), await runs(bridge, "published") > 1) == (0, True)

        provider.rest.faults.inject(RestFault(endpoint="leagues", times=None, status=500))
        await until(lambda: bool(logged(bridge, FAILED)), "a run that fails")
        answer = await bridge.get("/readyz")
        report = answer.json()
        assert (answer.status_code, report["ok"]) == (503, False)
        assert "GET /api/translations/en/leagues failed, tried once" in report["reason"]
        assert (await bridge.get("/healthz")).status_code == 200
        assert await runs(bridge, "failed") > 0

        provider.rest.faults.clear()
        count = len(logged(bridge, PUBLISHED))
        await until(lambda: len(logged(bridge, PUBLISHED)) > count, "a run after the failures")
        assert (await bridge.get("/readyz")).status_code == 200

        provider.rest.catalogue.rename("sport", 1, "Another name")
        provider.rest.faults.inject(RestFault(endpoint="competitors", times=None, delay=20))
        provider.rest.requests.clear()
        await until(lambda: len(provider.rest.requests) > 9, "the competitors are asked for")
        last = topics.snapshots("translations")[-1]["id"]
        began = time.monotonic()
        bridge.signal(signal.SIGTERM)
        assert await bridge.wait() == 0
        assert time.monotonic() - began < 15  # it does not wait for the answer
        assert topics.snapshots("translations")[-1]["id"] == last
        assert "Another name" not in topics.present("translations")["sport:1"]["translations"].values()
        jobs.must_not_tell(bridge.text())
    assert "Traceback" not in bridge.text()


async def test_a_refused_token_ends_the_job_with_exit_3(place: Place) -> None:
    async with simulated(bets=8) as provider:
        jobs = Jobs(place, provider)
        provider.rest.faults.inject(RestFault(times=None, status=401))
        bridge = jobs.start("currencies", "--every", "15m")
        assert await bridge.wait(30) == 3
        jobs.must_not_tell(bridge.text())
    assert "error: the provider refuses the token" in bridge.text()
