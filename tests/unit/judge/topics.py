"""Whole histories for the judge: a provider's log, and topics in memory instead of Kafka and a registry."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import ceil, inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import pytest

from tests.judge import run, truth
from tests.judge.decoding import Foreign
from tests.judge.log import COMMITTED, Batch
from tests.judge.messages import read
from tests.judge.model import Anomaly, Case, Report
from tests.judge.partition import partition_of
from tests.judge.provider import Published
from tests.judge.topics import Ends, Record
from tests.malformed import A_BET
from tests.unit.judge.trials import CASE, COUNTERS, NOW, attempt

PARTITIONS = {"bets": 6, "deadletters": 3, "checkpoints": 1, "gaps": 1}
FEED = b"settlement-v4"
Headers = Mapping[str, str]
NONE: Headers = MappingProxyType({})
BROKEN = b'{"data":1}'


def bet(name: str, version: int = 1, payout: float = 1.5) -> bytes:
    """A message with a bet."""
    nothing = {"selections": None, "amount": None}
    data = A_BET | nothing | {"betId": name, "payout": payout, "settlementVersion": version}
    return json.dumps({"pingId": None, "data": data}).encode()


class History:
    """What the provider published and what is in Kafka. All times are seconds after NOW.

    It begins with an attempt at 0 that asks for ten seconds before, and the checkpoint in front of it.
    """

    def __init__(self, remembers: float = 1000.0, **case: Any) -> None:
        self.case: Case = replace(CASE, **{"position_margin": inf, **case})
        self.truth: list[Published] = []
        self.attempts: list[dict[str, Any]] = []
        self.breaches: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {
            "limits_scale": self.case.limits_scale,
            "ended": NOW + 1e6,
            "now": NOW + 1e6,
            "clock_steps": [],
            "remembers_seconds": remembers,
            "forgotten": [],
        }
        self.counters = Counter(COUNTERS)
        self.records: dict[tuple[str, int], list[Record]] = {}
        self.log: dict[tuple[str, int], list[Batch]] = {}
        self.ledger: list[dict[str, int]] = []
        self.offsets = Counter[tuple[str, int]]()
        self._versions: dict[bytes, int] = {}
        """Of the last record of each bet."""

    @classmethod
    def begun(cls, remembers: float = 1000.0, **case: Any) -> Self:
        """Return one with its first attempt."""
        it = cls(remembers, **case)
        it.dials(0, -10)
        return it

    def publishes(self, at: float, body: bytes) -> bytes:
        """Publish a message."""
        digest = hashlib.sha256(body).hexdigest()
        self.truth.append(Published(NOW + at, len(self.truth), digest, body))
        return body

    def forgets(self, at: float) -> None:
        """Forget everything published so far."""
        self.state["forgotten"].append({"at": NOW + at, "before": NOW + at})

    def dials(self, at: float, since: float | None, *, entered: bool = True, **changes: Any) -> None:
        """Connect, with the attempt in the ledger of a checkpoint unless it is not entered."""
        self.attempts.append(attempt(at, since, **changes))
        if entered:
            self.enters(at - 0.01, self.attempts[-1]["revision"])
            last = self.records.get(("checkpoints", 0))
            revision = json.loads(last[-1].value or b"")["revision"] - NOW if last else (since or at)
            self.promises(revision, at - 0.01)

    def enters(self, at: float, revision: int | None) -> None:
        """Enter an attempt into the ledger of the checkpoints to come."""
        asked = 0 if revision is None else max(0, ceil(NOW + at - revision))
        self.ledger.append({"at": round((NOW + at) * 1e6), "recoverySeconds": asked})

    def stores(
        self,
        body: bytes,
        received: float,
        committed: float | None = None,
        *,
        headers: Headers = NONE,
        partition: int | None = None,
    ) -> None:
        """Commit the record of a bet."""
        datum = read(body).bet
        key = datum["betId"].encode()
        self._put("bets", key, json.dumps(datum).encode(), received, committed, headers, partition)
        self.counters["published"] += 1
        self.counters["corrections"] += self._versions.get(key) == datum["settlementVersion"]
        self._versions[key] = datum["settlementVersion"]

    def buries(
        self, body: bytes, at: float, *, partition: int | None = None, headers: Headers = NONE
    ) -> None:
        """Commit a dead letter. An empty header is left out."""
        headers = {
            "kind": "error",
            "reason": "why",
            "feed": FEED.decode(),
            "revision": f"{NOW + at - 90:.0f}",
            "received": f"{NOW + at:.6f}",
            "size": f"{len(body)}",
            **headers,
        }
        key = hashlib.sha256(body).hexdigest().encode()
        self._put("deadletters", key, body, at, None, headers, partition)
        self.counters["deadLettered"] += headers["kind"] != "sample"

    def marks(self, at: float, outcome: str) -> None:
        """Commit the mark of a redriven dead letter."""
        key = hashlib.sha256(BROKEN).hexdigest().encode()
        headers = {"kind": "redrive", "outcome": outcome, "feed": FEED.decode()}
        self._put("deadletters", key, None, at, None, headers)
        self.counters["redriven"] += 1

    def promises(
        self, revision: float, updated: float, committed: float | None = None, *, state: str = "CatchingUp"
    ) -> None:
        """Commit a checkpoint."""
        ends = ("published", "duplicates", "stale", "deadLettered", "pings", "empty")
        received = sum(self.counters[name] for name in ends) - self.counters["redriven"]
        datum = {
            "feed": FEED.decode(),
            "revision": int(NOW + revision),
            "updatedAt": round((NOW + updated) * 1e6),
            "counters": {**self.counters, "received": received},
            "moved": None,
            "state": state,
            "connections": list(self.ledger),
        }
        self._put("checkpoints", FEED, json.dumps(datum).encode(), updated, committed)

    def declares(
        self, start: float, end: float, cause: str, detected: float, committed: float | None = None
    ) -> None:
        """Commit a gap."""
        micros = {"from": start, "to": end, "detectedAt": detected}
        datum = {name: round((NOW + at) * 1e6) for name, at in micros.items()}
        value = json.dumps({"feed": FEED.decode(), "cause": cause, **datum}).encode()
        self._put("gaps", FEED, value, detected, committed)

    def counts(self, counter: str, number: float) -> None:
        """Count what is in no topic."""
        self.counters[counter] += int(number)

    def discards(self, written: float, *, fenced: bool) -> None:
        """Count the record of a bet that Kafka has aborted, for the next producer or for this one."""
        offset = self.offsets["bets", 0]
        self.offsets["bets", 0] += 2
        batch = Batch(offset, offset, 1, "7/0", "aborted", NOW + written + 10, NOW + written, fenced)
        self.log.setdefault(("bets", 0), []).append(batch)
        self.counters["published"] += 1

    def compacts(self, keep: set[int]) -> None:
        """Leave only these checkpoints, by their number, and the last one."""
        for held in (self.records, self.log):
            whole: Any = held["checkpoints", 0]
            whole[:] = [it for n, it in enumerate(whole) if n in keep or n == len(whole) - 1]

    def judged(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
        """Have it judged."""
        for fake in (_Provider, _Topics, _Decoder):
            monkeypatch.setattr(run, fake.__name__[1:], lambda *_, of=fake: of(self))
        # A thread instead of the process, so that it has the same history.
        monkeypatch.setattr(truth, "Provider", lambda _: _Provider(self))
        monkeypatch.setattr(run, "ProcessPoolExecutor", lambda number, _: ThreadPoolExecutor(number))
        return run.judge(self.case, work)

    def found(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Anomaly, int]:
        """Return how often the judge finds what."""
        return {kind: it.count for kind, it in self.judged(work, monkeypatch).anomalies.items()}

    def _put(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        received: float,
        committed: float | None,
        headers: Headers = NONE,
        partition: int | None = None,
    ) -> None:
        partition = partition_of(key, PARTITIONS[topic]) if partition is None else partition
        place, offset = (topic, partition), self.offsets[topic, partition]
        self.offsets[place] += 2  # a marker follows
        given = {name: text.encode() for name, text in headers.items() if text}
        self.records.setdefault(place, []).append(
            Record(partition, offset, NOW + received, key, value, given)
        )
        ended = NOW + (received if committed is None else committed)
        batch = Batch(offset, offset, 1, "7/0", COMMITTED, ended, NOW + received)
        self.log.setdefault(place, []).append(batch)


class _Fake:
    def __init__(self, history: History) -> None:
        self._history = history


class _Provider(_Fake):
    def get(self, path: str) -> Any:
        state = {**self._history.state, "published": len(self._history.truth)}
        return {"/state": state, "/attempts": self._history.attempts, "/breaches": self._history.breaches}[
            path
        ]

    def truth(self, since: float, until: float) -> Iterator[Published]:
        messages = sorted(self._history.truth, key=lambda it: it.at)
        return (it for it in messages if since <= it.at <= until)


class _Topics(_Fake):
    def name(self, topic: str) -> str:
        return topic

    def ends(self, topic: str) -> dict[int, Ends]:
        ends = {p: self._history.offsets[topic, p] for p in range(PARTITIONS[topic])}
        return {p: Ends(end, end) for p, end in ends.items()}

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        records = self._history.records.get((topic, partition), ())
        return (it for it in records if start <= it.offset < end)

    def batches(self, topic: str, partition: int, end: int) -> Iterator[Batch]:
        return (it for it in self._history.log.get((topic, partition), ()) if it.first < end)


class _Decoder(_Fake):
    def decode(self, value: bytes | None) -> Any:
        if value is None:
            raise Foreign("no value")
        return json.loads(value)

    def is_ours(self, _: bytes | None) -> bool:
        return True
