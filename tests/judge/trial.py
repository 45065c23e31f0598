"""What the rules of bets and dead letters share: the provider's log, gaps, checkpoints, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.judge.checkpoints import Checkpoints
from tests.judge.gaps import judge_missing
from tests.judge.model import Anomaly, Case, Explain, Findings
from tests.judge.timeline import Gap, Timeline


@dataclass
class Trial:
    """One case, while it is judged."""

    case: Case
    timeline: Timeline
    gaps: Sequence[Gap]
    checkpoints: Checkpoints
    findings: Findings
    explain: Explain

    def is_due(self, published: float) -> bool:
        """Whether a message of this moment must have been published: asked for, and in no declared gap."""
        return published >= self.timeline.begin and not any(
            gap.covers(self.timeline.reading(published)) for gap in self.gaps
        )

    def lost(self, anomaly: Anomaly, what: str, published: float) -> None:
        """Report a message that was due; if the provider could not replay it any more, as a gap."""
        if self.timeline.out_of_reach(published):
            anomaly, what = Anomaly.UNDECLARED_GAP, f"{what}; the provider could not replay it any more"
        self.findings.add(anomaly, published, what)

    def missing_in_gap(self, what: str, published: float) -> None:
        """Judge a message that is missing and was not due."""
        if published >= self.timeline.begin:
            judge_missing(what, published, self.gaps, self.timeline, self.case, self.findings)
