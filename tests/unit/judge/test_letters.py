"""What the judge finds in the dead letters of one message."""

from __future__ import annotations

from tests.judge.letters import Letter, Malformed, judge_letter
from tests.judge.model import Anomaly
from tests.judge.timeline import Gap
from tests.judge.trial import Trial
from tests.unit.judge.trials import FIRST, NOW, attempt, checkpoint, found, trial

MESSAGE = Malformed(NOW, 4, True)
LETTER = Letter("error", True, 2, 7, NOW + 1, NOW + 1)
SAMPLE = LETTER._replace(kind="sample")


def judged(
    messages: list[Malformed], letters: list[Letter], of: Trial | None = None, *, was_published: bool = True
) -> list[Anomaly]:
    of = of or trial()
    judge_letter("0123456789abcdef", messages, was_published, letters, of)
    return list(found(of))


def test_what_cannot_be_converted_has_a_letter_and_nothing_else() -> None:
    for messages, letters, kinds in (
        ([MESSAGE] * 2, [LETTER] * 2, []),
        ([], [SAMPLE], []),
        ([MESSAGE], [SAMPLE], [Anomaly.DEAD_LETTER_LOST]),
        ([MESSAGE._replace(is_due=False)], [], []),
        ([], [LETTER], [Anomaly.DEAD_LETTER_IN_VAIN]),
        ([MESSAGE], [LETTER, LETTER._replace(offset=9)], [Anomaly.DUPLICATE]),
        ([MESSAGE], [LETTER._replace(is_intact=False)], [Anomaly.DEAD_LETTER_ALTERED]),
    ):
        assert judged(messages, letters) == kinds
    assert judged([], [LETTER], was_published=False) == [Anomaly.DEAD_LETTER_ALTERED]


def test_a_dead_letter_out_of_reach_or_in_a_gap_is_told_as_such() -> None:
    for at, kind in ((3, Anomaly.UNDECLARED_GAP), (-9, Anomaly.DEAD_LETTER_LOST)):
        late = trial(FIRST, attempt(1, 0.5), attempt(2000, 1500))
        assert judged([MESSAGE._replace(at=NOW + at)], [], late) == [kind]
    reachable = trial(gaps=[Gap(NOW - 5, NOW + 500, "TooOld", NOW + 100)], remembers_seconds=10.0)
    assert judged([MESSAGE._replace(at=NOW + 400, is_due=False)], [], reachable) == [Anomaly.GAP_IN_VAIN]


def test_a_checkpoint_before_a_dead_letter_is_found() -> None:
    for updated_at, kinds in ((1, []), (0.9, [Anomaly.CHECKPOINT_AHEAD])):
        assert judged([MESSAGE], [LETTER], trial(checkpoints=[checkpoint(1, updated_at)])) == kinds
