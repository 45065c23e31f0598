"""The rules for dead letters: what cannot be converted is there once, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, nan
from typing import NamedTuple

from tests.judge.model import CLOCKS_SECONDS, Anomaly, Case
from tests.judge.partition import partition_of
from tests.judge.topics import Record
from tests.judge.trial import Trial

_ROUNDED_SECONDS = 0.0015
"""A record's timestamp is in whole milliseconds."""


class Malformed(NamedTuple):
    """A message that cannot be converted."""

    at: float
    seq: int
    is_due: bool


class Letter(NamedTuple):
    """A committed dead letter; samples, whose bet was published, too."""

    kind: str
    is_intact: bool
    """Whether size and value are those of the message with that key."""
    partition: int
    offset: int
    received: float
    committed: float = -inf
    """When its transaction was committed; both Unix seconds."""


def judge_letter(
    key: str, sent: Sequence[Malformed], was_published: bool, letters: Sequence[Letter], trial: Trial
) -> None:
    """Judge the dead letters of one message, whose SHA-256 is `key`.

    `sent` has those that cannot be converted; `was_published` says whether the provider published these bytes
    at all, valid or not.
    """
    whole = [it for it in letters if it.kind != "sample"]
    needless = whole[len(sent) :]
    for it in letters:
        where = f"{it.kind} {key[:12]} in partition {it.partition}, offset {it.offset}"
        for anomaly, what in _wrong(it, it in needless, bool(sent), was_published):
            trial.findings.add(anomaly, it.received, f"{where}: {what}")
    if whole:
        first, what = whole[0], f"dead letter {key[:12]}"
        for message in sent:
            if message.is_due:
                trial.checkpoints.judge_order(
                    what, message.at, first.received, first.committed, "deadLettered"
                )
        return
    for message in sent:
        what = f"message {message.seq}, {key[:12]}, published at {message.at:.3f}"
        if message.is_due:
            trial.lost(Anomaly.DEAD_LETTER_LOST, f"{what} has no dead letter", message.at)
            break
        trial.missing_in_gap(what, message.at)


def wrong_headers(headers: Mapping[str, str], record: Record, partitions: int, case: Case) -> Iterator[str]:
    """Yield what is wrong with a record of the topic, in words; all but its message."""
    kind = headers.get("kind")
    if headers.get("feed") != case.feed:
        yield f"feed {headers.get('feed')}"
    if record.partition != (right := partition_of(record.key or b"", partitions)):
        yield f"it belongs into partition {right}"
    if kind == "redrive":
        return
    if not headers.get("reason"):
        yield "no reason"
    if kind != "sample" and (kind == "oversized") != (_number(headers, "size") > case.max_message_bytes):
        yield f"size {headers.get('size')}"
    if abs(_number(headers, "received") - record.timestamp) > _ROUNDED_SECONDS:
        yield f"received {headers.get('received')}, and its timestamp is {record.timestamp:.3f}"
    if not _number(headers, "revision") <= record.timestamp + CLOCKS_SECONDS:
        yield f"revision {headers.get('revision')} is later, so a replay from there does not bring it back"


def _number(headers: Mapping[str, str], name: str) -> float:
    """Return a header as a number; not a number, which nothing equals, if it is none."""
    try:
        return float(headers.get(name, ""))
    except ValueError:
        return nan


def _wrong(
    it: Letter, is_needless: bool, is_malformed: bool, was_published: bool
) -> Iterator[tuple[Anomaly, str]]:
    """Yield what is wrong with a dead letter, in words."""
    if not was_published:
        yield Anomaly.DEAD_LETTER_ALTERED, "the provider never sent this"
        return
    if not it.is_intact:
        yield Anomaly.DEAD_LETTER_ALTERED, "key, size or value do not agree"
    if is_needless and is_malformed:
        yield Anomaly.DUPLICATE, "it is there more often than the message was sent"
    elif is_needless:
        yield Anomaly.DEAD_LETTER_IN_VAIN, "the message can be converted"
