"""Decides what becomes of a dead letter that is redriven. No IO.

A letter goes today's way: the limits of size, the model, the deduplicator. It comes late, though: what was
received after it may have been published long ago. So a version below the published one is stale, as ever,
and so is another content of the published version that was received before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from bridge.avro.codec import Codec
from bridge.config import Settings
from bridge.dedup.deduplicator import Deduplicator, DedupResult, fingerprint
from bridge.errors import ConversionError, SchemaError
from bridge.messages.converter import make_converter
from bridge.messages.parser import MessageParser
from bridge.messages.transcoder import Bet
from bridge.records.counters import Counters
from bridge.records.dead_letter import RedriveOutcome, identity
from bridge.records.topics import largest_bet

T = TypeVar("T")
_COUNTERS: Final = {
    RedriveOutcome.PUBLISHED: "published",
    RedriveOutcome.DUPLICATE: "duplicates",
    RedriveOutcome.STALE: "stale",
    RedriveOutcome.PING: "pings",
    RedriveOutcome.EMPTY: "empty",
}
"""Outcome → the counter of it, unless it failed."""


@dataclass(frozen=True, slots=True)
class RedriveDecision:
    """What becomes of a dead letter."""

    outcome: RedriveOutcome
    reason: str = ""
    """Why it failed, or why it is not published."""
    bet: Bet | None = None
    """Whatever the outcome, if it is a bet."""
    correction: bool = False

    def add_to(self, counters: Counters) -> None:
        """Count the letter under its new outcome; one that failed remains what it was."""
        if (name := _COUNTERS.get(self.outcome)) is not None:
            setattr(counters, name, getattr(counters, name) + 1)
            counters.corrections += self.correction and self.outcome is RedriveOutcome.PUBLISHED
            counters.redriven += 1


class Model:
    """Converts dead letters as `bridge run` would convert their messages today."""

    def __init__(self, settings: Settings, codec: Codec) -> None:
        self._most = settings.feed.max_message_bytes
        self._parser = MessageParser(settings.feed.optional_fields)
        self._converter = make_converter(self._parser, codec, largest_bet(settings.feed))
        self._codec = codec

    def convert(self, key: str, body: bytes) -> Bet | RedriveDecision:
        """Return the bet in a dead letter, or what becomes of one that is none."""
        if len(body) > self._most:
            reason = f"{len(body)} bytes are more than feed.max_message_bytes = {self._most}"
            return RedriveDecision(RedriveOutcome.FAILED, reason)
        if identity(body).decode() != key:
            return RedriveDecision(
                RedriveOutcome.FAILED, "its bytes do not match its key, which is their hash"
            )
        try:
            ping_id, bet, _ = self._converter.convert(body)
        except ConversionError as error:
            return RedriveDecision(RedriveOutcome.FAILED, error.reason)
        if bet is not None:
            return bet
        return RedriveDecision(RedriveOutcome.EMPTY if ping_id is None else RedriveOutcome.PING)

    def rewrite(self, body: bytes, schema: bytes) -> bytes | None:
        """Return the fingerprint of the bet in another schema, by its id; None if it does not fit."""
        schema_id = int.from_bytes(schema, "big")
        bet = self._parser.parse(body).bet
        assert bet is not None
        try:
            return fingerprint(self._codec.in_schema(schema_id).encode(bet))
        except SchemaError:
            return None


TIE_SECONDS: Final = 0.00101
"""Times of receipt nearer than this do not tell an order: a record has its own cut to milliseconds, which may
lose a whole one, and what came in one read has one."""
_TIE: Final = "other content of its version was received in the same millisecond: which is later is unknown"


class RedriveRules:
    """Judges dead letters in the order in which they are to be published.

    `deduplicator` knows all that is published of their bets, `received` when the last record of each was
    received, Unix seconds.
    """

    def __init__(self, model: Model, deduplicator: Deduplicator, received: Mapping[bytes, float]) -> None:
        self._model = model
        self._deduplicator = deduplicator
        self._received = dict(received)

    def decide(self, key: str, body: bytes, received: float) -> RedriveDecision:
        """Return what becomes of a dead letter received at this time; one to publish counts as published."""
        bet = self._model.convert(key, body)
        if isinstance(bet, RedriveDecision):
            return bet
        bet_id, version, _, value = bet
        content = fingerprint(value)
        self._deduplicator.rewind()  # letters come in any order, unlike a replay
        found = self._deduplicator.judge(
            bet_id, version, content, lambda schema: self._model.rewrite(body, schema), replaying=True
        )
        if found in (DedupResult.DUPLICATE, DedupResult.UNDECIDED):
            return RedriveDecision(RedriveOutcome.DUPLICATE, "the same content is published", bet)
        if found is DedupResult.STALE:
            return RedriveDecision(RedriveOutcome.STALE, "a later version is published", bet)
        correction = found is DedupResult.CORRECTION
        if correction:
            later = received - self._received[bet_id]
            if abs(later) < TIE_SECONDS:
                return RedriveDecision(RedriveOutcome.FAILED, _TIE, bet)
            if later < 0:
                return RedriveDecision(
                    RedriveOutcome.STALE, "other content of its version, received later, is published", bet
                )
        self._deduplicator.publish(bet_id, version, content, received)
        self._received[bet_id] = received
        return RedriveDecision(RedriveOutcome.PUBLISHED, "", bet, correction)


def in_order(letters: Iterable[T], versions: Mapping[T, tuple[bytes, int]]) -> list[T]:
    """Return letters, which come in order of receipt, so that the versions of each bet ascend.

    `versions` has the bet and its version of each that is a bet. Letters of one bet exchange their places.
    """
    ordered = list(letters)
    places: dict[bytes, list[int]] = {}
    for place, letter in enumerate(ordered):
        if letter in versions:
            places.setdefault(versions[letter][0], []).append(place)
    for of_bet in places.values():
        by_version = sorted((ordered[place] for place in of_bet), key=lambda one: versions[one][1])
        for place, letter in zip(of_bet, by_version, strict=True):
            ordered[place] = letter
    return ordered
