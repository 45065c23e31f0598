"""The options of `bridge translations`, its output and its errors, on a real Kafka."""

from __future__ import annotations

import signal
from threading import Event
from typing import Any

import pytest

from bridge.snapshots import job
from bridge.snapshots.lock import Busy
from bridge_sandbox.provider.rest.faults import RestFault
from tests.harness import Place, until
from tests.integration.snapshots import Jobs, Topics, expected, quiet, simulated, without_ids


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


async def test_a_narrowed_run(place: Place) -> None:
    async with simulated(bets=60) as provider:
        jobs, topics, catalogue = Jobs(place, provider), Topics(place), provider.rest.catalogue
        bets = await jobs.fill()
        event = catalogue.entries("event")[0].id
        report = await jobs.published("translations", "--event", str(event), "--event", "999")
        found = topics.present("translations")
        assert {key for key, record in found.items() if record["kind"] == "event"} == {f"event:{event}"}
        assert {record["eventId"] for record in found.values() if record["kind"] == "market"} == {event}
        assert report["kinds"]["competitor"]["records"] == len(catalogue.entries("competitor"))
        assert "1 events are unknown to the provider, such as 999" in report["notes"]
        assert (report["complete"], report["owed"]) == (False, 0)

        catalogue.rename("sport", 1, "Another name")
        narrowed = await jobs.run(kinds=["sport", "event"], languages=["sv"])
        written = {kind for kind, counts in narrowed.snapshot.counts.items() if counts.written}
        assert written == {"sport", "event"}
        sport = topics.present("translations")["sport:1"]["translations"]
        assert {language: text == "Another name" for language, text in sport.items()} == {
            "en": False,
            "sv": True,
            "de": False,
        }
        whole = await jobs.run()
        assert (whole.snapshot.complete, whole.full) == (True, True)
        assert without_ids(topics.present("translations")) == expected(provider, bets)


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


async def test_two_runs_never_overlap(place: Place) -> None:
    async with simulated(bets=8) as provider:
        jobs = Jobs(place, provider)
        await jobs.fill()
        provider.rest.faults.inject(RestFault(endpoint="leagues", times=None, delay=9))
        first = jobs.start("translations", "--json")
        await until(lambda: len(provider.rest.requests) > 6, "the leagues are asked for")
        with pytest.raises(Busy, match="another `bridge translations` is running") as caught:
            await job.ran(jobs.settings(), jobs.task(), quiet, Event(), patience=0.5)
        assert caught.value.exit_code == 1
        assert f"{place.prefix}.translations.owner" in str(caught.value)
        first.signal(signal.SIGINT)
        assert await first.wait() == 130
        provider.rest.faults.clear()
        assert Topics(place).snapshots("translations") == []
        assert (await jobs.run()).full


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
