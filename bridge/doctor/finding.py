"""The result of a check, and how it is printed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from bridge.masking import concealed


class Verdict(Enum):
    """How a check ended, best first."""

    OK = "ok"
    WARN = "warn"
    """It works, but someone should know."""
    TROUBLE = "trouble"
    """Something is wrong that does not end `bridge run`: it starts, and waits where it has to."""
    FAIL = "fail"
    """Something is wrong that ends `bridge run`, or would if this process became the owner."""
    SKIPPED = "skipped"
    """A setting is missing, or a check that it depends on has not succeeded."""


_MARKS = {Verdict.OK: "✓", Verdict.WARN: "!", Verdict.TROUBLE: "~", Verdict.FAIL: "✗", Verdict.SKIPPED: "-"}


class Finding(NamedTuple):
    """What a check found, and what to do about it."""

    outcome: Verdict
    message: str
    advice: str = ""

    def concealed(self) -> Finding:
        """Return it with all secrets masked: a server may quote the request that it refuses."""
        return self._replace(message=concealed(self.message), advice=concealed(self.advice))


def finding_as_json(name: str, finding: Finding) -> dict[str, Any]:
    """Return a finding for scripts."""
    return {"check": name, **finding._asdict(), "outcome": finding.outcome.value}


def finding_as_lines(name: str, finding: Finding, width: int) -> str:
    """Return a finding for people; the name takes `width` columns."""
    lines = finding.message.splitlines()
    if finding.advice:
        lines += f"→ {finding.advice}".splitlines()
    first, *rest = lines
    return "\n".join(
        [f"{_MARKS[finding.outcome]} {name:{width}}  {first}", *(" " * (width + 4) + line for line in rest)]
    )


def summary(findings: Mapping[str, Finding]) -> str:
    """Return in one line what follows for `bridge run`; "" if everything is in order."""

    def named(outcome: Verdict) -> str:
        return ", ".join(name for name, finding in findings.items() if finding.outcome is outcome)

    failed, troubled = named(Verdict.FAIL), named(Verdict.TROUBLE)
    if failed:
        also = f"; not in order either: {troubled}" if troubled else ""
        return f"✗ `bridge run` would end: {failed}{also}"
    return f"~ `bridge run` would start; not in order: {troubled}" if troubled else ""
