"""How a bridge reports transactions that stay open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from bridge.clock import AnchoredClock
from bridge.config import Settings
from bridge.kafka import blocking, clients
from bridge.kafka.admin import TopicSeen
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.open_transactions import Look, OpenTransaction, RecordPlace
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge.records.reach import PartitionReach, TopicReach
from bridge.records.topics import declare
from bridge.service import transaction_monitor
from bridge.service.transaction_monitor import TransactionMonitor

OPEN = OpenTransaction(RecordPlace("settlement.bets", 3, 7), 1_790_000_000, 50)


async def watched(
    monkeypatch: pytest.MonkeyPatch,
    *looks: Callable[[], Look],
    known: tuple[TopicReach, ...] = (),
    on_other: Callable[[str], object] = lambda _: None,
    client: Callable[[object], object] = lambda _: object(),
) -> tuple[list[tuple[Any, float | None]], list[Any]]:
    """Watch as long as there are looks; return what is known after each one, and the log."""
    left, settings = list(looks), Settings()
    seen: list[tuple[Any, float | None]] = []
    monitor = TransactionMonitor(settings, AnchoredClock())

    class Watch:
        def __init__(self, *_: object) -> None: ...

        def look(self, _: object) -> Look:
            return left.pop(0)()

    report = monitor.report

    def reported(look: Look) -> None:
        report(look)
        seen.append((monitor.open, monitor.looked_at))
        if not left:
            watch.cancel()

    monkeypatch.setattr(monitor, "report", reported)
    monkeypatch.setattr(transaction_monitor, "TransactionWatch", Watch)
    monkeypatch.setattr(clients, "admin", client)
    monkeypatch.setattr(transaction_monitor, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(blocking, "HANG_SECONDS", 0.2)
    with capture_logs() as logged:
        watch = asyncio.create_task(
            monitor.run(declare(settings), LostRecordGuard(settings, ()), lambda: known, on_other)
        )
        await asyncio.wait({watch}, timeout=10)
    assert watch.cancelled()
    return seen, logged


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (TopicSeen("old", (6, 9)), ""),
        (TopicSeen("old", (6, 9, 0)), ""),
        (TopicSeen("new", (6, 9)), "settlement.bets is another topic than the one that was written"),
        (TopicSeen("old", (6, 3)), "settlement.bets has lost records: partition 1 ends at offset 3"),
        (TopicSeen("old", (6, 9), (0, 0)), ""),
        (TopicSeen("old", (6, 9), (4, 0)), "settlement.bets has lost records: what partition 0 had before"),
        (TopicSeen("old", (6,)), "settlement.bets has 1 partition, and had 2"),
        (None, ""),
    ],
)
async def test_each_look_compares_the_topics_with_what_was_written(
    monkeypatch: pytest.MonkeyPatch, seen: TopicSeen | None, reason: str
) -> None:
    known = TopicReach("settlement.bets", "old", (PartitionReach(5), PartitionReach(9)))
    others: list[str] = []
    look = Look((), {}, {}, {"settlement.bets": seen, "settlement.gaps": TopicSeen("any", (1,))})
    await watched(monkeypatch, lambda: look, lambda: look, known=(known,), on_other=others.append)
    assert [reason in other for other in others] == [True] * bool(reason)
    others.clear()
    well = look._replace(seen={"settlement.bets": TopicSeen("old", (5, 9))})
    looks = [lambda: look, lambda: well, lambda: look]
    await watched(monkeypatch, *looks, known=(known,), on_other=others.append)
    assert others == []


def failing(error: Exception) -> Look:
    raise error


@pytest.mark.parametrize(
    "error", [kind("no broker") for kind in (KafkaUnavailable, ValueError, TimeoutError)]
)
async def test_a_watch_that_cannot_look_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    seen, logged = await watched(
        monkeypatch,
        lambda: Look((OPEN,), {}),
        lambda: failing(error),
        lambda: failing(error),
        lambda: Look((), {"settlement.bets": "no right"}),
        lambda: Look((OPEN,), {}),
        lambda: Look((), {}),
    )
    assert [opened for opened, _ in seen] == [(OPEN,), None, None, None, (OPEN,), ()]
    times = [looked_at or 0 for _, looked_at in seen]
    assert times[0] == times[1] == times[3] < times[4]
    assert [line["event"] for line in logged] == [
        "open transaction hides records",
        "open transactions unknown",
        "open transactions unknown",
        "open transactions known again",
        "open transaction ended",
    ]
    assert ["no broker" in line.get("reason", "") for line in logged] == [False, True, False, False, False]
    assert [line["log_level"] for line in logged][1:3] == ["warning"] * 2


async def test_what_one_topic_hides_is_told_while_another_one_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partial = Look((OPEN,), {"t.gaps": "no leader"})
    [(opened, _)], logged = await watched(monkeypatch, lambda: partial)
    assert opened == (OPEN,)
    assert [line["event"] for line in logged] == [
        "open transactions unknown",
        "open transaction hides records",
    ]


async def test_a_client_is_used_until_a_topic_does_not_answer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    well, partial = Look((), {}), Look((), {"t.gaps": "no leader"})
    looks = [lambda: well, lambda: well, lambda: partial, lambda: well]

    def make(_: object) -> object:
        made.append(object())
        return made[-1]

    await watched(monkeypatch, *looks, client=make)
    assert len(made) == 2
