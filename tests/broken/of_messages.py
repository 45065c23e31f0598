"""Faults in what becomes of a message: its fields, its dead letter, its counter, duplicates."""

from __future__ import annotations

from tests.broken.fault import Fault, Patch
from tests.judge import Anomaly

_TRANSCODED = Patch("messages/converter.py", "    if not compiled():", "    if False:")
"""The transcoder converts, although nothing is compiled in a copy."""


def _of_type(field: str, type_: str, after: str) -> Patch:
    """A field whose valid values are changed."""
    return Patch(
        "messages/model.py",
        f"    {field}: {type_}\n",
        f"    {field}: Annotated[{type_}, AfterValidator(lambda value: {after})]\n",
    )


FAULTS = (
    Fault(
        "milliseconds",
        "date-times are cut to milliseconds",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/model.py",
                "* 1_000_000 + since.microseconds",
                "* 1_000_000 + since.microseconds // 1000 * 1000",
            ),
        ),
    ),
    Fault(
        "zone ignored",
        "the offset of a date-time is not subtracted",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/model.py",
                "        moment = datetime.fromisoformat(value)",
                '        moment = datetime.fromisoformat(re.sub("[+-][0-9]{2}:[0-9]{2}$", "", value))',
            ),
        ),
    ),
    Fault(
        "integer through a double",
        "amounts above 2^53 lose their last digits",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (_of_type("value", "Int64", "int(float(value))"),),
    ),
    Fault(
        "payout rounded",
        "payouts are rounded to two digits",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (_of_type("payout", "Double", "round(value, 2)"),),
    ),
    Fault(
        "null becomes zero",
        "a selection without a price gets the price 0",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/converter.py",
                "            value = self._encode(datum)",
                '            for item in datum["selections"] or ():\n'
                '                item["price"] = item["price"] or 0.0\n'
                "            value = self._encode(datum)",
            ),
        ),
    ),
    Fault(
        "field dropped",
        "the settlement of a bet builder's items is not taken over",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/converter.py",
                "            value = self._encode(datum)",
                '            for item in datum["selections"] or ():\n'
                '                for part in item["betBuilderItems"] or ():\n'
                '                    part["settlement"] = None\n'
                "            value = self._encode(datum)",
            ),
        ),
    ),
    Fault(
        "selections cut",
        "only the first three selections of a bet are published",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/converter.py",
                "            value = self._encode(datum)",
                '            del (datum["selections"] or [])[3:]\n            value = self._encode(datum)',
            ),
        ),
    ),
    Fault(
        "results exchanged",
        "HalfWin is published as HalfLose, and the reverse",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/model.py",
                '    4: "HalfWin",\n    5: "HalfLose",\n',
                '    4: "HalfLose",\n    5: "HalfWin",\n',
            ),
        ),
    ),
    Fault(
        "texts in ASCII only",
        "entries of a map whose key is not ASCII are dropped",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "messages/scalars.py",
                "    return dict(sorted(entries.items())) if len(entries) > 1 else entries",
                "    return dict(sorted((k, v) for k, v in entries.items() if k.isascii()))",
            ),
        ),
    ),
    Fault(
        "map order",
        "maps are published in the order in which they came: the same bet has other bytes",
        "replay",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "messages/scalars.py",
                "    return dict(sorted(entries.items())) if len(entries) > 1 else entries",
                "    return entries",
            ),
        ),
    ),
    Fault(
        "transcoder rounds",
        "the compiled walk rounds doubles to three digits",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            _TRANSCODED,
            Patch(
                "messages/transcoder.py",
                "            write_f64_le(out, value)",
                "            write_f64_le(out, round(value, 3))",
            ),
        ),
    ),
    Fault(
        "transcoder cuts maps",
        "the compiled walk writes the first entry of a map only",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            _TRANSCODED,
            Patch(
                "messages/transcoder.py",
                "            write_long(out, size)\n            for key in"
                " sorted(value) if size > 1 else value:",
                "            write_long(out, 1)\n            for key in sorted(value)[:1]:",
            ),
        ),
    ),
    Fault(
        "garbage swallowed",
        "what cannot be converted is counted as empty",
        "replay",
        (Anomaly.DEAD_LETTER_LOST,),
        (
            Patch(
                "service/pipeline.py",
                "            self._dead_letter(message, DeadLetterKind.ERROR, error.reason)",
                "            self.counters.empty += 1",
            ),
        ),
    ),
    Fault(
        "unknown envelope swallowed",
        "a message with neither ping nor bet but something else is counted as empty",
        "replay",
        (Anomaly.DEAD_LETTER_LOST,),
        (
            Patch(
                "messages/parser.py",
                '            if unknown and message["pingId"] is None and message["data"] is None:',
                "            if False:",
            ),
        ),
    ),
    Fault(
        "dead letter truncated",
        "only the first 20 bytes of a dead letter are kept",
        "replay",
        (Anomaly.DEAD_LETTER_ALTERED,),
        (
            Patch(
                "state/dead_letter.py",
                "if isinstance(body, Oversized) else (body, len(body))",
                "if isinstance(body, Oversized) else (body[:20], len(body))",
            ),
        ),
    ),
    Fault(
        "dead letter as text",
        "bytes of a dead letter that are not UTF-8 are replaced",
        "replay",
        (Anomaly.DEAD_LETTER_ALTERED,),
        (
            Patch(
                "state/dead_letter.py",
                "if isinstance(body, Oversized) else (body, len(body))",
                'if isinstance(body, Oversized) else (body.decode("utf-8", "replace").encode(), len(body))',
            ),
        ),
    ),
    Fault(
        "bet beside a ping swallowed",
        "a message with ping and bet is taken for a ping",
        "replay",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "service/pipeline.py",
                "        if bet is not None:\n            self._publish_bet(message, body, bet)",
                "        if bet is not None and ping_id is None:\n           "
                " self._publish_bet(message, body, bet)",
            ),
        ),
    ),
    Fault(
        "dead letters miscounted",
        "a dead letter is counted as an empty message",
        "replay",
        (Anomaly.COUNTERS,),
        (
            Patch(
                "service/pipeline.py",
                "            self.counters.dead_lettered += 1",
                "            self.counters.empty += 1",
            ),
        ),
        shown_by={Anomaly.COUNTERS: "deadLettered is 0"},
    ),
    Fault(
        "corrections miscounted",
        "a correction that is published is counted as a duplicate",
        "reconnections",
        (Anomaly.COUNTERS,),
        (
            Patch(
                "service/pipeline.py",
                "        self.counters.published += 1\n        self.counters.corrections",
                "        self.counters.published += verdict is not _CORRECTION\n"
                "        self.counters.duplicates += verdict is _CORRECTION\n"
                "        self.counters.corrections",
            ),
        ),
        shown_by={Anomaly.COUNTERS: "published is"},
    ),
    Fault(
        "counters start again",
        "a new owner counts from zero",
        "kills",
        (Anomaly.COUNTERS,),
        (
            Patch("service/owner.py", "            start.counters.copy(),", "            Counters(),"),
            Patch("state/checkpoint.py", "        return goes_on and all(", "        return True or all("),
        ),
        shown_by={Anomaly.COUNTERS: "falls from"},
    ),
    Fault(
        "queue overflows",
        "messages that find 20 others waiting are dropped",
        "replay",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "feed/framing.py",
                "        if body is not None:\n",
                "        if body is not None and len(self._queue) < 20:\n",
            ),
        ),
        records=0.25,  # a busy machine lets more of them wait
    ),
    Fault(
        "guard off",
        "every bet is taken for a new one",
        "reconnections",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "state/deduplicator.py",
                "        if not row:\n            return DedupResult.NEW\n",
                "        if True:\n            return DedupResult.NEW\n",
            ),
        ),
    ),
    Fault(
        "dead letters not guarded",
        "a dead letter is published again with each replay",
        "reconnections",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "service/pipeline.py",
                "        if self.deduplicator.dead_letter_time(content) is not None:",
                "        if False:",
            ),
        ),
    ),
    Fault(
        "eviction too early",
        "what was published five seconds ago is forgotten",
        "reconnections",
        (Anomaly.DUPLICATE,),
        (
            Patch(
                "service/pump.py",
                "                deduplicated_from(self._feed, min(committed.revision,"
                " self.pipeline.replays_from))",
                "                self._clock().wall",
            ),
        ),
    ),
    Fault(
        "A, B, A forgotten",
        "a content that was published before under the same version is a duplicate, live too",
        "reconnections",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "state/deduplicator.py",
                "        if chain is not None and replaying and self._walk(chain, content, rewrite):\n"
                "            return DedupResult.DUPLICATE if same else DedupResult.UNDECIDED",
                "        if chain is not None and content in ("
                "_ROW.unpack(self._table.payload(it))[0] for it in chain.rows):\n"
                "            return DedupResult.DUPLICATE",
            ),
        ),
        shown_by={Anomaly.LOST_WRITE: "there and back: version 2"},
    ),
    Fault(
        "corrections dropped",
        "other content of a published version is a duplicate",
        "reconnections",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "state/deduplicator.py",
                "        return DedupResult.DUPLICATE if same else DedupResult.CORRECTION",
                "        return DedupResult.DUPLICATE",
            ),
        ),
        shown_by={Anomaly.LOST_WRITE: "there and back: version 2"},
    ),
    Fault(
        "chains not walked",
        "of several contents of a version only the last one is known in a replay",
        "reconnections",
        (Anomaly.DUPLICATE, Anomaly.NON_MONOTONIC),
        (
            Patch(
                "state/deduplicator.py",
                "        if chain is not None and replaying and self._walk(chain, content, rewrite):",
                "        if False:",
            ),
        ),
    ),
    Fault(
        "stale versions published",
        "a lower version than the one in the topic is published",
        "reconnections",
        (Anomaly.NON_MONOTONIC, Anomaly.DUPLICATE),
        (
            Patch(
                "state/deduplicator.py",
                "            return DedupResult.NEW if version > last_version else DedupResult.STALE",
                "            return DedupResult.NEW",
            ),
        ),
    ),
    Fault(
        "first version wins",
        "a bet that was settled again is taken for stale",
        "replay",
        (Anomaly.LOST_WRITE,),
        (
            Patch(
                "state/deduplicator.py",
                "            return DedupResult.NEW if version > last_version else DedupResult.STALE",
                "            return DedupResult.STALE",
            ),
        ),
    ),
    Fault(
        "record stamped with its settlement",
        "the timestamp of a record is the settlementTime, not the time of receipt",
        "replay",
        (Anomaly.WRONG_FIELD,),
        (
            Patch(
                "service/pipeline.py",
                "(self._topics.bets.name, key, value, int(at * 1000),",
                "(self._topics.bets.name, key, value, int(settled_at * 1000),",
            ),
        ),
        {Anomaly.WRONG_FIELD: "published from"},
    ),
    Fault(
        "dead letter without a reason",
        "a dead letter does not say what is wrong",
        "replay",
        (Anomaly.DEAD_LETTER_ALTERED,),
        (
            Patch(
                "state/dead_letter.py",
                '            ("reason", _cut(reason)),\n            ("feed", feed),',
                '            ("reason", b""),\n            ("feed", feed),',
            ),
        ),
        {Anomaly.DEAD_LETTER_ALTERED: "no reason"},
    ),
    Fault(
        "dead letter with a later position",
        "a replay from the position in a dead letter does not bring it back",
        "replay",
        (Anomaly.DEAD_LETTER_ALTERED,),
        (
            Patch(
                "state/dead_letter.py",
                '            ("revision", str(revision)),',
                '            ("revision", str(revision + 3600)),',
            ),
        ),
        {Anomaly.DEAD_LETTER_ALTERED: "so a replay from there"},
    ),
    Fault(
        "new versions counted as corrections",
        "each record with a later version is counted as a correction",
        "replay",
        (Anomaly.COUNTERS,),
        (
            Patch(
                "service/pipeline.py",
                "        self.counters.corrections += verdict is _CORRECTION\n",
                "        self.counters.corrections += version > 1\n",
            ),
        ),
        {Anomaly.COUNTERS: "corrections is"},
    ),
)
