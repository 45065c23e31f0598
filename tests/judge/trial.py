"""What the rules of bets and dead letters share: the provider's log, gaps, checkpoints, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from tests.judge.checkpoints import Checkpoints
from tests.judge.gaps import LOST, judge_missing
from tests.judge.model import REMEMBERED_SECONDS, Anomaly, Case, Explain, Findings
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
        """Whether a message of this moment must have been published: asked for, and in no declared gap.

        A gap excuses nothing that a checkpoint had promised before it was declared. What was in a topic
        that is no more must be asked for again, while the provider has it.
        """
        if published < self.timeline.begin:
            return False
        if published < self.case.anew_at and self.timeline.is_forgotten(published, self.case.anew_at):
            return False
        reading = self.timeline.reading(published)
        covering = [gap for gap in self.gaps if gap.covers(reading) and gap.cause != LOST]
        promise = self.checkpoints.promise(published) if covering else None
        return not any(promise is None or promise.may_be_behind(gap) for gap in covering)

    def may_be_repeated(self, earlier: float, later: float) -> bool:
        """Whether a replay may have brought a message of a later moment, but not one of an earlier.

        Not one that began when the later one had been promised already.
        """
        promise = self.checkpoints.promise(later)
        return self.timeline.connected_between(earlier, later, promise.committed_at if promise else inf)

    def looks_repeated(self, received: float, published: float) -> bool:
        """Whether a bridge may take a message in a replay for one with its content that it had received.

        A provider that forgets cuts a replay short, and A, B, A may be left of it as A.
        """
        return any(
            received < at and since <= published <= at and revision - REMEMBERED_SECONDS <= received
            for at, since, revision in self.timeline.replays
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
