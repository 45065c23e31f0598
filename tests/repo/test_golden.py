"""What users script against is as in `tests/repo/golden`; `python -m tests.repo.test_golden` writes it anew.

The rest is in documents already: settings with their defaults, metrics with their labels, and exit codes
(`test_docs.py`, `test_metrics_documented.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from pprint import pformat
from typing import Any

import orjson
import pytest
from rich.text import Text
from typer.testing import CliRunner

from bridge.audit.findings import AuditFinding as Violation
from bridge.audit.findings import Findings, Proof
from bridge.audit.report import audit_as_json
from bridge.audit.run import Audited
from bridge.cli import app
from bridge.cli.snapshot_tables import plan_as_json as requests_as_json
from bridge.doctor.finding import Finding, Verdict, finding_as_json
from bridge.inspection.dead_letters import by_cause, cause_as_json, letter_as_json
from bridge.inspection.explain import Event, Explanation, as_data
from bridge.inspection.formats import as_json
from bridge.inspection.gaps import gap_as_json
from bridge.inspection.limits import forecast_as_json
from bridge.inspection.readers import checkpoint_as_json, leadership_as_json
from bridge.ownership.group import Group
from bridge.records.checkpoint import Move
from bridge.records.reach import PartitionReach, TopicReach
from bridge.repair.position import MovePlan, plan_as_json
from bridge.repair.report import report_as_json
from bridge.stored.reach_reader import Lost
from tests.unit.cli.test_commands import ALL, COMMANDS
from tests.unit.cli.test_snapshot_tables import ROWS
from tests.unit.inspection.test_dead_letters import letter, record
from tests.unit.inspection.test_formats import NAMES, bet
from tests.unit.inspection.test_gaps import GAP
from tests.unit.inspection.test_limits import NOW, looked
from tests.unit.inspection.test_readers import LAST, WAITING, member
from tests.unit.repair.test_report import report as redriven
from tests.unit.snapshots.reports import report

DIRECTORY = Path(__file__).with_name("golden")
CHECKPOINT = replace(
    WAITING, moved=Move(NOW, "me", 1, 2, "why"), topics=(TopicReach("t", "id", (PartitionReach(7, NOW, 3),)),)
)
GROUP = Group((member("a"), member("b")), True)
BET = as_json(bet(payout=784.1062000000001, partialRefund=0.1 + 0.2), lambda _: [NAMES])
FORECAST = looked(NOW, 3_000)
PLAN = MovePlan(
    CHECKPOINT, int(NOW) + 60, NOW, NOW - 90, 7, FORECAST, 3_600.0, GROUP, (), Lost("lost", int(NOW) - 60)
)
FINDINGS = Findings()
FINDINGS.violate(Violation(Proof.VERSION, "goes back", "settlement.bets", 3, 9, int(NOW) * 1000, "b"))
AUDITED = Audited("settlement-v4", NOW, {"settlement-v4": CHECKPOINT}, 1, 2, 3, 4, 10, 0.5, FINDINGS)
RUN = report(notes=("odd",), forbidden=("/api/x",), complete=False).as_json()
LETTERS = (letter(1), letter(2, "Invalid JSON: at line 1"))
OUTPUTS: Mapping[str, Any] = {
    "audit": audit_as_json(AUDITED),
    "checkpoint set": plan_as_json(PLAN, changed=True),
    "checkpoint show": checkpoint_as_json(CHECKPOINT)
    | leadership_as_json(GROUP, CHECKPOINT, 10.0, LAST + 0.5),
    "deadletters list": [cause_as_json(kind) for kind in by_cause(LETTERS)],
    "deadletters redrive": report_as_json(redriven(), dry_run=True),
    "deadletters show": [letter_as_json(letter(1), record(body)) for body in (b"{}", b"\xff")],
    "doctor": [finding_as_json("kafka", Finding(Verdict.WARN, "one\ntwo", "do it"))],
    "explain": as_data(Explanation("b", [Event(NOW, "published", ["a detail"], BET)], [None], found=True)),
    "gaps": [gap_as_json(GAP)],
    "limits": forecast_as_json(FORECAST),
    "tail": BET,
    "translations": RUN,
    "translations --plan": requests_as_json(ROWS, 4),
}
"""Command → what it prints with `--json`, as far as that is made without Kafka."""
ELSEWHERE = {
    "checkpoint reset": "checkpoint set",
    "currencies": "translations",
    "deadletters export": "deadletters show",
    "replay": "tail",
}
"""Command → one that prints the same."""
OTHERS = "checkpoint retire, dev status, dev up, schemas check, schemas register, topics apply, topics plan"
"""Print only what they have of a server, or a list of texts."""


def helps() -> str:
    """The help of each command and group, in a terminal of 80 columns without colours."""
    names = sorted({tuple(name.split()[:depth]) for name in ALL for depth in range(3)})
    ran = [CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "80"}) for name in names]
    lines = [line.rstrip() for one in ran for line in Text.from_ansi(one.output).plain.splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


def golden() -> dict[str, str]:
    """File → content."""
    outputs = orjson.loads(orjson.dumps(OUTPUTS, default=str))
    return {
        "help.txt": helps(),
        "outputs.txt": f"{pformat(outputs, width=100, compact=True, sort_dicts=False)}\n",
    }


@pytest.mark.parametrize("name", ["help.txt", "outputs.txt"])
def test_what_users_script_against_is_as_it_was(name: str) -> None:
    assert (DIRECTORY / name).read_text("utf-8") == golden()[name]


def test_each_command_with_json_is_there_or_needs_kafka() -> None:
    of_commands = {name for name, command in COMMANDS.items() if not command.without_json}
    assert of_commands == {*OUTPUTS, *ELSEWHERE, *OTHERS.split(", ")} - {"translations --plan"}


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for file, content in golden().items():
        (DIRECTORY / file).write_text(content, "utf-8")
