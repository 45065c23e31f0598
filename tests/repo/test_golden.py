"""What users see and script against is as in `golden`; `python -m tests.repo.test_golden` writes it anew.

The rest is in documents already: settings with their defaults, metrics with their labels, and exit codes
(`test_docs.py`, `test_metrics_documented.py`).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from pprint import pformat
from typing import Any

import orjson
import pytest
from rich.console import Console, RenderableType
from rich.text import Text
from typer.testing import CliRunner

from bridge.audit.findings import AuditFinding as Violation
from bridge.audit.findings import Findings, Hour, Proof
from bridge.audit.report import audit_as_json, audit_as_lines
from bridge.audit.run import Audited
from bridge.cli import app
from bridge.cli.snapshot_tables import plan_as_json as requests_as_json
from bridge.cli.snapshot_tables import plan_as_table, report_as_table
from bridge.doctor.finding import Finding, Verdict, finding_as_json, finding_as_lines
from bridge.feed.catch_up import CatchUp
from bridge.inspection.dead_letters import (
    by_cause,
    cause_as_json,
    causes_as_lines,
    letter_as_json,
    letter_as_lines,
)
from bridge.inspection.explain import Event, Explanation, as_data, as_lines
from bridge.inspection.formats import as_json, as_line
from bridge.inspection.gaps import gap_as_json, gap_as_line
from bridge.inspection.limits import forecast_as_json, forecast_as_lines
from bridge.inspection.readers import (
    LATELY_SECONDS,
    checkpoint_as_json,
    checkpoint_as_lines,
    leadership_as_json,
    leadership_as_lines,
)
from bridge.ownership.group import Group
from bridge.records.checkpoint import Move
from bridge.records.dead_letter import DeadLetterCause, DeadLetterKind, RedriveOutcome
from bridge.records.reach import PartitionReach, TopicReach
from bridge.repair.position import MovePlan, plan_as_json, plan_as_lines
from bridge.repair.report import RedriveReport, report_as_json, report_as_lines
from bridge.snapshots.report import Covered
from bridge.snapshots.wanted import Estimate
from bridge.stored.reach_reader import Lost
from tests.unit.cli.test_commands import ALL, WITHOUT_JSON
from tests.unit.inspection.test_dead_letters import letter, record
from tests.unit.inspection.test_formats import NAMES, bet
from tests.unit.inspection.test_gaps import GAP
from tests.unit.inspection.test_limits import NOW, looked
from tests.unit.inspection.test_readers import CHECKPOINT as CATCHING_UP
from tests.unit.inspection.test_readers import LAST, WAITING, member
from tests.unit.snapshots.reports import report

ROWS = [Estimate("/api/translations/{lang}/sports", 2, 2), Estimate("/api/x", 0, 10)]
OPEN = [*ROWS, Estimate("/api/translations/all/competitor/{competitorId}", 0, None)]
DIRECTORY = Path(__file__).with_name("golden")
CHECKPOINT = replace(
    WAITING, moved=Move(NOW, "me", 1, 2, "why"), topics=(TopicReach("t", "id", (PartitionReach(7, NOW, 3),)),)
)
GROUP = Group((member("a"), member("b")), True)
BET = as_json(bet(payout=784.1062000000001, partialRefund=0.1 + 0.2), lambda _: [NAMES])
FORECAST = looked(NOW, 3_000)
PLAN = MovePlan(
    CHECKPOINT, int(NOW) + 60, NOW - 90, 7, FORECAST, 3_600.0, GROUP, (), Lost("lost", int(NOW) - 60)
)
FINDINGS = Findings()
FINDINGS.violate(Violation(Proof.VERSION, "goes back", "settlement.bets", 3, 9, int(NOW) * 1000, "b"))
READ = {"checkpoints": 1, "bets": 2, "deadLetters": 3, "gaps": 4}
AUDITED = Audited("settlement-v4", NOW, {"settlement-v4": CHECKPOINT}, READ, 10, 0.5, FINDINGS)
RUN = report(notes=("odd",), forbidden=("/api/x",), complete=False).as_json()
LETTERS = (letter(1), letter(2, "Invalid JSON: at line 1"))


def shown(what: RenderableType, width: int = 80) -> str:
    """As text, each line without what fills it up."""
    file = io.StringIO()
    Console(file=file, width=width).print(what)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return "\n".join(line.rstrip() for line in lines)


REDRIVEN = RedriveReport(oversized=2, transactions=1)
for _outcome in (RedriveOutcome.PUBLISHED, RedriveOutcome.PUBLISHED, RedriveOutcome.STALE):
    REDRIVEN.add(DeadLetterCause("data.x", "wrong"), _outcome)
REDRIVEN.add(DeadLetterCause("", "Invalid JSON"), RedriveOutcome.FAILED)
OUTPUTS: Mapping[str, Any] = {
    "audit": audit_as_json(AUDITED),
    "checkpoint set": plan_as_json(PLAN, changed=True),
    "checkpoint show": checkpoint_as_json(CHECKPOINT)
    | leadership_as_json(GROUP, CHECKPOINT, 10.0, LAST + 0.5),
    "deadletters list": [cause_as_json(kind) for kind in by_cause(LETTERS)],
    "deadletters redrive": report_as_json(REDRIVEN, dry_run=True),
    "deadletters show": [letter_as_json(letter(1), record(body)) for body in (b"{}", b"\xff")],
    "doctor": [finding_as_json("kafka", Finding(Verdict.WARN, "one\ntwo", "do it"))],
    "explain": as_data(Explanation("b", [Event(NOW, "published", ["a detail"], BET)], [None], found=True)),
    "gaps": [gap_as_json(GAP)],
    "limits": forecast_as_json(FORECAST),
    "tail": BET,
    "translations": RUN,
    "translations --plan": [requests_as_json(it, 4) for it in (ROWS, OPEN)],
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


BUSY = Findings(hours={int(NOW) // 3600: Hour(*[99_999_999] * 5)})
ODD = (
    *LETTERS,
    letter(3, kind=DeadLetterKind.OVERSIZED),
    letter(4, "data.x[7]: wrong, got 2", tries=2),
    letter(5, "data.x[1]: wrong; data.y: also"),
)
NAMED = {f"l{number:02}": 10 for number in range(30)} | {"xx": 0}
"""More languages than fit a line."""
GROUPS = (
    *(None, Group(), Group((member("host:1:abc", True), member("b")))),
    *(Group((member("host:1:abc"), member("b")), True), GROUP, Group((member("a", True),))),
)
"""An owner, one that is waited for, and an owner that is another one than the last that has committed."""
BETS = (
    {"payout": 784.1062000000001},
    {"payout": 149262000.17},
    {"amount": None, "selections": None},
    {"amount": {"value": 7, "precision": 0, "currency": None}},
)
LINES: Mapping[str, Sequence[str]] = {
    "audit": [audit_as_lines(AUDITED), audit_as_lines(replace(AUDITED, findings=BUSY))],
    "checkpoint set": [plan_as_lines(PLAN)],
    "checkpoint show": [
        *(checkpoint_as_lines(it, LAST + 2) for it in (CATCHING_UP, WAITING, CHECKPOINT)),
        checkpoint_as_lines(replace(WAITING, ledger=(), catch_up=CatchUp(None, 0.0, None)), LAST),
        *(leadership_as_lines(it, CATCHING_UP, 10.0, LAST) for it in GROUPS),
        leadership_as_lines(GROUPS[-1], CATCHING_UP, 10.0, LAST + LATELY_SECONDS),
    ],
    "deadletters list": [causes_as_lines(by_cause(ODD), 5)],
    "deadletters redrive": [
        report_as_lines(REDRIVEN, dry_run=False),
        report_as_lines(RedriveReport(), dry_run=True),
    ],
    "deadletters show": [letter_as_lines(letter(), record(b'{"data":{"betId":"b"}}'))],
    "doctor": [finding_as_lines("kafka", Finding(it, "one\ntwo", "do it"), 8) for it in Verdict],
    "explain": [as_lines(Explanation("b", [Event(NOW, "published", ["a detail"], BET)], [None], found=True))],
    "gaps": [gap_as_line(GAP)],
    "limits": [forecast_as_lines(looked(NOW, 30)), forecast_as_lines(FORECAST)],
    "tail": [as_line(bet(**changes), 120) for changes in BETS],
    "translations": [
        shown(report_as_table(it))
        for it in (
            report(notes=("an oddity",)),
            report(coverage=[Covered("event", 10, NAMED, ["event:1"])], languages=tuple(NAMED)),
            report(coverage=[Covered("sport", 4, {"sv": 2}, ["sport:1"])]),
            report(coverage=[], complete=False),
        )
    ],
    "translations --plan": [shown(plan_as_table(it, 4)) for it in (ROWS, ROWS[:1], OPEN)],
}
"""Command → what people are shown of several things."""


def helps() -> str:
    """The help of each command and group, in a terminal of 80 columns without colours."""
    names = sorted({tuple(name.split()[:depth]) for name in ALL for depth in range(3)})
    ran = [CliRunner().invoke(app, [*name, "--help"], env={"COLUMNS": "80"}) for name in names]
    lines = [line.rstrip() for one in ran for line in Text.from_ansi(one.output).plain.splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


def lines() -> str:
    """What people are shown."""
    shown = ((name, text.rstrip()) for name, texts in LINES.items() for text in texts)
    return "".join(f"$ bridge {name}\n{text}\n\n" for name, text in shown)


def outputs() -> str:
    """What scripts get."""
    found = orjson.loads(orjson.dumps(OUTPUTS, default=str))
    return f"{pformat(found, width=100, compact=True, sort_dicts=False)}\n"


GOLDEN = {"help.txt": helps, "lines.txt": lines, "outputs.txt": outputs}
"""File → its content."""


@pytest.mark.parametrize("name", GOLDEN)
def test_what_users_see_and_script_against_is_as_it_was(name: str) -> None:
    assert (DIRECTORY / name).read_text("utf-8") == GOLDEN[name]()


def test_each_command_with_json_is_there_or_needs_kafka() -> None:
    assert ALL.keys() - WITHOUT_JSON.keys() == {*OUTPUTS, *ELSEWHERE, *OTHERS.split(", ")} - {
        "translations --plan"
    }


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for file, content in GOLDEN.items():
        (DIRECTORY / file).write_text(content(), "utf-8")
