"""The result of an audit for people and for scripts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bridge.audit.findings import HOUR_MS, AuditFinding, Hour, Proof
from bridge.audit.run import Audited
from bridge.formatting import camel_case, format_duration, format_utc, plural

MOST_ROWS = 48
"""Hours that people are shown: the last ones, and all with violations."""


def audit_as_json(audited: Audited) -> dict[str, Any]:
    """Return the result for scripts."""
    findings = audited.findings
    return {
        "feed": audited.feed,
        "from": None if audited.since is None else format_utc(audited.since),
        "feeds": sorted(audited.feeds),
        "records": audited.records,
        "seconds": round(audited.seconds, 3),
        "proofs": [
            {
                "name": proof.value,
                "violations": findings.counts[proof],
                "warnings": findings.warned[proof],
                "unproven": findings.unproven.get(proof),
            }
            for proof in Proof
        ],
        "violations": findings.counts.total(),
        "first": _finding_as_json(findings.violations[0]) if findings.violations else None,
        "shown": [_finding_as_json(found) for found in findings.violations],
        "warnings": [_finding_as_json(found) for found in findings.warnings],
        "hours": [
            {"hour": _hour(number)} | {camel_case(name): count for name, count in asdict(hour).items()}
            for number, hour in sorted(findings.hours.items())
        ],
    }


def _finding_as_json(found: AuditFinding) -> dict[str, Any]:
    return {
        "proof": found.proof.value,
        "topic": found.topic,
        "partition": found.partition,
        "offset": found.offset,
        "key": found.key,
        "at": None if found.at is None else format_utc(found.at / 1000),
        "text": found.text,
    }


def audit_as_lines(audited: Audited) -> str:
    """Return the result for people: hours, proofs, and the first violation at the end."""
    findings = audited.findings
    width = max(len(proof.words) for proof in Proof)
    lines = [*_table(findings.hours), ""]
    for proof in Proof:
        count, warned = findings.counts[proof], findings.warned[proof]
        result = plural(count, "violation") if count else "warning" if warned else "ok"
        if unproven := findings.unproven.get(proof):
            result += f"; not shown in full: {unproven}"
        lines.append(f"{proof.words:<{width}}  {result}")
    lines.append("")
    lines += [f"warning: {_finding_as_line(found)}" for found in findings.warnings[:10]]
    if findings.violations:
        total = plural(findings.counts.total(), "violation")
        lines.append(f"{total}, the first: {_finding_as_line(findings.violations[0])}")
    else:
        lines.append("no violation")
    rate = audited.offsets / audited.seconds if audited.seconds else 0.0
    named = {"bets": "bets", "checkpoints": "checkpoints", "deadLetters": "dead letters", "gaps": "gaps"}
    read = ", ".join(f"{words} {audited.records[name]:,}" for name, words in named.items())
    lines.append(f"read: {read}; {format_duration(audited.seconds)}, {rate:,.0f} offsets/s")
    return "\n".join(lines)


def _finding_as_line(found: AuditFinding) -> str:
    place = found.topic
    if found.partition is not None:
        place += f" partition {found.partition} offset {found.offset}"
    if found.key is not None:
        place += f", key {found.key}"
    return f"{found.proof.value}: {place}: {found.text}"


def _table(hours: dict[int, Hour]) -> list[str]:
    shown = {number for number, hour in hours.items() if hour.violations}
    shown |= set(sorted(hours)[-MOST_ROWS:])
    names = ("bets", "corrections", "dead letters", "gaps", "violations")
    lines = [f"{'hour, UTC':<16} " + " ".join(f"{name:>11}" for name in names)]
    lines += [
        f"{_hour(number)[:16].replace('T', ' '):<16} {hour.bets:>11,} {hour.corrections:>11,} "
        f"{hour.dead_letters:>12,} {hour.gaps:>11,} {hour.violations:>11,}"
        for number, hour in sorted(hours.items())
        if number in shown
    ]
    if len(shown) < len(hours):
        lines.append(f"and {len(hours) - len(shown):,} earlier hours without a violation; --json has all")
    return lines


def _hour(number: int) -> str:
    return format_utc(number * HOUR_MS / 1000)
