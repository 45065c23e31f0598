"""`bridge audit` on a real Kafka: a healthy feed, each violation planted, a bridge that writes meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

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
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.bets import BARE_BET
from tests.harness import Place
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
        self.producer = Producer(self._properties(place))
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

    def _properties(self, place: Place, **more: Any) -> dict[str, Any]:
        servers = place.cluster.bootstrap_servers
        return {"bootstrap.servers": servers, "partitioner": "murmur2_random", "log_level": 0, **more}

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


@dataclass(frozen=True)
class Planted:
    """What is to be found of what was planted: key and text, and whether the record has a place."""

    proof: Proof
    key: str | None
    text: str


Plant = Callable[[Topics], Planted]


def _other_partition(written: Topics) -> Planted:
    right = partition_of(b"bet-3", PARTITIONS)
    written.bet("bet-3", 2, partition=(right + 1) % PARTITIONS)
    _published(written, 1)
    return Planted(Proof.PARTITION, "bet-3", "the key belongs to another partition")


def _published(written: Topics, number: int, **changes: Any) -> None:
    """Commit that so many bets more were published."""
    before = written.checkpoint.counters
    counters = replace(before, received=before.received + number, published=before.published + number)
    written.commit(replace(written.checkpoint, counters=counters, **changes))


def _version(written: Topics) -> Planted:
    written.bet("bet-3", 3)
    written.bet("bet-3", 2)
    _published(written, 2)
    return Planted(Proof.VERSION, "bet-3", "version 2 after version 3")


def _doubled(written: Topics) -> Planted:
    for payout in (2.0, 3.0, 2.0, 2.0):
        written.bet("bet-3", payout=payout)
    _published(written, 4)
    return Planted(Proof.DOUBLED, "bet-3", "version 1 twice in a row with the same content")


def _unreadable(written: Topics) -> Planted:
    written.bet("bet-3", 2, value=b"\0\0\0\0\1nonsense")
    written.bet("bet-4", 2, value=b"superseded")
    written.bet("bet-4", 3)
    _published(written, 1)
    return Planted(Proof.UNREADABLE, "bet-3", "")


def _key(written: Topics) -> Planted:
    written.bet("bet-3", 2, key="bet-99")
    _published(written, 1)
    return Planted(Proof.KEY, "bet-99", "the value is of the bet bet-3")


def _identity(written: Topics) -> Planted:
    before = written.checkpoint.counters
    written.commit(replace(written.checkpoint, counters=replace(before, received=before.received + 1)))
    return Planted(
        Proof.IDENTITY, "settlement-v4", "the outcomes do not add up to what was received: received 33"
    )


def _counters(written: Topics) -> Planted:
    before = written.checkpoint.counters
    counters = replace(before, pings=before.pings - 1, empty=before.empty + 1)
    written.commit(replace(written.checkpoint, counters=counters))
    return Planted(Proof.COUNTERS, "settlement-v4", "a counter went back: pings from 1 to 0")


def _position(written: Topics) -> Planted:
    _published(written, 0, revision=written.now - 1000)
    return Planted(Proof.POSITION, "settlement-v4", "the position went back from")


def _gap(written: Topics) -> Planted:
    written.gap(written.now - 90, written.now - 50)
    _published(written, 0, revision=written.now - 40)
    return Planted(Proof.GAP, "settlement-v4", "the position moved from")


def _ahead(written: Topics) -> Planted:
    _published(written, 0, newest=written.now + 0.5)
    return Planted(Proof.AHEAD, "settlement-v4", "no bet has its newestSettlement")


def _lost_bet(written: Topics) -> Planted:
    _published(written, 2)
    return Planted(Proof.PUBLISHED, None, "30 bets in the topic, 32 by the checkpoints")


def _foreign_bet(written: Topics) -> Planted:
    written.bet("bet-100")
    return Planted(Proof.PUBLISHED, None, "31 bets in the topic, 30 by the checkpoints")


def _lost_letter(written: Topics) -> Planted:
    before = written.checkpoint.counters
    counters = replace(before, received=before.received + 1, dead_lettered=before.dead_lettered + 1)
    written.commit(replace(written.checkpoint, counters=counters))
    return Planted(Proof.DEAD_LETTERS, None, "1 dead letters of settlement-v4 in the topic, 2 by")


def _unknown_feed(written: Topics) -> Planted:
    written.letter("oversized", "other")
    return Planted(Proof.DEAD_LETTERS, None, "1 dead letters of other in the topic, 0 by")


PLANTS: list[Plant] = [
    *(_other_partition, _version, _doubled, _unreadable, _key, _identity, _counters, _position, _gap, _ahead),
    *(_lost_bet, _foreign_bet, _lost_letter, _unknown_feed),
]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__[1:])
def test_each_violation_is_found_and_nothing_else(
    written: Topics, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = audit(written.settings)
    assert before.findings.violations == before.findings.warnings == []
    assert before.findings.unproven == {}
    planted = plant(written)
    for rows in (audited_bets.ROWS, 4):
        monkeypatch.setattr(audited_bets, "ROWS", rows)
        audited = audit(written.settings)
        [found] = audited.findings.violations
        assert (found.proof, found.key) == (planted.proof, planted.key)
        assert found.text.startswith(planted.text)
        assert (found.offset is None) == (planted.key is None)
        if found.at is not None:
            assert audited.findings.hour(found.at).violations == 1


def test_what_is_declared_is_no_violation(written: Topics) -> None:
    written.bet("bet-3", 2)
    written.bet("bet-3", 2, payout=7.0)
    _published(written, 2, revision=written.now - 80)
    written.gap(written.now - 80, written.now - 50)
    written.gap(written.now - 50, written.now - 40)
    _published(written, 0, revision=written.now - 40)
    move = Move(written.now, "somebody", written.now - 40, written.now - 4000)
    _published(written, 0, revision=written.now - 4000, moved=move)
    audited = audit(written.settings)
    assert audited.findings.violations == []
    assert (audited.bets, audited.gaps, audited.dead_letters, audited.checkpoints) == (BETS + 2, 2, 2, 4)
    assert sum(hour.corrections for hour in audited.findings.hours.values()) == 1


def test_what_was_deleted_is_not_missed(written: Topics, place: Place) -> None:
    written.gap(written.now - 90, written.now - 40)
    _published(written, 0, revision=written.now - 40)
    gaps, letters = written.declared.gaps, written.declared.deadletters
    admin = place.admin()
    everything = [TopicPartition(t.name, p, OFFSET_END) for t in (gaps, letters) for p in range(t.partitions)]
    for deleted in admin.delete_records(everything).values():
        deleted.result(30)
    findings = audit(written.settings).findings
    assert findings.violations == []
    assert {*findings.unproven} == {Proof.GAP, Proof.POSITION, Proof.AHEAD, Proof.DEAD_LETTERS}


def test_added_partitions_are_a_warning(written: Topics, place: Place) -> None:
    name = written.declared.bets.name
    admin = place.admin()
    admin.create_partitions([NewPartitions(name, 9)])[name].result(30)
    written.now += 1
    producer = Producer({"bootstrap.servers": place.cluster.bootstrap_servers, "log_level": 0})
    for number in range(BETS):
        key = f"new-{number}"
        datum = BARE_BET | {"betId": key}
        partition, at = partition_of(key.encode(), 9), written.now * 1000
        producer.produce(name, written.codecs.bets.encode(datum), key, partition, timestamp=at)
    assert producer.flush(20) == 0
    _published(written, BETS)
    findings = audit(written.settings).findings
    assert findings.violations == []
    [warning] = findings.warnings
    assert warning.proof is Proof.PARTITION
    assert "lie as 6 partitions put them" in warning.text


def test_a_bridge_that_writes_at_any_step_looks_right(written: Topics, place: Place) -> None:
    producer = Producer(written._properties(place, **{"transactional.id": place.prefix}))
    producer.init_transactions(20)
    written.producer = producer
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
        before = written.checkpoint.counters
        counters = replace(
            before,
            received=before.received + 2,
            published=before.published + 1,
            dead_lettered=before.dead_lettered + 1,
        )
        newest = float(written.now + 100 + number)
        written.commit(replace(written.checkpoint, counters=counters, newest=newest))
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
    settings = SimulatorSettings(port=0, rate=100, history_seconds=20, resettle=0.2, odd=0.02)
    async with Simulator(settings) as feed:
        results: list[dict[str, Any]] = []
        for is_last in (False, True):
            bridge = place.bridge(FEED__BASE_URL=feed.url)
            await bridge.reaches("Live")
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
    _version(written)
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
    for arguments, reason in (
        (["--feed", "nobody"], f"under {place.prefix}; known: none yet"),
        (["--from", "noon"], "'noon' is not a time"),
    ):
        ran = place.run("audit", *arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert reason in ran.stderr
    admin = place.admin()
    admin.delete_topics([f"{place.prefix}.gaps"])[f"{place.prefix}.gaps"].result(30)
    ran = place.run("audit")  # which would find that every gap is declared
    assert (ran.returncode, ran.stdout) == (6, "")
    assert f"there is no topic {place.prefix}.gaps" in ran.stderr


def test_nothing_is_audited_without_violation(place: Place) -> None:
    audited: Audited = audit(prepared(place))
    assert (audited.bets, audited.checkpoints, audited.findings.violations) == (0, 0, [])
