"""The rules for the records of one bet: which may be there, which must be, and in which order.

A bridge publishes what the provider sends, in its order, and drops what is stale (a higher version is
published), the same content twice in a row, and after a reconnection a content that the replay may have
repeated. The history of a bet is legal if these rules and what is optional (published before the first
connection attempt asked, or inside a declared gap) explain it. Else the cheapest explanation names what is
lost and what is too much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from itertools import product
from math import inf
from typing import NamedTuple

from tests.judge.model import CLOCKS_SECONDS, Anomaly
from tests.judge.trial import Trial


class Sent(NamedTuple):
    """A message with a bet, as the provider published it."""

    version: int
    content: bytes
    at: float
    seq: int
    is_due: bool
    """Whether it must be in the topic unless an earlier record makes it needless."""


class Stored(NamedTuple):
    """A committed record of a bet."""

    version: int
    content: bytes
    partition: int
    offset: int
    received: float
    """Unix seconds."""
    committed: float = -inf
    """The same of its transaction; -infinity if that says nothing, as of a redriven dead letter."""


_Point = tuple[int, int]
"""How many messages and how many records are explained."""


class Verdict(NamedTuple):
    """Places in the two histories of a bet."""

    lost: list[int]
    extra: list[int]
    matched: dict[int, int]
    """Messages with their records, as far as it is known which is whose."""


MayRepeat = Callable[[float, float], bool]
"""Whether a replay began between two publications, so that the second may look like a repetition."""

_LOST, _EXTRA = 2, 3
"""What it costs to explain a message or a record by a fault."""
_MOST = 200
"""Messages of a bet above which only differences are looked at, not every way to explain them."""


def corrections(stored: Sequence[Stored]) -> int:
    """Return how many records of a bet have the highest version before them again."""
    highest, count = None, 0
    for it in stored:
        count += it.version == highest
        highest = it.version if highest is None else max(highest, it.version)
    return count


def judge_bet(bet: str, sent: Sequence[Sent], stored: Sequence[Stored], trial: Trial) -> None:
    """Judge one bet: its messages in the provider's order, its records in the order of their offsets."""
    if len(sent) == len(stored) == 1 and sent[0][:2] == stored[0][:2]:  # nearly always
        _judge_times(bet, sent, stored, trial)
        _judge_promise(f"bet {bet}", sent[0], stored[0], trial)
        return
    if not sent:
        for it in stored:
            what = f"bet {bet}: {_place(it)} was never published by the provider"
            trial.findings.add(Anomaly.ABORTED_READ, it.received, what)
        return
    _judge_times(bet, sent, stored, trial)
    records = [_as_sent(bet, it, sent, stored, trial) for it in stored]
    verdict = explained(sent, records, trial.may_be_repeated, trial.case.anew_at)
    extra = _last_of_each(records, verdict.extra)
    _judge_order(bet, records, extra, trial)
    misplaced = {records[place][:2] for place in extra}
    newest, last = -(2**63), None
    for place, message in enumerate(sent):
        what = f"bet {bet}: {_message(message)}"
        if place in verdict.lost and message[:2] not in misplaced:
            trial.lost(Anomaly.LOST_WRITE, f"{what} has no record", message.at)
        elif place in verdict.matched:
            last = message[:2]
            _judge_promise(what, message, records[verdict.matched[place]], trial)
        elif not message.is_due and message.version >= newest and message[:2] != last:
            same = (record.received for record in records if record[:2] == message[:2])
            if not any(trial.looks_repeated(received, message.at) for received in same):
                trial.missing_in_gap(what, message.at)
        newest = max(newest, message.version)


def _judge_promise(what: str, message: Sent, record: Stored, trial: Trial) -> None:
    if message.is_due:
        trial.checkpoints.judge_order(what, message.at, record.received, record.committed)


def _judge_times(bet: str, sent: Sequence[Sent], stored: Sequence[Stored], trial: Trial) -> None:
    """Report what the bridge says to have received before it was published, or after it was committed."""
    earliest = min(it.at for it in sent) - CLOCKS_SECONDS
    for it in stored:
        latest = inf if it.committed == -inf else it.committed + CLOCKS_SECONDS
        if not earliest <= it.received <= latest:
            when = f"published from {earliest + CLOCKS_SECONDS:.3f} on, committed at {it.committed:.3f}"
            trial.findings.add(Anomaly.WRONG_FIELD, it.received, f"bet {bet}: {_place(it)}: {when}")


def _judge_order(bet: str, records: Sequence[Stored], extra: Container[int], trial: Trial) -> None:
    """Report repetitions, and each record with which a reader sees the bet go back."""
    add = trial.findings.add
    highest = records[0] if records else None
    for place, record in enumerate(records):
        assert highest is not None
        again = place in extra and any(record[:2] == it[:2] for it in records[:place])
        if again:
            what = f"bet {bet}: {_place(record)} repeats version {record.version} with the same content"
            add(Anomaly.DUPLICATE, record.received, what)
        if record.version < highest.version:
            what = (
                f"bet {bet} goes back from version {highest.version} ({_place(highest)}) to {_place(record)}"
            )
            add(Anomaly.NON_MONOTONIC, record.received, what)
        elif place in extra and not again:
            what = f"bet {bet}: {_place(record)} comes after a content that the provider published later"
            add(Anomaly.NON_MONOTONIC, record.received, what)
        if record.version >= highest.version:
            highest = record


def explained(
    sent: Sequence[Sent], records: Sequence[Stored], may_repeat: MayRepeat, anew_at: float = -inf
) -> Verdict:
    """Return the fewest messages that are lost, and records that are too much, under the rules above.

    What was published before a topic was made anew, and asked for again, may then be stale by any record.
    """
    newest = max((it.version for it in records), default=-(2**63))
    sent = [it._replace(is_due=it.is_due and (it.at > anew_at or it.version >= newest)) for it in sent]
    if len(sent) * len(records) > _MOST**2:
        return _compared(sent, records)
    return _Ways(sent, records, may_repeat).cheapest()


class _Ways:
    """The ways to explain a history, message by message and record by record."""

    def __init__(self, sent: Sequence[Sent], records: Sequence[Stored], may_repeat: MayRepeat) -> None:
        self._sent = sent
        self._records = records
        self._may_repeat = may_repeat
        self._highest = [-(2**63)]
        for record in records:
            self._highest.append(max(self._highest[-1], record.version))

    def cheapest(self) -> Verdict:
        """Return the faults of the cheapest way from nothing to both whole histories."""
        end = len(self._sent), len(self._records)
        best: dict[_Point, tuple[int, str, _Point]] = {(0, 0): (0, "", (0, 0))}
        for at in product(range(end[0] + 1), range(end[1] + 1)):
            for price, fault, to in self._steps(at, end):
                cost = best[at][0] + price
                if to not in best or cost <= best[to][0]:
                    best[to] = cost, fault if price else "", at
        verdict = Verdict([], [], {})
        while end != (0, 0):
            _, fault, at = best[end]
            if fault == "lost":
                verdict.lost.insert(0, at[0])
            elif fault == "extra":
                verdict.extra.insert(0, at[1])
            elif at[0] < end[0] and at[1] < end[1]:
                verdict.matched[at[0]] = at[1]
            end = at
        return verdict

    def _steps(self, at: _Point, end: _Point) -> Iterator[tuple[int, str, _Point]]:
        """Yield what may come next: the price, the fault, and where it leads."""
        i, f = at
        if i < end[0]:
            yield 0 if self._may_lack(i, f) else _LOST, "lost", (i + 1, f)
        if f < end[1]:
            yield _EXTRA, "extra", (i, f + 1)
        if i < end[0] and f < end[1] and self._fits(i, f):
            yield 0, "", (i + 1, f + 1)

    def _fits(self, i: int, f: int) -> bool:
        """Whether record f may be that of message i: no bet goes back, or has a content twice in a row."""
        message, record = self._sent[i], self._records[f]
        again = f > 0 and self._records[f - 1][:2] == record[:2] and not self._is_parted(i)
        is_early = record.received < message.at - CLOCKS_SECONDS
        return message[:2] == record[:2] and record.version >= self._highest[f] and not again and not is_early

    def _is_parted(self, i: int) -> bool:
        """Whether message i takes back another content, which a gap may have swallowed."""
        for other in reversed(self._sent[:i]):
            if other[:2] == self._sent[i][:2]:
                return False
            if not other.is_due:
                return True
        return False

    def _may_lack(self, i: int, f: int) -> bool:
        """Whether message i need not have a record after the first f records."""
        it = self._sent[i]
        if not it.is_due or it.version < self._highest[f]:
            return True
        before = [record for record in self._records[:f] if record.version == it.version]
        if not before:
            return False
        if before[-1].content == it.content:
            return True
        if all(record.content != it.content for record in before):
            return False
        # A, B and A again: dropped only if a replay began behind B, so that this may have been the first A.
        between = [other.at for other in self._sent[:i] if other[:2] == before[-1][:2]]
        return bool(between) and self._may_repeat(between[-1], it.at)


def _last_of_each(records: Sequence[Stored], extra: Sequence[int]) -> set[int]:
    """Return as many places, the last ones of the same content: what comes first is no repetition."""
    left = Counter(records[place][:2] for place in extra)
    found = set()
    for place in reversed(range(len(records))):
        if left[records[place][:2]]:
            left[records[place][:2]] -= 1
            found.add(place)
    return found


def _compared(sent: Sequence[Sent], records: Sequence[Stored]) -> Verdict:
    """Compare contents without their order: for a bet that was published thousands of times."""
    first: dict[object, int] = {}
    for place, record in enumerate(records):
        first.setdefault(record[:2], place)
    highest, verdict = -(2**63), Verdict([], [], {})
    for place, message in enumerate(sent):
        if message[:2] in first:
            highest = max(highest, message.version)
            verdict.matched[place] = first[message[:2]]
        elif message.is_due and message.version >= highest:
            verdict.lost.append(place)
    verdict.extra[:] = [f for f in range(1, len(records)) if records[f][:2] == records[f - 1][:2]]
    return verdict


def _as_sent(
    bet: str,
    record: Stored,
    sent: Sequence[Sent],
    stored: Sequence[Stored],
    trial: Trial,
) -> Stored:
    """Return the record; one with a wrong field with the content that it should have had."""
    if any(it[:2] == record[:2] for it in sent):
        return record
    there = {it[:2] for it in stored}
    unseen = [it for it in sent if it[:2] not in there]
    like = min(unseen or sent, key=lambda it: it.version != record.version)
    explain = partial(trial.explain, like.at, like.seq, record.partition, record.offset)
    trial.findings.add(
        Anomaly.WRONG_FIELD, record.received, lambda: f"bet {bet}: {_place(record)}: {explain()}"
    )
    return record._replace(version=like.version, content=like.content)


def _place(it: Stored) -> str:
    return (
        f"version {it.version} in partition {it.partition}, offset {it.offset}, received at {it.received:.3f}"
    )


def _message(it: Sent) -> str:
    return f"version {it.version}, message {it.seq}, published at {it.at:.3f},"
