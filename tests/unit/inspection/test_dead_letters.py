"""Dead letters are grouped by what is wrong with them, selected, and shown."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Message

from bridge.config import BatchSettings
from bridge.errors import SettingsError
from bridge.feed.received import Received
from bridge.inspection.dead_letters import (
    SHOWN_CHARACTERS,
    Filter,
    Letter,
    batches,
    bet_id,
    letter_after,
    letter_as_lines,
    resolve_key,
)
from bridge.inspection.replay import Window
from bridge.kafka.pace import KafkaPace
from bridge.records.dead_letter import DeadLetterKind, RedriveOutcome, dead_letter

AT = 1_790_000_000.0


def letter(number: int = 0, reason: str = "data.x[0]: wrong, got 1", size: int = 100, **more: Any) -> Letter:
    given: dict[str, Any] = {
        "kind": DeadLetterKind.ERROR,
        "reason": reason,
        "received": AT + number,
        "size": size,
    } | more
    place: dict[str, Any] = {
        "topic": "t",
        "partition": 1,
        "offset": number,
        "timestamp": 0,
        "key": f"{number:064x}",
    }
    return Letter(**place, **given, body=b"", feed="f", revision=17)


def record(body: bytes) -> Message:
    """The record of a letter."""
    return Message("t.deadletters", value=body, headers=[("reason", b"data.x[0]: wrong"), ("kind", b"error")])


def test_a_letter_that_comes_again_was_received_by_the_later_time() -> None:
    known = letter()
    again = Received(b"", AT + 500)
    headers = dead_letter("t", again, DeadLetterKind.ERROR, "data.x: wrong", feed="f", revision=18).headers
    message = Message("t", 2, 9, known.key.encode(), headers=headers)
    letters = {known.key: known}
    assert letter_after(message, "f", letters) is None
    found = letters[known.key]
    assert (found.received, found.revision, found.place) == (AT + 500, 18, (2, 9))


def test_letters_are_open_until_they_are_redriven() -> None:
    assert [outcome for outcome in (None, *RedriveOutcome) if letter(outcome=outcome).open] == [
        None,
        RedriveOutcome.FAILED,
    ]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(), True),
        (Filter(reason="WRONG"), True),
        (Filter(reason="got 1"), False),
        (Filter(field="data.x[]"), True),
        (Filter(field="data.x"), False),
        (Filter(window=Window(1_790_000_000_000, None)), True),
        (Filter(window=Window(1_790_000_000_001, None)), False),
        (Filter(window=Window(0, 1_790_000_000_000)), False),
        (Filter(key="0000"), True),
        (Filter(key="1"), False),
    ],
)
def test_a_filter_wants_letters(wanted: Filter, found: bool) -> None:
    assert wanted.wants(letter()) is found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"data":{"betId":"b","x":{}}}', "b"),
        (b'{"data":{"betId":7}}', None),
        (b'{"data":[]}', None),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_the_bet_of_a_letter_is_read_where_it_can_be(body: bytes, found: str | None) -> None:
    assert bet_id(body) == found


def test_a_portion_fits_a_transaction() -> None:
    letters = [letter(n, size=size) for n, size in enumerate((10, 10, 10, 90, 5, 5, 500, 5))]
    limits = BatchSettings(max_records=7, max_bytes=100)
    sizes = [[one.size for one in batch] for batch in batches(letters, limits)]
    assert sizes == [[10, 10, 10], [90, 5, 5], [500], [5]]
    assert list(batches([], limits)) == []


def test_a_portion_is_as_large_as_kafka_takes_by_then() -> None:
    pace, sizes = KafkaPace(), list[int]()
    for batch in batches([letter(n, size=1000) for n in range(300)], BatchSettings(), pace):
        sizes.append(len(batch))
        pace.took(1000 * len(batch), 0.1 * len(batch), 0)
    assert sum(sizes) == 300
    assert sizes[:3] == [131, 65, 32]


def test_a_key_must_be_that_of_one_letter() -> None:
    assert resolve_key([letter(1), letter(1)], "0") == letter(1)
    for letters in ([], [letter(1), letter(2)]):
        with pytest.raises(SettingsError, match="a key that begins with '0'"):
            resolve_key(letters, "0")


def test_a_letter_for_people_is_cut() -> None:
    tried = letter(1, "data.y: wrong", outcome=RedriveOutcome.FAILED, tries=2, redriven=AT)
    text = letter_as_lines(tried, record(b"x" * (SHOWN_CHARACTERS + 1)))
    assert "redriven  failed, 2026-09-21T14:13:20Z, tries: 2, data.y: wrong" in text.splitlines()
    assert text.endswith("x…\n(`bridge deadletters export` writes the whole message)")
    assert text.count("x" * 100) == SHOWN_CHARACTERS // 100
