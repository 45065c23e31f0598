"""What was acknowledged and is gone is told from what was aborted and written again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridge.config import Settings
from bridge.kafka import acknowledged, admin, clients
from bridge.kafka.acknowledged import Acknowledged
from bridge.kafka.batch import Record
from tests.unit.state.log import Message

TOPIC = "t.bets"


def message(offset: int, value: bytes) -> Message:
    """A record of partition 0."""
    return Message((0, offset), content=value, name=TOPIC, called=b"bet", marks=[("received", b"1")])


class Log:
    """A partition: aborted values are in lower case. Its last stable offset may lie before the end."""

    def __init__(self, values: str, stable: int | None = None) -> None:
        self.values, self.stable = values, len(values) if stable is None else stable

    def scan(
        self,
        topic: str,
        take: Callable[[Any], None],
        *,
        start: dict[int, int],
        visible: bool = False,
        ends: dict[int, int] | None = None,
        committed: bool = True,
    ) -> Any:
        """Stand in for TopicScan."""

        class Scan:
            def read(_, settings: Settings) -> dict[int, int]:  # noqa: N805
                end = self.stable if ends is None else ends[0]
                assert visible == committed == (ends is None)
                for offset in range(start.get(0, 0), end):
                    if not committed or self.values[offset].isupper():
                        take(message(offset, self.values[offset].upper().encode()))
                return {0: end}

        return Scan()


def found(monkeypatch: pytest.MonkeyPatch, values: str, kept: str = "", **more: Any) -> str:
    """What is to be written again."""
    known = more.pop("known", None) or Acknowledged(Settings(), [TOPIC])
    monkeypatch.setattr(acknowledged, "TopicScan", Log(values, **more).scan)
    records = known.discarded([Record(TOPIC, b"bet", value.encode(), 0) for value in kept])
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
        ("ABa", "", "A"),  # a bet that has changed and changed back
        ("ABaA", "", ""),
    ],
)
def test_only_what_nobody_sees_and_nobody_will_write_is_lost(
    monkeypatch: pytest.MonkeyPatch, values: str, kept: str, lost: str
) -> None:
    assert found(monkeypatch, values, kept) == lost


def test_what_an_open_transaction_hides_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, "AbC", stable=1) == ""


def test_only_what_was_written_since_all_was_well_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is the begin of the term, or what a look saw before a commit that succeeded."""
    known = Acknowledged(Settings(), [TOPIC])
    monkeypatch.setattr(clients, "admin", lambda _: None)
    monkeypatch.setattr(admin, "partition_count", lambda *_: 1)
    monkeypatch.setattr(admin, "end_offsets", lambda *_: [1])
    known.begin()
    assert found(monkeypatch, "abcD", known=known) == "BC"
    known.offer({TOPIC: [2], "t.checkpoints": [9]})
    assert found(monkeypatch, "abcD", known=known) == "BC"  # an abort may have preceded the look
    known.accept()
    assert found(monkeypatch, "abcD", known=known) == "C"
    known.accept()
    assert found(monkeypatch, "abcD", known=known) == "C"
    known.offer({TOPIC: [4]})
    known.begin()
    known.accept()
    assert found(monkeypatch, "abcD", known=known) == "BC"
