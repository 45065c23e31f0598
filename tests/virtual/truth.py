"""Compares the messages that the provider published with the records in Kafka."""

from __future__ import annotations

from collections import defaultdict, deque
from functools import lru_cache
from typing import NamedTuple

from bridge.errors import ConversionError
from bridge.messages.parser import MessageParser
from bridge.records.gap import FeedGap
from bridge_sandbox.provider.feed import Provider
from tests.virtual.kafka import CODECS, Kafka

ON_ITS_WAY_SECONDS = 2.0
"""What was published so shortly before the end need not have come."""


_PARSER = MessageParser()


@lru_cache(maxsize=20_000)
def _record(message: bytes) -> tuple[bytes, bytes] | None:
    """Return key and value of a message's record; None for an empty message. Raises ConversionError."""
    bet = _PARSER.parse(message).bet
    return None if bet is None else (bet["betId"].encode(), CODECS.bets.encode(bet))


class Truth:
    """The records that the topics must hold by now, by the provider's own history."""

    def __init__(
        self, provider: Provider, now: float, gaps: list[FeedGap], since: float | None = None
    ) -> None:
        """`since` is a revision that was promised before the provider heard of anything."""
        log, attempts = provider.log, provider.attempts
        clock, first = log.stream.clock, attempts[0]
        since = since or first.revision
        since = clock.first(since) if since else first.at
        begin = min(since, *(attempt.since for attempt in attempts if attempt.since is not None))
        self._bets: dict[bytes, list[_Expected]] = defaultdict(list)
        self._letters: list[_Expected] = []
        for published in log.read(begin, now):
            at = clock.reading(published.at)
            lost = any(gap.start <= at < gap.end for gap in gaps)
            must = since <= published.at <= now - ON_ITS_WAY_SECONDS and not lost
            try:
                record = _record(published.body)
            except ConversionError:
                self._letters.append(_Expected(published.body, must))
                continue
            if record is not None:
                key, value = record
                self._bets[key].append(_Expected(value, must))

    def compare(self, kafka: Kafka) -> int:
        """Raises AssertionError at the first bet of which a message is lost, doubled or out of order."""
        found: dict[bytes, list[bytes]] = defaultdict(list)
        for record in kafka.records(kafka.topics.bets.name):
            found[record.key or b""].append(record.value or b"")
        for key in found.keys() | self._bets.keys():
            _compare(f"bet {key!r}", found[key], self._bets[key])
        letters = {record.value for record in kafka.records(kafka.topics.deadletters.name)}
        assert letters >= {letter.value for letter in self._letters if letter.must}
        return sum(one.must for chain in (self._letters, *self._bets.values()) for one in chain)


class _Expected(NamedTuple):
    """A required or permitted record."""

    value: bytes
    must: bool


def _compare(what: str, found: list[bytes], expected: list[_Expected]) -> None:
    """Assert that the found records are the expected sequence, except for optional ones."""
    left = deque(found)
    for number, one in enumerate(expected, 1):
        if left and left[0] == one.value:
            left.popleft()
        else:
            assert not one.must, f"{what}: settlement {number} is lost or out of order"
    assert not left, f"{what}: {len(left)} records too many"
