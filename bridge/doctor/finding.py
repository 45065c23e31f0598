"""What a check of the doctor finds, and how it is shown."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple


class Outcome(Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """It works, but someone should know."""
    FAIL = "fail"
    SKIPPED = "skipped"
    """It could not be looked at: a setting is missing, or what it needs has failed."""


_MARKS = {Outcome.OK: "✓", Outcome.WARN: "!", Outcome.FAIL: "✗", Outcome.SKIPPED: "-"}


class Finding(NamedTuple):
    """What was seen, and what to do about it."""

    outcome: Outcome
    seen: str
    advice: str = ""


def finding_as_json(name: str, finding: Finding) -> dict[str, Any]:
    """For scripts."""
    outcome, seen, advice = finding
    return {"check": name, "outcome": outcome.value, "seen": seen, "advice": advice}


def finding_as_lines(name: str, finding: Finding, width: int) -> str:
    """For people; names are given `width` columns."""
    first, *rest = finding.seen.splitlines()
    if finding.advice:
        rest.append(f"→ {finding.advice}")
    indent = " " * (width + 4)
    return "\n".join(
        [f"{_MARKS[finding.outcome]} {name:{width}}  {first}", *(indent + line for line in rest)]
    )
