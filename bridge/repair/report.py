"""What a redrive did with dead letters, or would do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bridge.formatting import plural
from bridge.records.dead_letter import DeadLetterCause, RedriveOutcome


@dataclass
class RedriveReport:
    """What became of the dead letters, by what was wrong with them."""

    outcomes: dict[DeadLetterCause, Counter[RedriveOutcome]] = field(default_factory=dict)
    oversized: int = 0
    """Not tried, because their bytes are not there."""
    corrections: int = 0
    """How many were published with other content of a version that was published before."""
    transactions: int = 0

    @property
    def total(self) -> Counter[RedriveOutcome]:
        """The outcomes of all."""
        return sum(self.outcomes.values(), Counter())

    def add(self, cause: DeadLetterCause, outcome: RedriveOutcome) -> None:
        """Count a letter."""
        self.outcomes.setdefault(cause, Counter())[outcome] += 1


def report_as_json(report: RedriveReport, dry_run: bool) -> dict[str, Any]:
    """Return a report for scripts."""
    return {
        "dryRun": dry_run,
        "letters": report.total.total(),
        "oversized": report.oversized,
        "corrections": report.corrections,
        "transactions": report.transactions,
        "outcomes": _by_name(report.total),
        "kinds": [
            {"field": cause.field or None, "reason": cause.reason, "outcomes": _by_name(outcomes)}
            for cause, outcomes in report.outcomes.items()
        ],
    }


def report_as_lines(report: RedriveReport, dry_run: bool) -> str:
    """Return a report for people."""
    lines = [
        f"{cause.field or 'the whole message'}: {cause.reason}\n    {_counts(outcomes)}"
        for cause, outcomes in report.outcomes.items()
    ]
    if report.oversized:
        lines.append(f"{report.oversized:,} oversized, not tried: only their first 64 KiB are kept")
    if report.corrections:
        lines.append(
            f"{report.corrections:,} of the published correct a version that was published before: compare "
            "them (`bridge explain`), as a message that was dropped later leaves no trace"
        )
    total = report.total
    failed = total[RedriveOutcome.FAILED]
    if dry_run:
        lines.append(
            f"{total.total() - failed:,} would be redriven, {failed:,} would fail; nothing was written"
        )
    else:
        done = f"{total.total() - failed:,} redriven, {failed:,} failed and stay open"
        lines.append(f"{done}; {plural(report.transactions, 'transaction')}")
    return "\n".join(lines)


def _counts(outcomes: Counter[RedriveOutcome]) -> str:
    return ", ".join(
        f"{outcomes[outcome]:,} {outcome.value}" for outcome in RedriveOutcome if outcomes[outcome]
    )


def _by_name(outcomes: Counter[RedriveOutcome]) -> dict[str, int]:
    return {outcome.value: outcomes[outcome] for outcome in RedriveOutcome}
