"""Restoring the deduplicator from the topics at a start."""

from __future__ import annotations

import time

import pytest
from structlog.testing import capture_logs

from bridge import clock
from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.clock import MICROS, Instant
from bridge.dedup.deduplicator import DedupResult, fingerprint
from bridge.kafka import clients
from bridge.records import topics
from bridge.stored import restore
from tests.bets import BARE_BET
from tests.harness import Place
from tests.integration.publishing import prepared, settings_of

HOUR = 3600
CODEC = Codec(load("settled-bet"), 7, lambda _: load("settled-bet"))
COUNT = 12_000
"""Bets published in a row, one every ten seconds."""


def test_a_deduplicator_is_restored_from_the_topic(place: Place) -> None:
    settings = settings_of(place)
    declared = topics.declare(settings)
    admin = clients.admin(settings.kafka)
    topics.apply(admin, topics.plan(admin, declared), replication_factor=None)
    now = time.time()
    begin = now - COUNT * 10 - HOUR
    values = [
        CODEC.encode(
            BARE_BET
            | {
                "betId": f"b{n}",
                "settlementTime": int((begin + 10 * n) * MICROS),
                "settlementVersion": n,
            }
        )
        for n in range(COUNT)
    ]
    producer = place.producer(linger_ms=5)
    for n, value in enumerate(values):
        producer.produce(declared.bets.name, value, b"b%d" % n, n % 2, timestamp=int(now * 1000))
    producer.produce(declared.deadletters.name, b"{", b"letter", timestamp=int(now * 1000))
    assert producer.flush(30) == 0

    last = COUNT - 1
    deduplicator = restore.PublishedReader(settings, declared, CODEC).deduplicator(
        begin + 10 * last - 60, lambda: False, lambda _: None
    )
    deduplicator.connected()

    def knows(n: int) -> bool:
        content = fingerprint(values[n])
        return (
            deduplicator.judge(b"b%d" % n, n, content, lambda _: None, replaying=True)
            is DedupResult.DUPLICATE
        )

    assert [n for n in range(COUNT) if not knows(n)] == []
    assert deduplicator.dead_letter_time(b"letter") == pytest.approx(now, abs=0.01)
    assert len(deduplicator) == COUNT + 1


def hurried() -> Instant:
    """A clock on which half a minute takes a second."""
    now = clock.now()
    return Instant(now.wall, 30 * now.monotonic)


@pytest.mark.parametrize(
    ("age", "expected"), [(2 * HOUR, {b"before", b"behind"}), (HOUR / 2, {b"behind"})], ids=["long", "short"]
)
def test_an_open_transaction_delays_the_restore(
    place: Place, age: float, expected: set[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "LETTERS", 0)
    settings = prepared(place)
    declared = topics.declare(settings)
    name = declared.deadletters.name
    letters, other = place.producer(), place.open_transaction("other", transaction_timeout_ms=30_000)
    now = time.time()
    for producer, key, at in (
        (letters, b"before", now - HOUR),
        (other, b"aborted", now),
        (letters, b"behind", now),
    ):
        producer.produce(name, b"{", key, 0, timestamp=int(at * 1000))
        assert producer.flush(30) == 0
    hiding = f"an open transaction hides what is in {name}: partition 0 from offset 1"
    over = False

    def end_it_when_told() -> bool:
        nonlocal over
        if not over and any(str(line.get("reason")).startswith(f"{hiding}, since ") for line in lines):
            other.abort_transaction(30)
            over = True
        return False

    with capture_logs() as lines:
        deduplicator = restore.PublishedReader(settings, declared, CODEC, hurried).deduplicator(
            now - age, end_it_when_told, lambda _: None
        )
    assert over, "it ended without us"
    known = {
        key for key in (b"before", b"aborted", b"behind") if deduplicator.dead_letter_time(key) is not None
    }
    assert known == expected
