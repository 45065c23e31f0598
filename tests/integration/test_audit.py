"""`bridge audit` on a real Kafka: a healthy feed, each violation planted, a bridge that writes meanwhile."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from bridge.audit import bets as audited_bets
from bridge.audit.findings import Proof
from bridge.audit.run import Audited, audit
from bridge.clock import MICROS
from bridge.config import Settings
from bridge.feed.rate_limits import Attempt
from bridge.kafka.partitioner import partition_of
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, Move, State
from bridge.records.counters import Counters
from bridge.records.gap import Cause, FeedGap
from bridge.registry import Registry
from tests.bets import BARE_BET
from tests.harness import Place, simulate
from tests.integration.publishing import prepared

PARTITIONS = 6
BETS = 30


class Topics:
    """The topics of a place, to which anything can be written. Healthy once made."""

    def __init__(self, place: Place) -> None:
        self.settings: Settings = prepared(place)
        self.declared = topics.declare(self.settings)
        with Registry(self.settings.registry) as registry:
            self.codecs = registry.codecs_of_owner(place.prefix)
        self.now = round(time.time())
        self.producer = place.producer()
        self.checkpoint = Checkpoint(
            "settlement-v4",
            self.now - 90,
            State.LIVE,
            (Attempt(self.now - 100.0, 0, initial=True),),
            Counters(received=BETS + 2, published=BETS, dead_lettered=1, pings=1),
            float(self.now),
            "me",
            newest=float(self.now),
        )
        for number in range(BETS):
            self.bet(f"bet-{number}", settled=self.now - number)
        self.letter("error")
        self.letter("sample")
        self.commit(self.checkpoint)

    def bet(self, bet_id: str, version: int = 1, payout: float = 1.0, settled: int = 0, **more: Any) -> None:
        """Write a bet; `more` are arguments of `produce` instead of the right ones."""
        datum = BARE_BET | {
            "betId": bet_id,
            "settlementVersion": version,
            "payout": payout,
            "settlementTime": settled * MICROS,
        }
        arguments = {
            "key": bet_id,
            "value": self.codecs.bets.encode(datum),
            "timestamp": self.now * 1000,
        } | more
        self.write(self.declared.bets.name, **arguments)

    def letter(self, kind: str, feed: str = "settlement-v4") -> None:
        """Write a dead letter."""
        self.write(self.declared.deadletters.name, key="0", value=b"{", headers={"kind": kind, "feed": feed})

    def gap(self, start: int, end: int, cause: Cause = Cause.TOO_OLD) -> None:
        """Declare a gap."""
        value = self.codecs.gaps.encode(FeedGap("settlement-v4", start, end, cause, self.now).to_avro())
        self.write(self.declared.gaps.name, key="settlement-v4", value=value, partition=0)

    def commit(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint."""
        value = self.codecs.checkpoints.encode(checkpoint.to_avro())
        self.write(self.declared.checkpoints.name, key=checkpoint.feed, value=value, partition=0)
        self.checkpoint = checkpoint

    def write(self, topic: str, **arguments: Any) -> None:
        self.producer.produce(topic, **arguments)
        assert self.producer.flush(20) == 0


@pytest.fixture
def written(place: Place) -> Topics:
    return Topics(place)


def _committed(written: Topics, bets: int, letters: int = 0, **changes: Any) -> None:
    """Commit that so many bets and dead letters more were written."""
    before = written.checkpoint.counters
    counters = replace(
        before,
        received=before.received + bets + letters,
        published=before.published + bets,
        dead_lettered=before.dead_lettered + letters,
    )
    written.commit(replace(written.checkpoint, counters=counters, **changes))


def test_each_violation_is_found_and_nothing_else(written: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    before = audit(written.settings)
    assert before.findings.violations == before.findings.warnings == []
    assert before.findings.unproven == {}
    feed = "settlement-v4"
    written.bet("bet-1", 2, partition=(partition_of(b"bet-1", PARTITIONS) + 1) % PARTITIONS)
    written.bet("bet-2", 3)
    written.bet("bet-2", 2)
    for payout in (2.0, 3.0, 2.0, 2.0):
        written.bet("bet-3", payout=payout)
    written.bet("bet-4", 2, value=b"\0\0\0\0\1nonsense")
    written.bet("bet-5", 2, value=b"superseded")
    written.bet("bet-5", 3)
    written.bet("bet-6", 2, key="bet-99")
    written.gap(written.now - 90, written.now - 50)
    written.letter("oversized", "other")
    # Bets and a letter too many, a position that goes beyond the gap, and a newest bet that there is not.
    _committed(written, 12, 1, newest=written.now + 0.5)
    _committed(written, 0, revision=written.now - 40)
    _committed(written, 0, revision=written.now - 1000)
    counters = written.checkpoint.counters
    written.commit(replace(written.checkpoint, counters=replace(counters, pings=0, empty=2)))
    planted = {
        (Proof.PARTITION, "bet-1", "the key belongs to another partition"),
        (Proof.VERSION, "bet-2", "version 2 after version 3"),
        (Proof.DOUBLED, "bet-3", "version 1 twice in a row with the same content"),
        (Proof.UNREADABLE, "bet-4", ""),
        (Proof.KEY, "bet-99", "the value is of the bet bet-6"),
        (Proof.IDENTITY, feed, "the outcomes do not add up to what was received: received "),
        (Proof.COUNTERS, feed, "a counter went back: pings from 1 to 0"),
        (Proof.POSITION, feed, "the position went back from"),
        (Proof.GAP, feed, "the position moved from"),
        (Proof.AHEAD, feed, "no bet has its newestSettlement"),
        (Proof.PUBLISHED, None, "39 bets in the topic, 42 by the checkpoints"),
        (Proof.DEAD_LETTERS, None, f"1 dead letters of {feed} in the topic, 2 by"),
        (Proof.DEAD_LETTERS, None, "1 dead letters of other in the topic, 0 by"),
    }
    for rows in (audited_bets.ROWS, 4):
        monkeypatch.setattr(audited_bets, "ROWS", rows)
        findings = audit(written.settings).findings
        left = set(planted)
        for found in findings.violations:
            assert (found.offset is None) == (found.key is None)
            matching = {
                it for it in planted if it[:2] == (found.proof, found.key) and found.text.startswith(it[2])
            }
            assert matching, found
            left -= matching
        assert left == set()
        assert len(findings.violations) == len(planted), findings.violations


def test_what_is_declared_is_no_violation(written: Topics) -> None:
    written.bet("bet-3", 2)
    written.bet("bet-3", 2, payout=7.0)
    _committed(written, 2, revision=written.now - 80)
    written.gap(written.now - 80, written.now - 50)
    written.gap(written.now - 50, written.now - 40)
    _committed(written, 0, revision=written.now - 40)
    move = Move(written.now, "somebody", written.now - 40, written.now - 4000)
    _committed(written, 0, revision=written.now - 4000, moved=move)
    audited = audit(written.settings)
    assert audited.findings.violations == []
    assert audited.records == {"checkpoints": 4, "bets": BETS + 2, "deadLetters": 2, "gaps": 2}
    assert sum(hour.corrections for hour in audited.findings.hours.values()) == 1


def test_what_was_deleted_is_not_missed(written: Topics, place: Place) -> None:
    written.gap(written.now - 90, written.now - 40)
    _committed(written, 0, revision=written.now - 40)
    place.delete_records("gaps")
    place.delete_records("deadletters")
    findings = audit(written.settings).findings
    assert findings.violations == []
    assert {*findings.unproven} == {Proof.GAP, Proof.POSITION, Proof.AHEAD, Proof.DEAD_LETTERS}


def test_a_bridge_that_writes_at_any_step_looks_right(written: Topics, place: Place) -> None:
    written.producer = producer = place.open_transaction("writer")
    producer.commit_transaction(20)
    number, seen, is_open = 0, set[str](), False

    def transact(topic: str, *_: int) -> None:
        """Commit the open transaction, and begin the next one."""
        nonlocal number, is_open
        if topic in seen and is_open:
            return
        seen.add(topic)
        if is_open:
            producer.commit_transaction(20)
        producer.begin_transaction()
        is_open = True
        number += 1
        written.bet(f"live-{number}", settled=written.now + 100 + number)
        written.letter("error")
        _committed(written, 1, 1, newest=float(written.now + 100 + number))
        if len(seen) != 2:  # one stays open while the reader waits for it
            producer.commit_transaction(20)
            is_open = False

    audited = audit(written.settings, progress=transact)
    if is_open:
        producer.commit_transaction(20)
    assert number > 3
    assert audited.findings.violations == []
    assert audited.findings.unproven == {}


@pytest.mark.long
async def test_a_live_feed_has_no_violation(place: Place) -> None:
    async with simulate(rate=100, history_seconds=20, resettle=0.2, odd=0.02) as feed:
        results: list[dict[str, Any]] = []
        for is_last in (False, True):
            bridge = await place.live(feed)
            for _ in range(2):
                ran = await place.ran("audit", "--json")
                assert ran.returncode == 0, ran.stdout + ran.stderr
                results.append(json.loads(ran.stdout))
            if is_last:
                assert await bridge.end() == 0
            else:
                bridge.kill()
    whole = json.loads(place.run("audit", "--json").stdout)
    counters = place.balanced_counters()
    assert (whole["violations"], whole["warnings"]) == (0, [])
    assert {proof["name"]: proof["unproven"] for proof in whole["proofs"]} == dict.fromkeys(
        (proof.value for proof in Proof), None
    )
    assert whole["records"]["bets"] == counters["published"]
    assert whole["records"]["bets"] > results[0]["records"]["bets"] > 0
    assert sum(hour["corrections"] for hour in whole["hours"]) == counters["corrections"]
    assert sum(hour["deadLetters"] for hour in whole["hours"]) == counters["deadLettered"]


def test_the_command_shows_the_first_violation(written: Topics, place: Place) -> None:
    written.bet("bet-3", 3)
    written.bet("bet-3", 2)
    _committed(written, 2)
    ran = place.run("audit")
    assert ran.returncode == 1
    partition = partition_of(b"bet-3", PARTITIONS)
    assert f"1 violation, the first: version: {place.prefix}.bets partition {partition} offset " in ran.stdout
    assert "key bet-3: version 2 after version 3" in ran.stdout
    assert ran.stderr == ""
    later = place.run("audit", "--from", "2000-01-01T00:00:00Z", "--json")
    assert json.loads(later.stdout)["first"]["key"] == "bet-3"
    assert place.run("audit", "--feed", "settlement-v4").returncode == 1
    time.sleep(1.1)
    assert place.run("audit", "--from", "1s").returncode == 0


def test_what_cannot_be_audited_says_why(place: Place) -> None:
    ran = place.run("audit")
    assert (ran.returncode, ran.stdout) == (6, "")
    assert f"there is no topic {place.prefix}.bets. Run `bridge topics apply`" in ran.stderr
    prepared(place)
    ran = place.run("audit", "--feed", "nobody")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"under {place.prefix}; known: none yet" in ran.stderr
    place.delete_topic("gaps")
    ran = place.run("audit")  # which would find that every gap is declared
    assert (ran.returncode, ran.stdout) == (6, "")
    assert f"there is no topic {place.prefix}.gaps" in ran.stderr


def test_nothing_is_audited_without_violation(place: Place) -> None:
    audited: Audited = audit(prepared(place))
    assert (sum(audited.records.values()), audited.findings.violations) == (0, [])
