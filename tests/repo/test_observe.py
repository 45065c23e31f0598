"""The alerts and their runbook, by Prometheus' own tool where that is to be had."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts import ALERTS, INTERVAL, QUERIES, RULES, judge, run
from tests.repo.manifests import SERVING_JOBS, build, of_kind
from tests.repo.source import ROOT

NAMES = [alert["alert"] for alert in ALERTS]
TESTS = ROOT / "tests"
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "observability.md").read_text("utf-8")


def check(rules: dict[str, Any], directory: Path) -> subprocess.CompletedProcess[str]:
    """Have Prometheus' tool check rules."""
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump(rules), "utf-8")
    return run(directory, "check", "rules", file)


def fires(
    directory: Path,
    alert: str,
    series: dict[str, str],
    expected: dict[str, list[dict[str, str]]],
    interval: int = INTERVAL,
) -> None:
    """Assert with which labels an alert fires at these times, given the values of series each `interval`."""
    judge(
        directory,
        series,
        {time: {alert: found} for time, found in expected.items()},
        [rule for rule in ALERTS if rule["alert"] == alert],
        interval,
    )


def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    ran = check(RULES, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert f"{len(ALERTS)} rules found" in ran.stdout
    wrong = {"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "max by (feed) (up"}]}]}
    assert check(wrong, tmp_path).returncode != 0


def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    rules = [{"record": f"query_{number}", "expr": query} for number, query in enumerate(QUERIES)]
    ran = check({"groups": [{"name": "g", "rules": rules}]}, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(QUERIES) > 20


def test_panels_lie_within_the_grid_and_not_on_each_other() -> None:
    panels = json.loads((ROOT / "k8s" / "observe" / "dashboard.json").read_text("utf-8"))["panels"]
    taken: Counter[tuple[int, int]] = Counter()
    for place in (panel["gridPos"] for panel in panels):
        columns = range(place["x"], place["x"] + place["w"])
        assert columns.stop <= 24, place
        taken.update(product(columns, range(place["y"], place["y"] + place["h"])))
    assert set(taken.values()) == {1}


def test_each_alert_is_in_the_runbook_and_on_the_page() -> None:
    assert re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE) == ["A shell", "Stop every bridge", *NAMES]
    assert re.findall(r"^\| `(Settlement\w+)` \| (\w+) \|", PAGE, re.MULTILINE) == [
        (alert["alert"], alert["labels"]["severity"]) for alert in ALERTS
    ]
    _, *entries = RUNBOOK.partition("\n## Stop every bridge\n")[2].split("\n## ")
    for entry in entries:
        assert re.match(r"\w+\n\n```\n(bridge|kubectl) ", entry), entry


def test_the_entry_of_old_names_begins_where_the_cause_is() -> None:
    entry = RUNBOOK.partition("\n## SettlementNamesOld\n")[2].partition("\n## ")[0]
    deployments = of_kind("Deployment", build(SERVING_JOBS).resources)
    [logged] = re.findall(r"^kubectl -n settlement logs deployment/(\S+) ", entry, re.MULTILINE)
    assert logged in deployments
    assert logged.replace("translations", "currencies") in deployments
    [unit] = re.findall(r"^journalctl .*-u (\S+?)@", entry, re.MULTILINE)
    assert (ROOT / "systemd" / f"{unit}@.service").exists()
    assert "translations --plan" not in entry


FIRED = {
    "virtual/test_alerts.py",
    "unit/snapshots/test_alerts.py",
    "faults/test_foreign_transaction.py",
    "integration/test_snapshot_rights.py",
}
"""Tests in which a cause happens on the simulator or on a real broker."""
WRITTEN = {"SettlementNamesNotPublished"}
"""The alert of what neither has: Kubernetes."""


def test_each_alert_fires_in_a_test() -> None:
    calls = [node for file in FIRED for node in ast.walk(ast.parse((TESTS / file).read_text("utf-8")))]
    given = [word.arg or "" for call in calls if isinstance(call, ast.Call) for word in call.keywords]
    fired = {name for name in given if name.startswith("Settlement")}
    written = set(re.findall(r"\bSettlement\w+", Path(__file__).read_text("utf-8").partition("ALIVE =")[2]))
    assert written >= WRITTEN
    assert fired.isdisjoint(WRITTEN)
    assert fired | WRITTEN == set(NAMES)


ALIVE = "1x4000"
"""A value each 15 s for more than 16 hours."""
CRASH_LOOP = " ".join(["0x3 stale _x8"] * 40)
"""A process that is there for one minute of three."""


def test_a_feed_without_a_process_is_told_beside_others(tmp_path: Path) -> None:
    one, two = 'bridge_leader{feed="one",pod="a"}', 'bridge_leader{feed="two",pod="b"}'
    standby = 'bridge_leader{feed="two",pod="c"}'
    fires(
        tmp_path,
        "SettlementNobodyOwns",
        {one: "1x5 stale", two: "1x2120", standby: "0x2120"},
        {"8m": [], "12m": [], "14m": [{"feed": "one"}], "12h": [{"feed": "one"}], "70h": [{"feed": "one"}]},
        interval=120,
    )


def test_a_feed_whose_process_dies_again_and_again_has_no_owner(tmp_path: Path) -> None:
    one, two = 'bridge_leader{feed="one",pod="a"}', 'bridge_leader{feed="two",pod="b"}'
    looping = {"1m": [], "3m": [{"feed": "one"}], "20m": [{"feed": "one"}], "60m": [{"feed": "one"}]}
    fires(tmp_path, "SettlementNobodyOwns", {one: CRASH_LOOP}, looping)
    fires(tmp_path, "SettlementNobodyOwns", {one: CRASH_LOOP, two: ALIVE}, looping)


def test_a_feed_that_changes_its_owner_is_owned(tmp_path: Path) -> None:
    one, two = 'bridge_leader{feed="one",pod="a"}', 'bridge_leader{feed="one",pod="b"}'
    fires(
        tmp_path,
        "SettlementNobodyOwns",
        {one: "1x40 stale", two: "0x44 1x200"},
        {f"{minute}m": [] for minute in range(1, 20)},
    )


def test_no_bridge_at_all_is_told(tmp_path: Path) -> None:
    fires(tmp_path, "SettlementNobodyOwns", {}, {"1m": [], "3m": [{}]})
    one = 'bridge_leader{feed="one",pod="a"}'
    fires(tmp_path, "SettlementNobodyOwns", {one: "1x40 stale"}, {"15m": [{"feed": "one"}]})


def test_a_transaction_that_hangs_is_told_as_soon_as_it_is_scraped(tmp_path: Path) -> None:
    name = 'bridge_open_transaction_seconds{feed="one",topic="t",partition="3",pod='
    hanging = {f'{name}"a"}}': "5 20 35 50 65 stale", f'{name}"b"}}': "0 15 30 45 stale"}
    told = [{"feed": "one", "topic": "t", "partition": "3"}]
    expected = {"30s": [], "45s": told, "60s": told, "75s": []}
    fires(tmp_path, "SettlementTransactionHangs", hanging, expected)
    fires(tmp_path, "SettlementTransactionHangs", {f'{name}"a"}}': "10 25 40 stale"}, {"30s": [], "2m": []})


def test_transactions_that_nobody_looks_for_are_told(tmp_path: Path) -> None:
    name = 'bridge_transactions_looked_timestamp_seconds{feed="one",pod='
    leader = {'bridge_leader{feed="one",pod="a"}': ALIVE, 'bridge_leader{feed="one",pod="c"}': CRASH_LOOP}
    blind, looking = leader | {f'{name}"a"}}': "60x100"}, {f'{name}"b"}}': "0+15x100"}
    fires(tmp_path, "SettlementTransactionsUnwatched", blind, {"5m": [], "8m": [{"feed": "one"}]})
    fires(tmp_path, "SettlementTransactionsUnwatched", blind | looking, {"8m": [], "20m": []})
    fires(tmp_path, "SettlementTransactionsUnwatched", leader, {"2m": [], "8m": [{"feed": "one"}]})
    again = {name: values.replace("x100", "x40 660+15x20") for name, values in blind.items()}
    fires(tmp_path, "SettlementTransactionsUnwatched", again, {"9m": [{"feed": "one"}], "11m": []})


def test_a_gap_is_told_for_an_hour_and_not_again(tmp_path: Path) -> None:
    one, told = 'bridge_last_gap_timestamp_seconds{feed="one",pod="a"}', [{"feed": "one"}]
    expected = {"5m": [], "11m": told, "69m": told, "71m": [], "2h10m": [], "4h": [], "4h8m": []}
    fires(tmp_path, "SettlementGap", {one: "_x40 600x439 stale _x47 600x2000"}, expected)
    fires(tmp_path, "SettlementGap", {one: "_x40 600x1 stale"}, {"11m": told, "69m": told, "71m": []})
    unseen = {one: "_x360 600x2000"}
    fires(tmp_path, "SettlementGap", unseen, {"89m": [], "91m": told, "149m": told, "151m": []})
    another = {one: "60x40 _x320 600x2000"}
    fires(tmp_path, "SettlementGap", another, {"61m": [], "89m": [], "91m": told, "149m": told, "151m": []})
    stopped = {'bridge_state{feed="one",pod="a",state="StoppedOnGap"}': "0x40 1 stale"}
    fires(tmp_path, "SettlementGap", stopped, {"9m": [], "11m": told, "19m": told, "21m": []})


def test_names_of_a_job_without_a_process_grow_old(tmp_path: Path) -> None:
    series = {'bridge_snapshot_timestamp_seconds{snapshot="translations",pod="a"}': "0+120x90 stale"}
    found = [{"snapshot": "translations"}]
    times: dict[str, list[dict[str, str]]] = {"4h": [], "9h": [], "9h10m": found, "3d": found}
    fires(tmp_path, "SettlementNamesOld", series, times, interval=120)


def test_a_standby_that_dies_again_and_again_is_none(tmp_path: Path) -> None:
    one, two = 'bridge_leader{feed="one",pod="a"}', 'bridge_leader{feed="one",pod="b"}'
    fires(tmp_path, "SettlementNoStandby", {one: ALIVE, two: CRASH_LOOP}, {"40m": [{"feed": "one"}]})
    restart: dict[str, list[dict[str, str]]] = {f"{minute}m": [] for minute in range(5, 60)}
    for away in (8, 24):
        fires(tmp_path, "SettlementNoStandby", {one: ALIVE, two: f"0x80 stale _x{away} 0x200"}, restart)


def test_a_process_that_dies_again_and_again_is_down(tmp_path: Path) -> None:
    one, two = 'up{job="m/settlement-bridge",instance="a"}', 'up{job="m/settlement-bridge",instance="b"}'
    looping = " ".join(["1x3 0x7"] * 40)
    down = {"job": "m/settlement-bridge", "instance": "a"}
    fires(tmp_path, "SettlementTargetDown", {one: looping, two: ALIVE}, {"2m": [], "20m": [down]})
    fires(tmp_path, "SettlementTargetDown", {one: "1x40 0x40", two: ALIVE}, {"12m": [], "17m": [down]})
    fires(tmp_path, "SettlementTargetDown", {one: "1x40 0x8 1x100"}, {f"{m}m": [] for m in range(30)})


def test_a_feed_that_never_stays_live_is_told_though_it_dies_in_between(tmp_path: Path) -> None:
    live, one = 'bridge_state{feed="one",pod="a",state="Live"}', {"feed": "one"}
    fires(tmp_path, "SettlementNotLive", {live: CRASH_LOOP}, {"20m": [], "45m": [one]})
    fires(tmp_path, "SettlementNotLive", {live: "1x40 0x400"}, {"30m": [], "55m": [one]})
    fires(tmp_path, "SettlementNotLive", {live: "1x40 0x40 1x400"}, {f"{m}m": [] for m in range(0, 90, 5)})


def test_an_old_position_is_told_though_its_owner_dies_in_between(tmp_path: Path) -> None:
    series = {'bridge_revision_timestamp_seconds{feed="one",pod="a"}': CRASH_LOOP.replace("0x3", "-90000x3")}
    fires(tmp_path, "SettlementRevisionOld", series, {"4m": [], "30m": [{"feed": "one"}]})


def test_an_old_position_is_told_though_nobody_knows_it_any_more(tmp_path: Path) -> None:
    one = 'bridge_revision_timestamp_seconds{feed="one",pod="a"}'
    two = 'bridge_revision_timestamp_seconds{feed="one",pod="b"}'
    gone = {one: "0+15x40 stale"}
    fires(tmp_path, "SettlementRevisionOld", gone, {"6h": [], "6h17m": [{"feed": "one"}]})
    fires(tmp_path, "SettlementRevisionOld", gone | {two: "_x60 900+15x4000"}, {"6h": [], "12h": []})
    moved = gone | {two: "_x60 -90000x60 1800+15x100"}
    fires(tmp_path, "SettlementRevisionOld", moved, {"15m": [], "27m": [{"feed": "one"}], "32m": []})


@pytest.mark.parametrize(
    ("alert", "metric", "ill", "well"),
    [
        ("SettlementNobodyOwns", "bridge_leader", "0x100", "1x100"),
        ("SettlementNotLive", 'bridge_state{state="Live"', "0x400", "1x400"),
        ("SettlementRevisionOld", "bridge_revision_timestamp_seconds", "-90000x100", "0+15x100"),
        ("SettlementCommitStalled", "bridge_last_commit_timestamp_seconds", "-90000x100", "0+15x100"),
        ("SettlementNamesOwed", "bridge_snapshot_owed", "1x4000", "0x4000"),
    ],
)
def test_another_namespace_hides_nothing(
    tmp_path: Path, alert: str, metric: str, ill: str, well: str
) -> None:
    name, _, label = metric.partition("{")
    kind = "snapshot" if "snapshot" in name else "feed"

    def series(place: str) -> str:
        return f'{name}{{namespace="{place}",{kind}="one",{label}}}'

    hours = {"SettlementNamesOwed": "7h", "SettlementNotLive": "55m"}
    found = {hours.get(alert, "20m"): [{"namespace": "production", kind: "one"}]}
    fires(tmp_path, alert, {series("production"): ill, series("dev"): well}, found)


def test_a_standby_that_comes_minutes_later_is_waited_for(tmp_path: Path) -> None:
    one, two = 'bridge_leader{feed="one",pod="a"}', 'bridge_leader{feed="one",pod="b"}'
    never: dict[str, list[dict[str, str]]] = {f"{minute}m": [] for minute in range(60)}
    fires(tmp_path, "SettlementNoStandby", {one: "1x300", two: "_x16 0x300"}, never)
    stopped = {one: "1x40 stale _x100 1x200", two: "0x40 stale _x112 0x200"}
    fires(tmp_path, "SettlementNoStandby", stopped, never)


def test_another_namespace_is_no_standby(tmp_path: Path) -> None:
    series = {f'bridge_leader{{namespace="{place}",feed="one"}}': ALIVE for place in ("production", "dev")}
    found = [{"namespace": place, "feed": "one"} for place in ("production", "dev")]
    fires(tmp_path, "SettlementNoStandby", series, {"30m": found})


def test_a_snapshot_job_that_never_succeeded_is_told(tmp_path: Path) -> None:
    name = "settlement-bridge-translations"
    labels = f'{{cronjob="{name}",namespace="n"}}'
    created, succeeded = (
        f"kube_cronjob_{what}{labels}" for what in ("created", "status_last_successful_time")
    )
    found = [{"cronjob": name, "namespace": "n"}]
    alert = "SettlementNamesNotPublished"
    fires(tmp_path, alert, {created: "0x4000"}, {"5h": [], "6h1m": found, "12h": found})
    fires(tmp_path, alert, {created: "0x4000", succeeded: "_x1200 18000x3000"}, {"6h1m": [], "11h1m": found})
    fires(tmp_path, alert, {created: "0x4000", succeeded: "_x1600 24000x500"}, {"6h1m": found, "7h": []})
    other = succeeded.replace('"n"', '"dev"')
    fires(tmp_path, alert, {created: "0x4000", other: "0+15x4000"}, {"5h": [], "6h1m": found, "12h": found})
