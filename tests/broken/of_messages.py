"""Faults in what becomes of a message: its fields, its dead letter, its counter, duplicates."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from bridge.dedup.deduplicator import Deduplicator, DedupResult
from bridge.feed.framing import Inbox
from bridge.messages.converter import Converter
from bridge.messages.parser import Message, MessageParser, _unknown_with_values
from bridge.records.counters import Counters
from bridge.records.dead_letter import dead_letter
from bridge.service.pipeline import Pipeline
from bridge.service.term import Term
from tests.broken.fault import GOES_BACK, By, Fault, Rules
from tests.judge import Anomaly

_OFFSET = re.compile(rb'("[0-9]{4}-[^"]*T[^"]*)[+-][0-9]{2}:[0-9]{2}"')
_SEEN: set[tuple[bytes, int, bytes]] = set()


def _bet(change: Callable[[Any], object]) -> Rules:
    """The datum of each bet is changed in place."""

    def parse(of: By, self: MessageParser, data: bytes) -> Message:
        message: Message = of(self, data)
        if message.bet is not None:
            change(message.bet)
        return message

    return {MessageParser.parse: parse}


def _selections(change: Callable[[Any], object]) -> Rules:
    """The datum of each selection is changed in place."""
    return _bet(lambda bet: [change(item) for item in bet["selections"] or ()])


def _without_settlement(item: Any) -> None:
    for part in item["betBuilderItems"] or ():
        part["settlement"] = None


def _with_double_amount(bet: Any) -> None:
    if bet["amount"]:
        bet["amount"]["value"] = int(float(bet["amount"]["value"]))


def _with_other_half(bet: Any) -> None:
    others = {"HalfWin": "HalfLose", "HalfLose": "HalfWin"}
    bet["betSettlement"] = others.get(bet["betSettlement"], bet["betSettlement"])


def _in_ascii(item: Any) -> None:
    if item["parameters"]:
        item["parameters"] = {key: text for key, text in item["parameters"].items() if key.isascii()}


def _unsorted(parse: By, self: MessageParser, data: bytes) -> Message:
    message: Message = parse(self, data)
    if message.bet is not None:
        sent = orjson.loads(data)["data"]["selections"] or ()
        for item, as_sent in zip(message.bet["selections"] or (), sent, strict=True):
            item["parameters"] = as_sent.get("parameters")
    return message


def _letter(change: Callable[[Any], object]) -> Rules:
    """The bytes of each dead letter are changed."""

    def made(of: By, *arguments: Any, **named: Any) -> Any:
        record = of(*arguments, **named)
        record.value = change(record.value)
        return record

    return {dead_letter: made}


def _counted_as_empty(letter: By, self: Pipeline, *arguments: Any) -> None:
    letter(self, *arguments)
    self.term.counters.empty += self.term.counters.dead_lettered
    self.term.counters.dead_lettered = 0


def _corrections_as_duplicates(publish: By, self: Pipeline, *arguments: Any) -> None:
    publish(self, *arguments)
    is_correction = arguments[-1] is DedupResult.CORRECTION
    self.term.counters.published -= is_correction
    self.term.counters.duplicates += is_correction


def _versions_as_corrections(
    publish: By, self: Pipeline, key: bytes, at: float, version: int, *arguments: Any
) -> None:
    before = self.term.counters.corrections
    publish(self, key, at, version, *arguments)
    self.term.counters.corrections = before + (version > 1)


def _from_zero(begin: By, self: Term) -> None:
    begin(self)
    self.counters = Counters()


def _at_most_twenty(add: By, self: Inbox, data: bytes, fin: bool, at: float) -> None:
    add(self, data, fin, at)
    if len(self) > 20:
        self.bytes -= len(self._queue.pop().body)


def _evict_all(_: By, self: Deduplicator, keep_from: float) -> None:
    self._keep_row = self._table.end
    self._drop(len(self))


def _judged(**instead: DedupResult) -> Rules:
    """One decision is taken in the place of another, on bets that are known."""

    def judge(
        of: By, self: Deduplicator, key: bytes, version: int, content: bytes, rewrite: Any, *, replaying: bool
    ) -> DedupResult:
        result: DedupResult = of(self, key, version, content, rewrite, replaying=replaying)
        return instead.get(result.name, result) if self._find(key)[2] else result

    return {Deduplicator.judge: judge}


def _once(
    judge: By, self: Deduplicator, key: bytes, version: int, content: bytes, rewrite: Any, *, replaying: bool
) -> DedupResult:
    result: DedupResult = judge(self, key, version, content, rewrite, replaying=replaying)
    is_known = (key, version, content) in _SEEN
    _SEEN.add((key, version, content))
    return DedupResult.DUPLICATE if is_known and result is DedupResult.CORRECTION else result


def _without_bet_of_ping(convert: By, self: Converter, data: bytes) -> Any:
    ping_id, bet, extras = convert(self, data)
    return ping_id, bet if ping_id is None else None, extras


def _swallow(_: By, self: Pipeline, message: Any, kind: Any, reason: str) -> None:
    self.term.counters.empty += 1


def _settled_when_received(
    publish: By, self: Pipeline, key: bytes, at: float, version: int, settled_at: float, *arguments: Any
) -> None:
    publish(self, key, settled_at, version, settled_at, *arguments)


_DUPLICATE = {Anomaly.DUPLICATE: ""}

_wrong = partial(Fault, "replay", {Anomaly.WRONG_FIELD: ""})
_lost = partial(Fault, "replay", {Anomaly.LOST_WRITE: ""})
_letter_lost = partial(Fault, "replay", {Anomaly.DEAD_LETTER_LOST: ""})
_letter_altered = partial(Fault, "replay", {Anomaly.DEAD_LETTER_ALTERED: ""})
_doubled = partial(Fault, "reconnections", _DUPLICATE)
_change_lost = partial(Fault, "reconnections", {Anomaly.LOST_WRITE: "there and back: version 2"})
_repeated = partial(Fault, "reconnections", _DUPLICATE | {Anomaly.NON_MONOTONIC: ""})

FAULTS = (
    _wrong(
        "settlementTimes are cut to milliseconds",
        _bet(lambda bet: bet.update(settlementTime=bet["settlementTime"] // 1000 * 1000)),
    ),
    _wrong(
        "zones of date-times are ignored",
        {Converter.convert: lambda of, self, data: of(self, _OFFSET.sub(rb'\1"', data))},
    ),
    _wrong("amounts above 2^53 lose their last digits", _bet(_with_double_amount)),
    _wrong("payouts are rounded to two digits", _bet(lambda bet: bet.update(payout=round(bet["payout"], 2)))),
    _wrong(
        "a selection without a price gets the price 0",
        _selections(lambda item: item.update(price=item["price"] or 0.0)),
    ),
    _wrong("parts of a bet builder have no settlement", _selections(_without_settlement)),
    _wrong(
        "bets have three selections at most",
        _bet(lambda bet: bet.update(selections=(bet["selections"] or [])[:3])),
    ),
    _wrong("HalfWin and HalfLose are exchanged", _bet(_with_other_half)),
    _wrong("entries of maps whose key is not ASCII are dropped", _selections(_in_ascii)),
    Fault(
        "replay",
        _DUPLICATE,
        "maps are published in the order in which they came",
        {MessageParser.parse: _unsorted},
    ),
    _letter_lost("what cannot be converted is counted as empty", {Pipeline._dead_letter: _swallow}),
    _letter_lost("other envelopes are counted as empty", {_unknown_with_values: lambda _, document: ""}),
    _letter_altered("dead letters are cut to 20 bytes", _letter(lambda body: body[:20])),
    _letter_altered(
        "dead letters are made UTF-8", _letter(lambda body: body.decode("utf-8", "replace").encode())
    ),
    _lost("a bet beside a ping is dropped", {Converter.convert: _without_bet_of_ping}),
    Fault(
        "replay",
        {Anomaly.COUNTERS: "deadLettered is 0"},
        "dead letters are counted as empty",
        {Pipeline._dead_letter: _counted_as_empty},
    ),
    Fault(
        "reconnections",
        {Anomaly.COUNTERS: "published is"},
        "corrections are counted as duplicates",
        {Pipeline._publish: _corrections_as_duplicates},
    ),
    Fault(
        "kills",
        {Anomaly.COUNTERS: "falls from"},
        "a new owner counts from zero",
        {**GOES_BACK, Term.__post_init__: _from_zero},
    ),
    # A busy machine lets more of them wait.
    _lost("messages that find 20 others waiting are dropped", {Inbox.add: _at_most_twenty}, records=0.25),
    _doubled(
        "every bet is taken for a new one",
        {Deduplicator.judge: lambda _, self, *rest, **named: DedupResult.NEW},
    ),
    _doubled(
        "dead letters are written again with each replay",
        {Deduplicator.dead_letter_time: lambda _, self, content: None},
    ),
    _doubled("what was published five seconds ago is forgotten", {Deduplicator.evict: _evict_all}),
    _change_lost("an earlier content of a version is a duplicate, live too", {Deduplicator.judge: _once}),
    _change_lost(
        "other content of a published version is a duplicate", _judged(CORRECTION=DedupResult.DUPLICATE)
    ),
    _repeated(
        "of several contents a replay knows the last one only",
        {Deduplicator._walk: lambda _, self, chain, content, rewrite: False},
    ),
    _repeated("lower versions are published", _judged(STALE=DedupResult.NEW)),
    _lost("higher versions are taken for stale", _judged(NEW=DedupResult.STALE)),
    Fault(
        "replay",
        {Anomaly.WRONG_FIELD: "published from"},
        "records have the time of their settlement",
        {Pipeline._publish: _settled_when_received},
    ),
    Fault(
        "replay",
        {Anomaly.DEAD_LETTER_ALTERED: "no reason"},
        "dead letters have no reason",
        {
            dead_letter: lambda of, topic, message, kind, reason, **named: of(
                topic, message, kind, "", **named
            )
        },
    ),
    Fault(
        "replay",
        {Anomaly.DEAD_LETTER_ALTERED: "so a replay from there"},
        "a replay from its position does not bring a dead letter back",
        {dead_letter: lambda of, *rest, revision, **named: of(*rest, revision=revision + 3600, **named)},
    ),
    Fault(
        "replay",
        {Anomaly.COUNTERS: "corrections is"},
        "higher versions are counted as corrections",
        {Pipeline._publish: _versions_as_corrections},
    ),
)
