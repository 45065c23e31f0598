"""What was acknowledged and is gone is told from what was aborted and written again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Message

from bridge.config import Settings
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.ownership import lost_record_guard
from bridge.ownership.lost_record_guard import LostRecordGuard

TOPIC = "t.bets"


def message(offset: int, value: bytes) -> Message:
    return Message(TOPIC, 0, offset, b"bet", value, [("received", b"1")])


class Log:
    """A partition: aborted values are in lower case. Its last stable offsets may lie before the end."""

    def __init__(self, values: str, *stable: int) -> None:
        self.values, self.stable = values, [*stable] or [len(values)]

    def end_offsets(self, _client: object, _topic: str, _count: int, *, visible: bool = False) -> list[int]:
        """Stand in for `admin`: of the last stable offsets one after the other is seen."""
        if not visible:
            return [len(self.values)]
        return [self.stable.pop(0) if len(self.stable) > 1 else self.stable[0]]

    def installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clients, "admin", lambda _: None)
        monkeypatch.setattr(admin, "partition_count", lambda *_: 1)
        monkeypatch.setattr(admin, "end_offsets", self.end_offsets)
        monkeypatch.setattr(lost_record_guard, "TopicScan", self.scan)
        monkeypatch.setattr(lost_record_guard, "MARKER_PAUSES", (0, 0, 0, 0))

    def scan(
        self,
        topic: str,
        take: Callable[[Any], None],
        *,
        start: dict[int, int],
        ends: dict[int, int],
        committed: bool = True,
    ) -> Any:
        class Scan:
            def read(_, settings: Settings) -> None:  # noqa: N805
                assert start[0] <= ends[0], "all would be read from the beginning"
                for offset in range(start[0], ends[0]):
                    if not committed or self.values[offset].isupper():
                        take(message(offset, self.values[offset].upper().encode()))

        return Scan()


def bets(values: str) -> list[Record]:
    return [Record(TOPIC, b"bet", value.upper().encode(), 0) for value in values]


def knowing(values: str) -> LostRecordGuard:
    """After a commit of these."""
    known = LostRecordGuard(Settings(), [TOPIC])
    known.note_commit(bets(values))
    return known


def found(
    monkeypatch: pytest.MonkeyPatch,
    values: str,
    kept: str = "",
    *,
    known: LostRecordGuard | None = None,
    stable: tuple[int, ...] = (),
) -> str:
    """What is to be written again; if it is not `known`, all was acknowledged once."""
    Log(values, *stable).installed(monkeypatch)
    records = (known or knowing(values)).find_lost(bets(kept))
    assert all(record.headers == [("received", b"1")] and record.partition == 0 for record in records)
    return b"".join(record.value or b"" for record in records).decode()


@pytest.mark.parametrize(
    ("values", "kept", "lost"),
    [
        ("ABC", "", ""),
        ("AbC", "", "B"),
        ("AbcD", "", "BC"),
        ("AbB", "", ""),  # aborted and written again
        ("Abb", "B", ""),  # to be written again, after two attempts
        ("AbbcC", "", "B"),  # lost, and written in vain once more
        ("AbcbD", "", "CB"),  # a bet that has changed and changed back: its last content comes last
        ("ABa", "", "A"),  # a bet that has changed and changed back
        ("ABaA", "", ""),
    ],
)
def test_only_what_nobody_sees_and_nobody_will_write_is_lost(
    monkeypatch: pytest.MonkeyPatch, values: str, kept: str, lost: str
) -> None:
    assert found(monkeypatch, values, kept) == lost


@pytest.mark.parametrize(("known", "lost"), [("AC", ""), ("ABC", "B"), ("ACD", "D")])
def test_what_another_producer_has_aborted_is_its_own_affair(
    monkeypatch: pytest.MonkeyPatch, known: str, lost: str
) -> None:
    assert found(monkeypatch, "AbCd", known=knowing(known)) == lost


def test_the_last_records_of_each_topic_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_record_guard, "LAST", 4)
    known = LostRecordGuard(Settings(), [TOPIC, "t.deadletters"])
    known.note_commit([Record("t.deadletters", b"bet", b"A", 0), Record("t.checkpoints", b"f", b"B", 0)])
    for value in "ABCDEFGH":
        known.note_commit(bets(value))
    assert found(monkeypatch, "abcdefgh", known=known) == "GH" + "A"


def test_what_another_s_open_transaction_hides_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, "AbxC", known=knowing("ABC"), stable=(2,)) == "B"
    assert found(monkeypatch, "AxbC", known=knowing("ABC"), stable=(1,)) == ""
    assert found(monkeypatch, "AbxB", known=knowing("AB"), stable=(2,)) == ""  # written again behind it


def test_markers_that_come_late_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, "Abc", kept="C", stable=(1, 1, 3)) == "B"


@pytest.mark.parametrize(("values", "kept"), [("Ab", ""), ("Abc", "C"), ("Ac", "C")])
def test_where_they_do_not_come_the_transaction_is_written_again(
    monkeypatch: pytest.MonkeyPatch, values: str, kept: str
) -> None:
    with pytest.raises(KafkaUnavailable, match=r"t\.bets partition 0 from offset 1$"):
        found(monkeypatch, values, kept, known=knowing("AB"), stable=(1,))


def test_a_term_that_begins_behind_an_open_transaction_reads_nothing_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = knowing("")
    Log("axc", 1).installed(monkeypatch)
    known.begin()
    known.note_commit(bets("C"))
    assert found(monkeypatch, "axc", known=known, stable=(1,)) == ""


def test_only_what_was_written_since_all_was_well_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    known = knowing("")
    Log("a").installed(monkeypatch)
    known.begin()
    known.note_commit(bets("ABCD"))
    assert found(monkeypatch, "abcD", known=known) == "BC"
    known.note_stable({TOPIC: [2], "t.checkpoints": [9]})
    assert found(monkeypatch, "abcD", known=known) == "BC"  # an abort may have preceded the look
    known.note_commit([])
    assert found(monkeypatch, "abcD", known=known) == "C"
    known.note_commit([])
    assert found(monkeypatch, "abcD", known=known) == "C"
    known.note_stable({TOPIC: [4]})
    Log("a").installed(monkeypatch)
    known.begin()
    known.note_stable({TOPIC: [0]})  # by a look that began before the term
    known.note_commit([])
    assert found(monkeypatch, "abcD", known=known) == ""  # the last term's
    known.note_commit(bets("ABC"))
    assert found(monkeypatch, "abcD", known=known) == "BC"
