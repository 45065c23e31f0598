"""The options of `bridge translations`, its output and its errors, on a real Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from bridge_sandbox.provider.rest.faults import RestFault
from tests.harness import Place
from tests.integration.snapshots import Jobs, simulated


async def test_a_plan_asks_nothing_and_holds(place: Place) -> None:
    async with simulated(only_in_lists={"de"}) as provider:
        jobs = Jobs(place, provider)
        first = await jobs.plan()
        lists = [
            f"/api/translations/{{lang}}/{kind}s" for kind in ("sport", "region", "league", "competitor")
        ]
        assert (first["atLeast"], first["atMost"], list(first["endpoints"])) == (12, 12, lists)
        assert not {name for name in place.admin().list_topics().topics if name.startswith(place.prefix)}
        await jobs.fill()
        shown = await jobs.command("translations", "--plan")
        assert shown.returncode == 0, shown.stderr
        assert lists[0] in shown.stdout
        assert "at 1000 requests a second: " in shown.stdout
        narrowed: list[dict[str, Any]] = [
            {},
            {"kinds": ["event"]},
            {"full": True},
            {"events": [1, 20_000_003]},
        ]
        for options in narrowed:
            provider.rest.requests.clear()
            plan = await jobs.plan(**options)
            assert not provider.rest.requests
            report = await jobs.run(**options)
            assert plan["atLeast"] <= report.requests, options
            assert plan["atMost"] is None or report.requests <= plan["atMost"], options


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kind", "team"], "--kind team is not one of sport, region, league"),
        (["--language", "fr"], "--language fr is not one of api.languages (en, sv, de)"),
        (["--every", "soon"], "'soon' is not an age such as 90s, 30m, 2h, 3d or 1h30m"),
        (["--every", "0s"], "--every must be between 1s and 366d"),
        (["--every", "999999999d"], "is too long: an age is at most 36500d"),
        (["--every", "367d"], "--every must be between 1s and 366d"),
        (["--every", "1h", "--json"], "--every serves metrics over HTTP"),
        (
            ["--metrics-file", "/nowhere/bridge.prom"],
            "--metrics-file: cannot write /nowhere/bridge.prom: No s",
        ),
        (["--metrics-file", "/"], "--metrics-file: cannot write /: Is a directory"),
        (["--metrics-file", "x" * 300], "File name too long. Name a file in"),
        (["--event", "x"], "unable to parse string as an integer"),
        (["--event", "0"], "--event"),
    ],
)
def test_wrong_options(place: Place, arguments: list[str], says: str) -> None:
    settings = {"API__LANGUAGES": '["en","sv","de"]', "API__BASE_URL": "http://127.0.0.1:1"}
    refused = place.run("translations", *arguments, **settings)
    assert refused.returncode == 2
    assert says in " ".join(refused.stderr.replace("│", " ").split())


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
