"""Damaged checkpoints, gaps and dead letters are refused as documented, and what is read can be used.

Bytes are random, or those of a record with some changed, cut off or put in. Data are valid Avro of numbers
that no bridge writes. Headers are missing, doubled, no text, or numbers of any size. What is read can be
shown, used and written again. `make test` tries 200 of each; after a change of what is read, try more:

    DAMAGED=4000 .venv/bin/python -m pytest -n 0 tests/property/test_damaged_records.py
"""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import timedelta
from typing import Any

import orjson
import pytest
from confluent_kafka import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.audit.findings import AuditFinding, Findings, Proof
from bridge.audit.letters import LettersCheck
from bridge.avro.codec import Codec
from bridge.avro.schemas import Schema, load
from bridge.config import Settings
from bridge.doctor.feed_checks import assess_checkpoint
from bridge.errors import ForeignRecord, SchemaError
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.feed.received import Received
from bridge.inspection.dead_letters import (
    Letter,
    by_cause,
    cause_as_json,
    causes_as_lines,
    letter_after,
    letter_as_json,
    letter_as_lines,
)
from bridge.inspection.gaps import gap_as_json, gap_as_line
from bridge.inspection.limits import LimitForecast, forecast_as_json, forecast_as_lines
from bridge.inspection.readers import checkpoint_as_json, checkpoint_as_lines
from bridge.kafka.batch import Header
from bridge.reader.decoding import DEAD_LETTERS, GAPS
from bridge.records.checkpoint import Checkpoint, Move, State, UnprovenReplay
from bridge.records.counters import Counters
from bridge.records.dead_letter import (
    DeadLetter,
    DeadLetterKind,
    RedriveMark,
    RedriveOutcome,
    dead_letter,
)
from bridge.records.gap import Cause, FeedGap
from bridge.records.message import headers_of, original_receipt, place_fields

damaged = settings(
    max_examples=int(os.environ.get("DAMAGED", "200")),
    deadline=timedelta(seconds=5),  # of one example, on a busy machine
)
NOW = 1_790_000_000.0
SETTINGS = Settings()
SCHEMAS = {7: load("feed-checkpoint"), 8: load("feed-gap"), 9: load("settled-bet")}


def schema_by_id(schema_id: int) -> Schema:
    """As a registry that has three schemas."""
    if schema_id not in SCHEMAS:
        raise SchemaError(f"no schema has the id {schema_id}")
    return SCHEMAS[schema_id]


CHECKPOINTS, GAP_CODEC = (Codec(SCHEMAS[schema_id], schema_id, schema_by_id) for schema_id in (7, 8))
ATTEMPTS = (
    Attempt(NOW - 60, 0, True, NOW - 59, refused=True, retry_at=NOW + 60),
    Attempt(NOW - 50, 1_500, False),
)
CHECKPOINT = Checkpoint(
    feed="settlement-v4",
    revision=1_789_999_970,
    state=State.CATCHING_UP,
    ledger=ATTEMPTS,
    counters=Counters(received=3, published=2, pings=1),
    updated_at=NOW - 1,
    owner="host:1:abc",
    reason="why",
    since=NOW - 9,
    until=NOW + 9,
    newest=NOW - 2,
    skew=-0.5,
    catch_up=CatchUp(NOW - 3000, 1234.5, 60.5),
    unproven=UnprovenReplay(1_789_999_970, NOW - 9, NOW - 20),
    moved=Move(NOW - 99, "me@host", 1_789_999_000, 1_789_999_900, "because"),
)
GAP = FeedGap("settlement-v4", NOW - 9, NOW - 1, Cause.TOO_OLD, NOW)
WRITTEN = {"checkpoint": CHECKPOINTS.encode(CHECKPOINT.to_avro()), "gap": GAP_CODEC.encode(GAP.to_avro())}

LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [0, -1, 1, 2**62, 2**63 - 1, -(2**63), 253_402_300_800_000_000, -62_135_596_800_000_000]
)
DOUBLES = st.floats() | st.sampled_from([float("nan"), float("inf"), 1e308, -1e308, 5e-324])


@st.composite
def damaged_bytes(draw: st.DrawFn, written: bytes) -> bytes:
    """Random bytes, or those of a record with up to four places changed."""
    if draw(st.booleans()):
        return draw(st.binary(max_size=300)) if draw(st.booleans()) else written[:5] + draw(st.binary())
    data = bytearray(written)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 12)))
        match draw(st.sampled_from(["change", "cut", "repeat"])):
            case "change":
                data[start:end] = draw(st.binary(max_size=12))
            case "cut":
                del data[start:]
            case _:
                data[start:start] = data[start:end] * draw(st.integers(1, 50))
    return bytes(data)


def numbers_in(node: Any) -> Iterator[tuple[Any, Any]]:
    """Where the numbers of a datum are: what holds each, and its name or index there."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list):
            yield from numbers_in(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield node, key


@st.composite
def hostile_data(draw: st.DrawFn, written: dict[str, Any]) -> dict[str, Any]:
    """A valid datum with up to three numbers of its types' whole range."""
    datum = deepcopy(written)
    for holder, key in draw(st.lists(st.sampled_from(list(numbers_in(datum))), min_size=1, max_size=3)):
        holder[key] = draw(LONGS if isinstance(holder[key], int) else DOUBLES)
    return datum


def use(checkpoint: Checkpoint) -> None:
    """Do with a checkpoint what the commands and the next owner do with it."""
    again = Checkpoint.from_avro(CHECKPOINTS.decode(CHECKPOINTS.encode(checkpoint.to_avro())))
    assert (again.feed, again.revision, again.counters) == (
        checkpoint.feed,
        checkpoint.revision,
        checkpoint.counters,
    )
    orjson.dumps(checkpoint_as_json(checkpoint))
    checkpoint_as_lines(checkpoint, NOW)
    forecast = LimitForecast(SETTINGS, checkpoint, NOW, checkpoint.revision)
    orjson.dumps(forecast_as_json(forecast))
    forecast_as_lines(forecast)
    assess_checkpoint(SETTINGS, checkpoint, NOW)


@damaged
@given(damaged_bytes(WRITTEN["checkpoint"]))
def test_bytes_are_a_checkpoint_that_can_be_used_or_a_schema_error(data: bytes) -> None:
    try:
        checkpoint = Checkpoint.from_avro(CHECKPOINTS.decode(data))
    except SchemaError:
        return
    use(checkpoint)


@damaged
@given(hostile_data(CHECKPOINT.to_avro()))
def test_numbers_are_those_of_a_checkpoint_that_can_be_used_or_a_schema_error(datum: dict[str, Any]) -> None:
    try:
        checkpoint = Checkpoint.from_avro(CHECKPOINTS.decode(CHECKPOINTS.encode(datum)))
    except SchemaError:
        return
    use(checkpoint)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("revision", 2**62),
        ("updatedAt", 2**63 - 1),
        ("until", -(2**63)),
        ("skewSeconds", float("nan")),
        ("counters.pings", -1),
        ("counters.received", 2**63 - 1),
        ("connections.0.recoverySeconds", -1),
        ("connections.1.at", 2**62),
        ("catchUp.rate", 1e400),
        ("catchUp.remainingSeconds", float("nan")),
        ("moved.from", 2**62),
    ],
)
def test_an_impossible_number_is_named(path: str, number: float) -> None:
    datum = CHECKPOINT.to_avro()
    *parents, name = path.split(".")
    place: Any = datum
    for parent in parents:
        place = place[int(parent) if parent.isdigit() else parent]
    place[name] = number
    with pytest.raises(SchemaError) as caught:
        Checkpoint.from_avro(CHECKPOINTS.decode(CHECKPOINTS.encode(datum)))
    field = path.replace(".0", "[0]").replace(".1", "[1]")
    assert str(caught.value).startswith(f"not a FeedCheckpoint: {field}: ")


@pytest.mark.parametrize("length", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\xfe\xff\xff\xff\x0f"])
def test_a_length_that_is_a_lie_takes_no_memory(length: bytes) -> None:
    data = WRITTEN["checkpoint"]
    tracemalloc.start()
    try:
        for place in range(5, len(data)):
            with pytest.raises(SchemaError):
                Checkpoint.from_avro(CHECKPOINTS.decode(data[:place] + length))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


# Gaps.


@damaged
@given(damaged_bytes(WRITTEN["gap"]) | hostile_data(GAP.to_avro()).map(lambda datum: GAP_CODEC.encode(datum)))
def test_bytes_are_a_gap_that_can_be_shown_or_a_schema_error(data: bytes) -> None:
    try:
        datum = GAP_CODEC.decode(data)
        gap = FeedGap.from_avro(datum)
    except SchemaError:
        pass
    else:
        assert GAP_CODEC.decode(GAP_CODEC.encode(gap.to_avro()))["feed"] == gap.feed
        orjson.dumps(gap_as_json(gap))
        gap_as_line(gap)
    place = {"topic": "t", "partition": 0, "offset": 0, "timestamp": 0, "key": "f"}
    with suppress(SchemaError):
        GAPS.make(place, GAP_CODEC.decode(data))


# Dead letters.

KEY = b"ab" * 32
NUMBERS = (
    (LONGS.map(str) | DOUBLES.map(str) | st.text(max_size=8)).map(
        lambda text: text.encode("utf-8", "replace")
    )
    | st.sampled_from([b"", b"9" * 5000, b"1e308", b"-1", b"1_000", "１２".encode(), b" 1", b"nan", b"\xff"])
    | st.binary(max_size=8)
)
VALUES = (
    NUMBERS
    | st.sampled_from([*DeadLetterKind, *RedriveOutcome]).map(lambda one: one.value.encode())
    | st.none()
)
RECORDS = [
    dead_letter("t", Received(b"{}", NOW), DeadLetterKind.ERROR, "data.x: wrong", feed="f", revision=17),
    dead_letter("t", Received(b"{}", NOW), DeadLetterKind.SAMPLE, "data.x: new", feed="f", revision=17),
    *(RedriveMark(outcome, 1, NOW, "f", "why").record("t", KEY) for outcome in RedriveOutcome),
]


def text_of(headers: Any) -> dict[str, str]:
    return headers_of(Message(headers=headers))


LETTER, MARK = text_of(RECORDS[0].headers), text_of(RECORDS[2].headers)


def read_letter(headers: dict[str, str]) -> DeadLetter:
    return DeadLetter.read(place_fields(Message("t", 0, 0, KEY)), headers, b"{}")


def as_bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


@st.composite
def damaged_headers(draw: st.DrawFn) -> list[Header]:
    """Those of a dead letter or a mark, with some missing, changed or there twice."""
    headers = draw(st.sampled_from(RECORDS)).headers or ()
    found: list[Header] = [(name, as_bytes(value)) for name, value in headers]
    for _ in range(draw(st.integers(0, 3))):
        index = draw(st.integers(0, len(found)))
        match draw(st.sampled_from(["missing", "changed", "twice", "foreign"])):
            case "missing":
                del found[index : index + 1]
            case "foreign":
                found.insert(index, (draw(st.text(max_size=8)), draw(st.binary(max_size=8))))
            case how if found:
                name = found[index % len(found)][0]
                value = draw(VALUES)
                if how == "changed":
                    found[index % len(found)] = (name, value)
                else:
                    found.append((name, value))
            case _:
                pass
    return found


@damaged
@given(st.lists(damaged_headers(), max_size=4), st.sampled_from([KEY, KEY, KEY, b"\xff", b"short"]))
def test_letters_and_marks_are_read_whole_or_not_at_all(records: list[list[Header]], key: bytes) -> None:
    letters = dict[str, Letter]()
    for offset, headers in enumerate(records):
        message = Message("t", 0, offset, key, b"{}", headers)
        before = dict(letters)
        try:
            letter = letter_after(message, "f", letters)
        except ForeignRecord:
            letter = None
            assert letters == before
        if letter is not None:
            letters[letter.key] = letter
            orjson.dumps(letter_as_json(letter, message))
            letter_as_lines(letter, message)
        for one in letters.values():
            mark = RedriveMark(RedriveOutcome.STALE, one.tries + 1, NOW, "f")
            assert RedriveMark.read(text_of(mark.record("t", KEY).headers)) == mark
            assert one.outcome is None or one.redriven is not None
    kinds = by_cause(letters.values())
    orjson.dumps([cause_as_json(kind) for kind in kinds])
    causes_as_lines(kinds, 0)


@damaged
@given(damaged_headers())
def test_headers_are_those_of_a_letter_that_can_be_written_again_or_not_ours(
    headers: list[Header],
) -> None:
    text = text_of(headers)
    message = Message("t", 0, 0, KEY, b"{}", headers)
    with suppress(ForeignRecord):
        found = DEAD_LETTERS.make(place_fields(message), message)
        letter = Received(b"{}", found.received)
        again = dead_letter("t", letter, found.kind, found.reason, feed=found.feed, revision=found.revision)
        assert read_letter(text_of(again.headers)).revision == found.revision
    received = original_receipt(text)
    assert received is None or f"{received:.6f}"
    LettersCheck(Findings(), None).take(text, AuditFinding(Proof.DEAD_LETTERS, "", "t", 0, 0, 0, "k"))


def test_undamaged_headers_are_read_as_they_were_written() -> None:
    letter, sample, *marks = (text_of(record.headers) for record in RECORDS)
    found = read_letter(letter)
    assert (found.kind, found.reason, found.feed) == (DeadLetterKind.ERROR, "data.x: wrong", "f")
    assert (found.revision, found.received, found.size) == (17, NOW, 2)
    assert read_letter(sample).kind is DeadLetterKind.SAMPLE
    assert [RedriveMark.read(mark)[:5] for mark in marks] == [(o, 1, NOW, "f", "why") for o in RedriveOutcome]
    assert original_receipt(letter) == NOW


@pytest.mark.parametrize(
    "value", ["", "nan", "inf", "1e9", "1_000", "１２", " 1", "0x1", "9" * 5000, "1e308"]
)
@pytest.mark.parametrize("name", ["revision", "received", "size", "tries", "redriven"])
def test_a_number_is_written_in_digits(name: str, value: str) -> None:
    read: Callable[[dict[str, str]], object] = RedriveMark.read if name in MARK else read_letter
    with pytest.raises(ForeignRecord):
        read(LETTER | MARK | {"kind": "error", name: value})
    assert original_receipt({"received": value}) is None


@pytest.mark.parametrize(
    ("read", "headers", "wrong"),
    [
        (read_letter, LETTER, {"revision": str(2**62)}),
        (read_letter, LETTER, {"received": str(2**62)}),
        (read_letter, LETTER, {"size": "-1"}),
        (read_letter, LETTER, {"size": str(2**63)}),
        (read_letter, LETTER, {"kind": "redrive"}),
        (RedriveMark.read, MARK, {"tries": "-1"}),
        (RedriveMark.read, MARK, {"tries": str(2**31)}),
        (RedriveMark.read, MARK, {"redriven": str(-(2**62))}),
    ],
)
def test_a_number_is_within_its_bounds(
    read: Callable[[dict[str, str]], object], headers: dict[str, str], wrong: dict[str, str]
) -> None:
    read(headers)
    with pytest.raises(ForeignRecord):
        read(headers | wrong)


def test_a_damaged_mark_leaves_a_letter_open() -> None:
    def message(offset: int, headers: dict[str, str]) -> Message:
        return Message("t", 0, offset, KEY, b"{}", [*headers.items()])

    letter = letter_after(message(0, LETTER), "f", {})
    assert letter is not None
    letters = {letter.key: letter}
    with pytest.raises(ForeignRecord):
        letter_after(message(1, MARK | {"redriven": "soon"}), "f", letters)
    assert letters[letter.key].open
    assert letter_after(message(2, MARK), "f", letters) is None
    assert not letters[letter.key].open
