"""The table of metrics and the metrics agree."""

from __future__ import annotations

import re

from bridge.observability.metrics import METRICS
from bridge.snapshots.metrics import METRICS as SNAPSHOT_METRICS
from bridge.state.checkpoint import State
from tests.repo.source import ROOT

DOCUMENT = (ROOT / "docs" / "observability.md").read_text("utf-8")
ROW = re.compile(r"^\| `(bridge_\w+)` \| (\w+) \|([^|]*)\| (owner|every process) \| (.*) \|$", re.MULTILINE)


def test_every_metric_is_in_the_table() -> None:
    """With its type, its labels, who exposes it and its meaning, in the order of their declaration."""
    documented = [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), by == "owner", meaning)
        for name, kind, labels, by, meaning in ROW.findall(DOCUMENT)
    ]
    declared = [(m.name, m.kind, m.labels, m.of_feed, m.help) for m in METRICS]
    assert documented == declared


OF_SNAPSHOTS = re.compile(r"^\| `(bridge_\w+)` \| (\w+) \|([^|]*)\| ([^|]*) \|$", re.MULTILINE)


def test_every_metric_of_the_snapshots_is_in_their_table() -> None:
    """Likewise."""
    documented = [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), meaning)
        for name, kind, labels, meaning in OF_SNAPSHOTS.findall(DOCUMENT)
    ]
    assert documented == [(m.name, m.kind, m.labels, m.help) for m in SNAPSHOT_METRICS]


def test_no_other_metric_is_mentioned() -> None:
    """An alert on a metric that is not there never fires."""
    assert set(re.findall(r"\bbridge_\w+", DOCUMENT)) == {m.name for m in METRICS} | {
        m.name for m in SNAPSHOT_METRICS
    }


def test_every_alert_matches_values_that_exist() -> None:
    """A matcher with a misspelt value selects nothing, for ever."""
    matched = "|".join(re.findall(r'bridge_\w+\{\w+=~?"([^"]+)"\}', DOCUMENT)).split("|")
    listed = DOCUMENT.partition("| label | values |")[2].partition("\n\n")[0]
    known = {state.value for state in State} | set(re.findall(r"`(\w+)`", listed))
    assert len(matched) >= 5
    assert set(matched) <= known
