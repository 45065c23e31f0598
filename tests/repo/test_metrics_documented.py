"""The metrics, their documentation and the conventions agree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from prometheus_client import Metric

from bridge.observability.metrics import collect
from bridge.records.checkpoint import State
from bridge.snapshots.model import Omission
from bridge.snapshots.status import JobStatus
from bridge.snapshots.status import collect as collect_of_snapshots
from tests.repo.source import ROOT
from tests.unit.observability.test_metrics import OWNER
from tests.unit.observability.test_status import NOW
from tests.unit.snapshots.reports import report

DOCUMENT = (ROOT / "docs" / "observability.md").read_text("utf-8")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")
RULES = (ROOT / "k8s" / "observe" / "rules.yaml").read_text("utf-8")
DASHBOARD = (ROOT / "k8s" / "observe" / "dashboard.json").read_text("utf-8")
ROW = re.compile(
    r"^\| `(bridge_\w+)` \| (\w+) \|([^|]*)\|(?: (owner|every process) \|)? ([^|]*) \|$", re.MULTILINE
)
SUFFIXES = {"counter": "_total", "info": "_info"}


class Row(NamedTuple):
    name: str
    kind: str
    labels: set[str]
    by: str
    help: str


def rows(families: Iterable[Metric], by: str = "") -> list[Row]:
    """Return what the documentation has to say of metrics that all have a sample."""
    return [
        Row(
            f"{family.name}{SUFFIXES.get(family.type, '')}",
            family.type,
            set(family.samples[0].labels) - {"le"},
            by,
            family.documentation,
        )
        for family in families
    ]


PROCESS = rows(collect(replace(OWNER, owner=False), NOW), "every process")
FEED = rows(collect(OWNER, NOW), "owner")[len(PROCESS) :]
SNAPSHOTS = rows(collect_of_snapshots(JobStatus.of(report(left_out=(Omission("/api/x", "1", "HTTP 500"),)))))
METRICS = [*PROCESS, *FEED, *SNAPSHOTS]


def test_every_metric_is_documented() -> None:
    documented = [
        Row(name, kind, set(re.findall(r"`(\w+)`", labels)), by, meaning)
        for name, kind, labels, by, meaning in ROW.findall(DOCUMENT)
    ]
    assert documented == METRICS


def test_no_other_metric_is_mentioned() -> None:
    names = {metric.name for metric in METRICS}
    for text in (DOCUMENT, RUNBOOK, RULES, DASHBOARD):
        mentioned = {name.removesuffix("_bucket") for name in re.findall(r"\bbridge_\w+", text)}
        assert mentioned <= names
        assert mentioned == names or text in (RUNBOOK, RULES), names - mentioned


def test_names_follow_the_conventions() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"bridge(_[a-z]+)+", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert "age" not in metric.name.split("_")
        assert metric.help.endswith(".")
        assert metric.labels.isdisjoint({"feed", "snapshot"})
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_every_alert_matches_values_that_exist() -> None:
    matched = "|".join(re.findall(r'bridge_\w+\{\w+=~?"([^"]+)"\}', RULES)).split("|")
    listed = DOCUMENT.partition("| label | values |")[2].partition("\n\n")[0]
    known = {state.value for state in State} | set(re.findall(r"`(\w+)`", listed))
    assert len(matched) >= 5
    assert set(matched) <= known
