"""The options of `bridge translations`, its output and its errors, on a real Kafka."""

from __future__ import annotations

from typing import Any

from bridge.config.api import LISTED
from bridge_sandbox.provider.rest.faults import RestFault
from tests.harness import Place
from tests.integration.snapshots import Jobs, simulated


async def test_a_plan_asks_nothing_and_holds(place: Place) -> None:
    async with simulated(only_in_lists={"de"}) as provider:
        jobs = Jobs(place, provider)
        first = await jobs.plan()
        lists = [f"/api/translations/{{lang}}/{kind}s" for kind in LISTED]
        assert (first["atLeast"], first["atMost"], list(first["endpoints"])) == (12, 12, lists)
        assert not {name for name in place.admin().list_topics().topics if name.startswith(place.prefix)}
        await jobs.fill()
        shown = await jobs.command("translations", "--plan")
        assert shown.returncode == 0, shown.stderr
        assert lists[0] in shown.stdout
        assert "at 1000 requests a second: " in shown.stdout
        narrowed: list[dict[str, Any]] = [{}, {"full": True}, {"events": [1, 20_000_003]}]
        for options in narrowed:
            provider.rest.requests.clear()
            plan = await jobs.plan(**options)
            assert not provider.rest.requests
            report = await jobs.run(**options)
            assert plan["atLeast"] <= report.requests, options
            assert plan["atMost"] is None or report.requests <= plan["atMost"], options


async def test_metrics_for_a_collector_of_files(place: Place) -> None:
    file = place.directory / "bridge.prom"
    async with simulated(bets=8) as provider:
        jobs = Jobs(place, provider, attempts=1)
        provider.rest.faults.inject(RestFault(endpoint="leagues", status=500))
        failed = await jobs.command("translations", "--metrics-file", str(file))
        assert (failed.returncode, file.exists()) == (10, False)
        report = await jobs.published("translations", "--metrics-file", str(file))
        lines = file.read_text().splitlines()
        assert 'bridge_snapshot_runs_total{result="published",snapshot="translations"} 1.0' in lines
        assert f'bridge_snapshot_written_total{{snapshot="translations"}} {report["written"]:.1f}' in lines
        assert [path.name for path in place.directory.glob("bridge.prom*")] == ["bridge.prom"]
