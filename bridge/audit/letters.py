"""Counts the dead letters of each feed, and the marks of those that were redriven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bridge.audit.findings import AuditFinding, Findings, Proof
from bridge.records.dead_letter import DeadLetterKind, RedriveOutcome

_COUNTED = {DeadLetterKind.ERROR, DeadLetterKind.OVERSIZED}


class LettersCheck:
    """Counts records of the topic of dead letters."""

    def __init__(self, findings: Findings, feed: str | None) -> None:
        self._findings = findings
        self._feed = feed
        self.letters: Counter[str] = Counter()
        """Feed → letters that its counter `deadLettered` counts."""
        self.redriven: Counter[str] = Counter()
        """Feed → marks that its counter `redriven` counts."""
        self.records = 0

    def take(self, headers: Mapping[str, str], place: AuditFinding) -> None:
        """Count a record by its headers. `place` is its place, with any text."""
        kind, feed = headers.get("kind"), headers.get("feed", "")
        if self._feed not in (None, feed):
            return
        self.records += 1
        if kind in _COUNTED and feed:
            self.letters[feed] += 1
            self._findings.hour(place.at or 0).dead_letters += 1
        elif kind == DeadLetterKind.REDRIVE and feed:
            if headers.get("outcome") != RedriveOutcome.FAILED.value:
                self.redriven[feed] += 1
        elif kind != DeadLetterKind.SAMPLE:
            text = "not a dead letter of a bridge: its headers lack a kind and a feed"
            self._findings.warn(place._replace(proof=Proof.DEAD_LETTERS, text=text))
