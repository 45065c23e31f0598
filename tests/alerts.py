"""The alerts of k8s/observe, and what Prometheus' own tool makes of scrapes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import Metric

from tests.promtool import promtool
from tests.repo.source import ROOT
from tests.tools import lacking, ran

RULES: dict[str, Any] = yaml.safe_load((ROOT / "k8s" / "observe" / "rules.yaml").read_text("utf-8"))["spec"]
ALERTS: list[dict[str, Any]] = [rule for group in RULES["groups"] for rule in group["rules"]]
_VARIABLES = {"$namespace": "n", "$feed": "settlement-v4", "$__rate_interval": "1m"}
"""Grafana's variables, and a value of each."""


def _filled(query: str) -> str:
    for name, value in _VARIABLES.items():
        query = query.replace(name, value)
    return query


_DASHBOARD = json.loads((ROOT / "k8s" / "observe" / "dashboard.json").read_text("utf-8"))
QUERIES = [_filled(one["expr"]) for panel in _DASHBOARD["panels"] for one in panel.get("targets", ())]
"""Those of the dashboard."""
INTERVAL = 15
"""Seconds between two scrapes, and between two evaluations of the rules."""
Labels = Mapping[str, str]


def run(directory: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Prometheus' tool. Skips the test where there is none."""
    tool = promtool()
    if tool is None:
        lacking("there is no promtool: neither on the PATH nor in a package of this system")
    return ran(tool, *arguments, cwd=directory)


def judge(
    directory: Path,
    series: Mapping[str, str],
    expected: Mapping[str, Mapping[str, Sequence[Labels]]],
    alerts: Sequence[Mapping[str, Any]] = ALERTS,
    interval: int = INTERVAL,
) -> None:
    """Assert which of the alerts fire, with which labels, at each of these times, and that no other does.

    `series` are in the notation of promtool, with a value each `interval` seconds.
    """
    bare = [{name: value for name, value in rule.items() if name != "annotations"} for rule in alerts]
    severity = {rule["alert"]: rule["labels"] for rule in alerts}
    assert {name for found in expected.values() for name in found} <= severity.keys()
    times = [
        {
            "alertname": name,
            "eval_time": time,
            "exp_alerts": [{"exp_labels": {**labels, **severity[name]}} for labels in found.get(name, ())],
        }
        for time, found in expected.items()
        for name in severity
    ]
    (directory / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": bare}]}), "utf-8")
    _evaluate(directory, series, interval, rule_files=["rules.yaml"], alert_rule_test=times)


def _evaluate(
    directory: Path,
    series: Mapping[str, str],
    interval: int = INTERVAL,
    *,
    rule_files: Sequence[str] = (),
    **expected: Sequence[Any],
) -> None:
    given = [{"series": name, "values": values} for name, values in series.items()]
    test = {
        "rule_files": list(rule_files),
        "evaluation_interval": f"{interval}s",
        "tests": [{"interval": f"{interval}s", "input_series": given, **expected}],
    }
    (directory / "test.yaml").write_text(yaml.safe_dump(test), "utf-8")
    done = run(directory, "test", "rules", "test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


class Scrapes:
    """What a scraper has got from processes, and what is expected of the alerts. Times are since the start.

    Prometheus' tool begins at 1970, so `epoch`, Unix seconds of the start, is taken off all timestamps. What
    is left is multiplied by `speed`, where the processes live that many times slower than the scraper.
    """

    def __init__(self, epoch: float, speed: float = 1, interval: int = INTERVAL) -> None:
        self._epoch = epoch
        self._speed = speed
        self._interval = interval
        self._values: dict[str, dict[int, float]] = {}
        self._expected: dict[str, dict[str, Sequence[Labels]]] = {}
        self._last = 0

    def take(self, seconds: float, labels: Labels, families: Iterable[Metric]) -> None:
        """Take the metrics of a process, which has these labels."""
        number = round(seconds / self._interval)
        self._last = max(self._last, number)
        for family in families:
            for sample in family.samples:
                pairs = ",".join(f'{key}="{value}"' for key, value in {**labels, **sample.labels}.items())
                is_time = sample.name.endswith("_timestamp_seconds")
                value = (sample.value - self._epoch) * self._speed if is_time else sample.value
                self._values.setdefault(f"{sample.name}{{{pairs}}}", {})[number] = value

    def has(self, series: str) -> bool:
        """Whether a series that begins so was in a scrape."""
        return any(name.startswith(series) for name in self._values)

    def expect(self, **alerts: Labels | Sequence[Labels]) -> None:
        """Expect, as of the last scrape, that these alerts fire with these labels, and that no other does."""
        self._expected[f"{self._last * self._interval}s"] = {
            name: [labels] if isinstance(labels, Mapping) else labels for name, labels in alerts.items()
        }

    def judge(self, directory: Path, *names: str) -> None:
        """Assert all that was expected, at the end none; only of these alerts if names are given."""
        *_, last = self._expected.values()
        assert not last, "an alert that has fired must clear in the end"
        alerts = [alert for alert in ALERTS if not names or alert["alert"] in names]
        judge(directory, self._series(), self._expected, alerts, self._interval)

    def answer(self, directory: Path, queries: Iterable[str]) -> None:
        """Assert that series give each query an answer, at one of the scrapes at least."""
        queries = [query.removesuffix(" or vector(0)") for query in queries]
        assert "vector(" not in "".join(queries)
        time = f"{self._last * self._interval}s"
        tests = [
            {
                # What is not a number, as of an empty histogram, does not equal itself.
                "expr": f"max_over_time((count(({query}) == ({query})))[{time}:{self._interval}s]) > bool 0",
                "eval_time": time,
                "exp_samples": [{"labels": "{}", "value": 1}],
            }
            for query in queries
        ]
        _evaluate(directory, self._series(), self._interval, promql_expr_test=tests)

    def _series(self) -> dict[str, str]:
        return {name: self._notation(values) for name, values in self._values.items()}

    def _notation(self, values: Mapping[int, float]) -> str:
        """A series that a scrape lacks is stale at once, and absent from then on."""
        tokens: list[str] = []
        for number in range(self._last + 1):
            if number in values:
                tokens.append(f"{values[number]:.3f}")
            else:
                tokens.append("stale" if number - 1 in values else "_")
        runs = [(token, len(list(same))) for token, same in groupby(tokens)]
        return " ".join(token if count == 1 else _repeated(token, count) for token, count in runs)


def _repeated(token: str, count: int) -> str:
    return f"_x{count}" if token == "_" else f"{token}x{count - 1}"
