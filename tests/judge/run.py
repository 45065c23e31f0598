"""Judges: reads the provider's log, the topics and the truth, and applies the rules to them.

Nothing grows with the number of messages but files: rows of bets and dead letters are put into buckets by a
hash of their key, and compared bucket by bucket. Another process makes those of the truth meanwhile.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from math import inf
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.judge.bets import Sent, Stored, corrections, judge_bet
from tests.judge.buckets import Buckets, groups
from tests.judge.checkpoints import Checkpoint, Checkpoints, Entry
from tests.judge.connections import judge_connections
from tests.judge.decoding import SCHEMAS, Decoder, Foreign
from tests.judge.gaps import judge_gaps
from tests.judge.ledger import Ledger
from tests.judge.letters import Letter, Malformed, judge_letter, wrong_headers
from tests.judge.log import COMMITTED, UNTRANSACTED
from tests.judge.messages import content, differences, read
from tests.judge.model import Anomaly, Case, Findings, Report
from tests.judge.partition import partition_of
from tests.judge.provider import Provider
from tests.judge.timeline import Gap, Timeline
from tests.judge.topics import Record, Topics
from tests.judge.torn import Torn
from tests.judge.trial import Trial
from tests.judge.truth import put_truth
from tests.judge.visible import Place, Standstill, judge_visible

TOPICS = ("bets", "checkpoints", "gaps", "deadletters")
PROMPT_SECONDS = 10
"""The figure `prompt` counts the bets with a record that was committed so soon after they were published."""
_MICROS = 1_000_000


def judge(case: Case, work: Path) -> Report:
    """Judge a case, with temporary files in the directory `work`.

    Raises OSError, TimeoutError or KafkaException if Kafka, the registry or the simulator does not answer,
    and ValueError if there is nothing to judge: the stream goes on, no bridge tried to connect, or the
    simulator's limits run at another scale than the case says.
    """
    with TemporaryDirectory(dir=work) as directory:
        return _Judge(case, Path(directory)).judge()


def read_gaps(bootstrap_servers: str, registry_url: str, prefix: str) -> list[Gap]:
    """Return the gaps that are declared now, for a case in which their topic is made anew."""
    topics, decoder = Topics(bootstrap_servers, prefix), Decoder(registry_url)
    records = (
        record for p, it in topics.ends("gaps").items() for record in topics.read("gaps", p, 0, it.stable)
    )
    return [_gap(decoder.decode(record.value), record, record.timestamp) for record in records]


def _gap(datum: Mapping[str, Any], record: Record, committed: float) -> Gap:
    start, end, detected = (datum[name] / _MICROS for name in ("from", "to", "detectedAt"))
    return Gap(start, end, datum["cause"], min(detected, committed), record.offset, committed)


class _Judge:
    def __init__(self, case: Case, work: Path) -> None:
        self._case = case
        self._kept, self._sent = work / "kept", work / "sent"
        self._findings = Findings()
        self._figures: Counter[str] = Counter()
        self._torn = Torn()
        self._provider = Provider(case.control_url)
        self._topics = Topics(case.bootstrap_servers, case.prefix)
        self._decoder = Decoder(case.registry_url)
        self._seen = {COMMITTED, *([UNTRANSACTED] if case.is_copied else [])}
        """What may become of a batch that readers see."""

    def judge(self) -> Report:
        case, figures = self._case, self._figures
        state, attempts, breaches = (self._provider.get(f"/{it}") for it in ("state", "attempts", "breaches"))
        if state["limits_scale"] != case.limits_scale:
            raise ValueError(f"the limits run at scale {state['limits_scale']}, not {case.limits_scale}")
        if state["ended"] is None or not attempts:
            raise ValueError("the stream goes on" if attempts else "no bridge has tried to connect")
        timeline = Timeline(state, attempts, case.start_age)
        earliest = min([timeline.begin, *(it["since"] for it in attempts if it["since"] is not None)])
        window, expected = (earliest, state["now"]), 3 * state["published"]
        with ProcessPoolExecutor(1, get_context("forkserver")) as other:
            truth = other.submit(
                put_truth, case.control_url, *window, case.max_message_bytes, self._sent, expected
            )
            self._judge_topics(timeline, expected)
            truth.result()
        for key, (kept, sent) in groups(self._kept, self._sent):
            self._judge_group(key, kept, sent)
        figures["excused"] = judge_connections(attempts, breaches, case.excused, self._findings)
        self._trial.checkpoints.judge_position(timeline.reading(state["ended"]))
        self._judge_counts()
        figures["attempts"] = len(attempts)
        figures["refused"] = sum(attempt["since"] is None for attempt in attempts)
        order = ("published", "bets", "records", "dead letters", "redriven", "samples", "checkpoints", "gaps")
        names = [*order, "attempts", "refused", "excused", "prompt", "torn"]
        return Report(self._findings.found(), {name: figures[name] for name in names}, case.seed)

    def _judge_topics(self, timeline: Timeline, expected: int) -> None:
        """Judge checkpoints and gaps, and put a row for each bet and each dead letter."""
        case, findings = self._case, self._findings
        ends = self._stable_ends()
        self._count = Counter(topic for topic, _ in ends) | dict(case.partitions)
        gaps = [*case.known_gaps, *self._read_gaps(ends)]
        checkpoints = Checkpoints(timeline, gaps, case, findings)
        self._trial = Trial(case, timeline, gaps, checkpoints, findings, self._explain)
        ledger = Ledger(timeline, checkpoints, case, findings)
        for record, committed in self._records("checkpoints", ends):
            if (taken := self._checkpoint(record, committed)) is not None:
                checkpoints.take(taken)
                ledger.take(taken)
        ledger.close()
        judge_gaps(gaps, timeline, checkpoints.promises, case, findings)
        with Buckets(self._kept, expected) as buckets:
            for record, committed in self._records("bets", ends):
                self._take_bet(record, committed, buckets)
            for record, committed in self._records("deadletters", ends):
                self._take_letter(record, committed, buckets)

    def _judge_counts(self) -> None:
        figures, checkpoints = self._figures, self._trial.checkpoints
        counted = {"published": "records", "deadLettered": "dead letters", "redriven": "redriven"}
        topics = {"published": "bets", "deadLettered": "deadletters"} if self._case.may_tear else {}
        torn = {name: self._torn.records(topic) for name, topic in topics.items()}
        if not self._case.made_anew:  # what one topic lacks, another one counts
            checkpoints.judge_counts(
                {name: figures[found] for name, found in counted.items()}, figures["corrections"], torn
            )
        figures["torn"] = sum(torn.values())
        if figures["bets of marks"] != figures["marks of bets"]:
            what = (
                f"{figures['bets of marks']:,} bets were redriven, {figures['marks of bets']:,} marks say so"
            )
            self._findings.add(Anomaly.COUNTERS, time.time(), what)
        figures["checkpoints"] = checkpoints.count
        figures["gaps"] = len(self._trial.gaps)

    def _stable_ends(self) -> dict[Place, int]:
        """Return where each partition ends now, once no open transaction hides what is before.

        A partition that stays hidden without any progress is reported, and ends where readers end.
        """
        ends = {(topic, p): it.high for topic in TOPICS for p, it in self._topics.ends(topic).items()}
        standstill = Standstill(ends)
        while standstill.look(
            time.monotonic(),
            {(topic, p): it.stable for topic in TOPICS for p, it in self._topics.ends(topic).items()},
        ):
            time.sleep(0.2)
        for (topic, partition), end in standstill.hidden.items():
            where = f"{topic}, partition {partition}: {end} stays below {ends[topic, partition]}"
            what = f"{where}, held by producer {self._topics.opener(topic, partition, end)}"
            self._findings.add(Anomaly.STUCK_OFFSET, time.time(), what)
        return {**ends, **standstill.hidden}

    def _records(self, topic: str, ends: Mapping[Place, int]) -> Iterator[tuple[Record, float]]:
        """Yield the committed records of a topic, partition by partition, with the times of their commits."""
        for (name, partition), end in ends.items():
            if name == topic:
                records = self._topics.read(topic, partition, 0, end)
                log = self._torn.watched(topic, self._topics.batches(topic, partition, end))
                yield from judge_visible((topic, partition), records, log, self._findings, self._seen)

    def _read_gaps(self, ends: Mapping[Place, int]) -> list[Gap]:
        gaps = []
        for record, committed in self._records("gaps", ends):
            datum = self._decode("gaps", record)
            if datum is not None and datum["feed"] == self._case.feed:
                gaps.append(_gap(datum, record, committed))
        return gaps

    def _checkpoint(self, record: Record, committed: float) -> Checkpoint | None:
        """Return the checkpoint in a record; None if it is another feed's, or cannot be read."""
        if record.key != self._case.feed.encode():
            return None
        datum = self._decode("checkpoints", record)
        if datum is None:
            return None
        return Checkpoint(
            datum["revision"],
            datum["updatedAt"] / _MICROS,
            {"redriven": 0, **datum["counters"]},
            datum.get("moved"),
            record.offset,
            committed,
            [Entry(it["at"] / _MICROS, it["recoverySeconds"]) for it in datum["connections"]],
            datum["state"],
        )

    def _take_bet(self, record: Record, committed: float, buckets: Buckets) -> None:
        datum = self._decode("bets", record)
        if datum is None:
            return
        self._figures["records"] += 1
        bet = datum["betId"]
        where = f"bet {bet} in partition {record.partition}, offset {record.offset}"
        if record.key != bet.encode():
            what = f"{where} has the key {record.key!r}"
            self._findings.add(Anomaly.WRONG_FIELD, record.timestamp, what)
        elif (right := partition_of(bet.encode(), self._count["bets"])) != record.partition:
            what = f"{where} belongs into partition {right}"
            self._findings.add(Anomaly.WRONG_FIELD, record.timestamp, what)
        self._trial.checkpoints.committed("published", committed)
        received = record.timestamp
        if redriven := record.headers.get("received"):  # a dead letter was there in time
            received, committed = float(redriven), -inf
            self._figures["bets of marks"] += 1
        version, digest = datum["settlementVersion"], content(datum)
        row = (version, digest, record.partition, record.offset, received, committed)
        buckets.put(f"bet {bet}", row)

    def _take_letter(self, record: Record, committed: float, buckets: Buckets) -> None:
        headers = {name: value.decode("utf-8", "replace") for name, value in record.headers.items()}
        kind, key = headers.get("kind", ""), (record.key or b"").decode("utf-8", "replace")
        partitions = self._count["deadletters"]
        for what in wrong_headers(headers, record, partitions, self._case):
            where = f"{kind} {key[:12]} in partition {record.partition}, offset {record.offset}: {what}"
            self._findings.add(Anomaly.DEAD_LETTER_ALTERED, record.timestamp, where)
        if kind == "redrive":
            self._figures["redriven"] += headers.get("outcome") != "failed"
            self._figures["marks of bets"] += headers.get("outcome") == "published"
            return
        if kind == "sample":
            self._figures["samples"] += 1
        else:
            self._figures["dead letters"] += 1
            self._trial.checkpoints.committed("deadLettered", committed)
        size, kept = int(headers.get("size") or -1), hashlib.sha256(record.value or b"").hexdigest()
        row = (kind, size, kept, record.partition, record.offset, record.timestamp, committed)
        buckets.put(f"letter {key}", row)

    def _judge_group(self, key: str, kept: list[tuple[Any, ...]], sent: list[tuple[Any, ...]]) -> None:
        """Judge a bet, or a digest, by its rows of `_judge_topics` and those of `put_truth`."""
        trial, figures = self._trial, self._figures
        what, _, name = key.partition(" ")
        judged = [(*row, trial.is_due(row[-2])) for row in sent]
        if what == "bet":
            figures["bets"] += sum(row[-1] for row in judged)
            stored = [Stored(*row) for row in kept]
            figures["corrections"] += corrections(stored)
            messages = [Sent(*row) for row in judged]
            if messages and stored:
                figures["prompt"] += abs(stored[0].committed - messages[0].at) <= PROMPT_SECONDS
            judge_bet(name, messages, stored, trial)
            return
        figures["published"] += sum(row[-2] >= trial.timeline.begin for row in sent)
        contents = {row[1:3] for row in sent}
        malformed = [Malformed(*row[3:]) for row in judged if row[0]]
        letters = [Letter(kind, (size, digest) in contents, *rest) for kind, size, digest, *rest in kept]
        judge_letter(name, malformed, bool(sent), letters, trial)

    def _decode(self, topic: str, record: Record) -> dict[str, Any] | None:
        where = f"{self._topics.name(topic)}, partition {record.partition}, offset {record.offset}"
        try:
            datum = self._decoder.decode(record.value)
        except Foreign as error:
            self._findings.add(Anomaly.ABORTED_READ, record.timestamp, f"{where}: {error}")
            return None
        if not self._decoder.is_ours(record.value):
            self._findings.add(
                Anomaly.WRONG_FIELD, record.timestamp, f"{where}: {SCHEMAS} has another schema"
            )
        return datum

    def _explain(self, at: float, seq: int, partition: int, offset: int) -> str:
        sent = next(it for it in self._provider.truth(at, at) if it.seq == seq)
        record = next(self._topics.read("bets", partition, offset, offset + 1))
        found = differences(read(sent.body).bet, self._decoder.decode(record.value))
        return "; ".join(found[:3]) or "the content is another one of the same version"
