"""The alerts and their runbook, by Prometheus' own tool where that is to be had."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.promtool import promtool
from tests.repo.manifests import K8S
from tests.repo.source import ROOT

RULES: dict[str, Any] = yaml.safe_load((K8S / "observe" / "rules.yaml").read_text("utf-8"))["spec"]
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
NAMES = [alert["alert"] for alert in ALERTS]
DASHBOARD: dict[str, Any] = json.loads((K8S / "observe" / "dashboard.json").read_text("utf-8"))
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "observability.md").read_text("utf-8")


def check(rules: dict[str, Any], directory: Path) -> subprocess.CompletedProcess[str]:
    """Have Prometheus' tool check rules."""
    tool = promtool()
    if tool is None:
        pytest.skip("there is no promtool: neither on the PATH nor in a package of this system")
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump(rules), "utf-8")
    return subprocess.run([tool, "check", "rules", file], capture_output=True, text=True, check=False)


def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    """Each expression can be parsed, and each template expanded; a rule that is wrong is found."""
    ran = check(RULES, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert f"{len(ALERTS)} rules found" in ran.stdout
    wrong = {"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "max by (feed) (up"}]}]}
    assert check(wrong, tmp_path).returncode != 0


def test_prometheus_takes_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    """With a feed and an interval in place of Grafana's variables."""
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    filled = [query.replace("$feed", "f").replace("$__rate_interval", "1m") for query in queries]
    rules = [{"record": f"query_{number}", "expr": query} for number, query in enumerate(filled)]
    ran = check({"groups": [{"name": "g", "rules": rules}]}, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(queries) > 20


def test_each_alert_is_in_the_runbook_and_on_the_page() -> None:
    """In the same order; the entry begins with the command to type."""
    assert re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE) == NAMES
    assert re.findall(r"^\| `(Settlement\w+)` \| (\w+) \|", PAGE, re.MULTILINE) == [
        (alert["alert"], alert["labels"]["severity"]) for alert in ALERTS
    ]
    for entry in re.split(r"^## ", RUNBOOK, flags=re.MULTILINE)[1:]:
        assert re.match(r"\w+\n\n```\n(bridge|kubectl) ", entry), entry
