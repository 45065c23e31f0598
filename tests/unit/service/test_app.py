"""What `bridge run` refuses to start with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bridge.config import FeedSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import NotOwner, SettingsError
from bridge.kafka import clients
from bridge.kafka.acknowledged import Acknowledged
from bridge.kafka.election import LeaderElection
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.group import Group, Member
from bridge.kafka.open_transactions import Look, OpenTransaction, Place
from bridge.kafka.topics import declare
from bridge.service import app

NOWHERE = "127.0.0.1:1"


class Apart(LeaderElection):
    """The election of a process that is a member of no group."""

    def __init__(self) -> None:
        """Without a consumer."""

    @property
    def term(self) -> int:
        return 1

    def taken(self) -> None:
        """Nobody waits for it."""

    def released(self, term: int) -> None:
        """Nobody waits for it."""


def test_what_a_connection_will_need_is_checked_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a standby would pass for ready, and fail when it is needed."""
    monkeypatch.setattr(app, "_Service", lambda _: pytest.fail("it starts"))
    feed = FeedSettings(base_url=f"http://{NOWHERE}", auth="bearer", auth_value_file=tmp_path / "none")
    kafka, registry = KafkaSettings(bootstrap_servers=NOWHERE), RegistrySettings(url=f"http://{NOWHERE}")
    with pytest.raises(SettingsError, match=r"BRIDGE_FEED__AUTH_VALUE_FILE: cannot read"):
        app.run(Settings(feed=feed, kafka=kafka, registry=registry))


async def test_a_standby_for_whom_no_client_can_be_made_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that Kafka's settings name may be away; the report is that Kafka is."""
    made: list[KafkaSettings] = []

    class Unseen(Apart):
        """It lacks the right to see who is in the group."""

        def look(self, _client: object) -> None:
            service._changed.set()

    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))

    def admin(settings: KafkaSettings) -> object:
        made.append(settings)
        if len(made) < 3:
            raise KafkaUnavailable("a file is away")
        return object()

    monkeypatch.setattr(app, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", admin)
    with capture_logs() as logged:
        await service._stand_by(Unseen())
    assert [line.get("reason", "") for line in logged] == ["a file is away", ""]
    assert len(made) == 3


async def test_a_standby_that_may_not_see_the_group_does_not_repeat_what_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By when a place is free is shown for as long as Kafka says who is in the group."""
    looks: list[Group | None] = [Group((Member("1", "a", "h", True),)), None, None]

    class Forgetful(Apart):
        """It is reported once."""

        def look(self, _client: object) -> Group | None:
            if len(looks) == 1:
                service._changed.set()
            return looks.pop(0)

    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", lambda _: object())
    with capture_logs() as logged:
        await service._stand_by(Forgetful())
    assert ["waits for a" in line.get("reason", "") for line in logged] == [True, False]
    assert service._status.until is None


async def test_without_kafka_the_last_owner_shows_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is away for longer than a session, or in part; until another process owns the feed."""
    other = Group((Member("1", "a", "h", True),))
    looks: list[Group | KafkaUnavailable | None] = [
        KafkaUnavailable("no broker"),
        None,
        Group(),
        other,
        other,
    ]
    seen: list[tuple[bool, int | None, int]] = []

    def see() -> None:
        status = service._take_snapshot()
        seen.append((status.owner, status.revision, status.batch_records))

    class Shown(Apart):
        """It says who its members are, or not."""

        def look(self, _client: object) -> Group | None:
            see()
            found = looks.pop(0)
            if not looks:
                service._changed.set()
            if isinstance(found, KafkaUnavailable):
                raise found
            return found

    class Owner:
        """It knows where it is, once it has restored that, and loses the feed."""

        term = 1

        def __init__(self, known: Any) -> None:
            self.known = known

        def snapshot(self) -> dict[str, Any]:
            return {"owner": True, **self.known}

        async def run(self) -> None:
            service._snapshot = service._take_snapshot()
            see()
            raise NotOwner("leadership was lost")

    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(app, "GROUP_SECONDS", 10.0)
    monkeypatch.setattr(app, "FeedOwner", Owner)
    monkeypatch.setattr(clients, "admin", lambda _: object())
    for known in ({"revision": 7, "batch_records": 5}, {}):
        await service._one_term(known, Shown())  # type: ignore[arg-type]
    await service._stand_by(Shown())
    terms = [(True, 7, 5), (True, None, 0)]
    assert seen == [*terms, (False, 7, 0), (False, 7, 0), (False, 7, 0), (False, 7, 0), (False, None, 0)]


async def test_an_owner_knows_who_stands_by_as_long_as_kafka_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the look ends with, the next one has a new client, and the term goes on."""
    group = Group((Member("1", "a", "h", True), Member("2", "b", "h", False)))
    looks: list[Group | Exception] = [group, KafkaUnavailable("no broker"), RuntimeError("unforeseen"), group]
    seen: list[Group | None] = []
    clients_made: list[int] = []
    destroyed_by: list[str] = []

    class Client:
        def __del__(self) -> None:
            destroyed_by.append(threading.current_thread().name)

    class Shown(Apart):
        """Its group is shown, or not."""

        def look(self, _client: object) -> Group | None:
            seen.append(service._take_snapshot().group)
            if not looks:
                loop.call_soon_threadsafe(watch.cancel)
                return None
            found = looks.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

    def admin(_settings: KafkaSettings) -> object:
        clients_made.append(len(clients_made))
        return Client()

    loop = asyncio.get_running_loop()
    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))
    monkeypatch.setattr(app, "GROUP_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", admin)
    watch = asyncio.ensure_future(service._watch_group(Shown()))
    with pytest.raises(asyncio.CancelledError):
        await watch
    assert seen == [None, group, None, None, group]
    assert len(clients_made) == 3
    for thread in threading.enumerate():
        if thread.name == "group":
            await asyncio.to_thread(thread.join, 10)
    assert set(destroyed_by) == {"group"}  # which may block: the event loop has the feed


OPEN = OpenTransaction(Place("settlement.bets", 3, 7), 1_790_000_000, 50)


async def watched(monkeypatch: pytest.MonkeyPatch, *looks: Callable[[], Look]) -> tuple[list[Any], list[Any]]:
    """Have a bridge watch as long as there are looks; return its snapshots after each one, and the log."""
    left, seen = list(looks), []
    service = app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))

    class Watch:
        def __init__(self, *_: object) -> None: ...

        def look(self) -> Look:
            return left.pop(0)()

        def close(self) -> None: ...

    report = service._report_transactions

    def reported(look: Look) -> None:
        report(look)
        seen.append(service._take_snapshot())
        if not left:
            watch.cancel()

    monkeypatch.setattr(service, "_report_transactions", reported)
    monkeypatch.setattr(app, "TransactionWatch", Watch)
    monkeypatch.setattr(app, "WATCH_SECONDS", 0.001)
    monkeypatch.setattr(app, "WATCH_LIMIT_SECONDS", 0.2)
    with capture_logs() as logged:
        acknowledged = Acknowledged(service._settings, ())
        watch = asyncio.create_task(service._watch_transactions(declare(service._settings), acknowledged))
        await asyncio.wait({watch}, timeout=10)
    assert watch.cancelled()
    return seen, logged


def failing(error: Exception) -> Look:
    raise error


@pytest.mark.parametrize(
    "error", [kind("no broker") for kind in (KafkaUnavailable, ValueError, TimeoutError)]
)
async def test_a_watch_that_cannot_look_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Once for each reason; in the meantime nothing is known, and nothing is told as known."""
    snapshots, logged = await watched(
        monkeypatch,
        lambda: Look((OPEN,), {}),
        lambda: failing(error),
        lambda: failing(error),
        lambda: Look((), {"settlement.bets": "no right"}),
        lambda: Look((OPEN,), {}),
        lambda: Look((), {}),
    )
    assert [snapshot.open_transactions for snapshot in snapshots] == [(OPEN,), None, None, None, (OPEN,), ()]
    times = [snapshot.transactions_looked_at for snapshot in snapshots]
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
    """All that is known is there."""
    partial = Look((OPEN,), {"t.gaps": "no leader"})
    [snapshot], logged = await watched(monkeypatch, lambda: partial)
    assert snapshot.open_transactions == (OPEN,)
    assert [line["event"] for line in logged] == [
        "open transactions unknown",
        "open transaction hides records",
    ]


async def test_a_look_that_does_not_return_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of the client may block for ever: its thread is left behind."""
    returned = threading.Event()

    def stuck() -> Look:
        returned.wait(30)
        return Look((), {})

    snapshots, logged = await watched(monkeypatch, stuck, lambda: Look((OPEN,), {}))
    returned.set()
    assert [snapshot.open_transactions for snapshot in snapshots] == [None, (OPEN,)]
    assert "no answer" in logged[0]["reason"]
