"""What the judge finds in the dead letters of one message."""

from __future__ import annotations

from tests.judge.letters import Letter, Malformed, judge_letter
from tests.judge.model import Anomaly
from tests.judge.timeline import Gap
from tests.judge.trial import Trial
from tests.unit.judge.trials import FIRST, NOW, attempt, checkpoint, found, trial

MESSAGE = Malformed(NOW, 4, True)
LETTER = Letter("error", True, 2, 7, NOW + 1, NOW + 1)
KEY = "0123456789abcdef"


def judged(
    messages: list[Malformed], letters: list[Letter], of: Trial | None = None, *, was_published: bool = True
) -> dict[Anomaly, tuple[int, str]]:
    of = of or trial()
    judge_letter(KEY, messages, was_published, letters, of)
    return found(of)


def test_a_message_that_is_there_once_is_clean() -> None:
    assert judged([MESSAGE], [LETTER]) == {}
    assert judged([MESSAGE] * 3, [LETTER]) == judged([MESSAGE] * 2, [LETTER] * 2) == {}
    assert judged([], [LETTER._replace(kind="sample")]) == {}
    assert judged([MESSAGE], [LETTER._replace(kind="oversized")]) == {}


def test_a_dead_letter_of_a_message_that_can_be_converted_is_found() -> None:
    for kind in ("error", "oversized"):
        in_vain = judged([], [LETTER._replace(kind=kind)])
        assert in_vain == {
            Anomaly.DEAD_LETTER_IN_VAIN: (
                1,
                f"{kind} 0123456789ab in partition 2, offset 7: the message can be converted",
            )
        }


def test_a_lost_dead_letter_is_found() -> None:
    for letters in ([], [LETTER._replace(kind="sample")]):
        assert judged([MESSAGE, MESSAGE], letters) == {
            Anomaly.DEAD_LETTER_LOST: (
                1,
                "message 4, 0123456789ab, published at 1790000000.000 has no dead letter",
            )
        }
    assert judged([MESSAGE._replace(is_due=False)], []) == {}


def test_a_dead_letter_out_of_reach_or_in_a_gap_is_told_as_such() -> None:
    for at, kind in ((3, Anomaly.UNDECLARED_GAP), (-9, Anomaly.DEAD_LETTER_LOST)):
        late = trial(FIRST, attempt(1, 0.5), attempt(2000, 1500))
        assert list(judged([MESSAGE._replace(at=NOW + at)], [], late)) == [kind]
    forgotten = trial(attempt(9, 5, revision=int(NOW - 5)), forgotten=[{"at": NOW + 6, "before": NOW + 5}])
    assert list(judged([MESSAGE], [], forgotten)) == [Anomaly.UNDECLARED_GAP]
    gap = Gap(NOW - 5, NOW + 500, "TooOld", NOW + 100)
    reachable = trial(gaps=[gap], remembers_seconds=10.0)
    message = MESSAGE._replace(at=NOW + 400, is_due=False)
    assert list(judged([message], [], reachable)) == [Anomaly.GAP_IN_VAIN]


def test_an_altered_dead_letter_is_found() -> None:
    altered = judged([MESSAGE], [LETTER._replace(is_intact=False)])
    assert altered == {
        Anomaly.DEAD_LETTER_ALTERED: (
            1,
            "error 0123456789ab in partition 2, offset 7: key, size or value do not agree",
        )
    }
    nobody = judged([], [LETTER], was_published=False)
    assert list(nobody) == [Anomaly.DEAD_LETTER_ALTERED]
    assert nobody[Anomaly.DEAD_LETTER_ALTERED][1].endswith("offset 7: the provider never sent this")


def test_a_dead_letter_that_is_there_again_is_a_duplicate() -> None:
    again = judged([MESSAGE], [LETTER, LETTER._replace(offset=9)])
    assert again == {
        Anomaly.DUPLICATE: (
            1,
            "error 0123456789ab in partition 2, offset 9: it is there more often than the message was sent",
        )
    }


def test_a_checkpoint_before_a_dead_letter_is_found() -> None:
    for updated_at, kinds in ((1, []), (0.9, [Anomaly.CHECKPOINT_AHEAD])):
        of = trial(checkpoints=[checkpoint(1, updated_at)])
        assert list(judged([MESSAGE], [LETTER], of)) == kinds
