"""The rules for dead letters: what cannot be converted is there once, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from tests.judge.model import Anomaly
from tests.judge.trial import Trial


class Malformed(NamedTuple):
    """A message that cannot be converted."""

    at: float
    seq: int
    is_due: bool


class Letter(NamedTuple):
    """A committed dead letter; samples, whose bet was published, too."""

    kind: str
    is_intact: bool
    """Whether value, key and size agree."""
    partition: int
    offset: int
    received: float
    committed: float = -inf
    """When its transaction was committed; both Unix seconds."""


def judge_letter(
    key: str, sent: Sequence[Malformed], was_published: bool, letters: Sequence[Letter], trial: Trial
) -> None:
    """Judge the dead letters of one message, whose SHA-256 is `key`.

    `was_published` says whether the provider published these bytes at all, valid or not.
    """
    findings = trial.findings
    for it in letters:
        where = f"{it.kind} {key[:12]} in partition {it.partition}, offset {it.offset}"
        if not was_published:
            findings.add(Anomaly.DEAD_LETTER_ALTERED, it.received, f"{where}: the provider never sent this")
        elif not it.is_intact:
            findings.add(
                Anomaly.DEAD_LETTER_ALTERED, it.received, f"{where}: key, size or value do not agree"
            )
    whole = [it for it in letters if it.kind != "sample"]
    if not whole:
        for message in sent:
            what = f"message {message.seq}, {key[:12]}, published at {message.at:.3f}"
            if message.is_due:
                trial.lost(Anomaly.DEAD_LETTER_LOST, f"{what} has no dead letter", message.at)
                break
            trial.missing_in_gap(what, message.at)
        return
    for it in whole[max(1, len(sent)) :]:
        what = f"dead letter {key[:12]} again in partition {it.partition}, offset {it.offset}"
        findings.add(Anomaly.DUPLICATE, it.received, what)
    for message in sent:
        what = f"dead letter {key[:12]}"
        trial.checkpoints.judge_order(what, message.at, whole[0].received, whole[0].committed)
