"""What `bridge run` refuses to start with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import AsyncMock, Mock

import pytest
from structlog.testing import capture_logs

from bridge.config import FeedSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import NotOwner, SettingsError
from bridge.kafka import clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import outage_of
from bridge.observability.status import DeliveryStatus, KnownStatus, TermStatus
from bridge.ownership.election import LeaderElection
from bridge.ownership.group import Group, Member
from bridge.records import topics
from bridge.records.checkpoint import State
from bridge.records.topics import declare
from bridge.registry import Registry
from bridge.service import app, members, startup
from bridge.service.transaction_monitor import TransactionMonitor

NOWHERE = "127.0.0.1:1"


class Apart(LeaderElection):
    """The election of a process that is a member of no group; what it sees of the group, look by look."""

    def __init__(
        self, *looks: Group | Exception | None, before: Callable[[], object] = lambda: None, last: Any = None
    ) -> None:
        """Without a consumer. `before` is called before each look, `last` at the last one."""
        self._looks, self._before, self._last = list(looks), before, last

    refusal = ""

    term = 1

    def taken(self) -> None: ...

    def released(self, term: int) -> None: ...

    def look(self, _client: object) -> Group | None:
        self._before()
        found = self._looks.pop(0) if self._looks else None
        if not self._looks and self._last is not None:
            self._last()
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> app._Service:
    """A process that looks at its group in quick succession."""
    monkeypatch.setattr(members, "STANDBY_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", lambda _: object())
    return app._Service(Settings(feed=FeedSettings(base_url=f"http://{NOWHERE}")))


ALONE = Group((Member("1", "a", "h", True),))
NO_GAPS: Any = SimpleNamespace(codecs=SimpleNamespace(gaps=None))


def test_what_a_connection_will_need_is_checked_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_Service", lambda _: pytest.fail("it starts"))
    feed = FeedSettings(base_url=f"http://{NOWHERE}", auth="bearer", auth_value_file=tmp_path / "none")
    kafka, registry = KafkaSettings(bootstrap_servers=NOWHERE), RegistrySettings(url=f"http://{NOWHERE}")
    with pytest.raises(SettingsError, match=r"BRIDGE_FEED__AUTH_VALUE_FILE: cannot read"):
        app.run(Settings(feed=feed, kafka=kafka, registry=registry), print)


@pytest.mark.parametrize("is_silent", [True, False])
async def test_a_wait_for_the_registry_names_it(monkeypatch: pytest.MonkeyPatch, is_silent: bool) -> None:
    released = threading.Event()
    address, kafka = f"http://{NOWHERE}/apis", KafkaSettings(bootstrap_servers=NOWHERE)

    def ensure(*_: object) -> topics.Topics:
        outage_of(kafka).cause = "the host name is unknown"
        monkeypatch.setattr(startup, "RETRY_SECONDS", 0.01)
        monkeypatch.setattr(startup, "SILENT_SECONDS", 0.01)
        return declare(Settings())

    monkeypatch.setattr(topics, "ensure", ensure)
    if is_silent:
        monkeypatch.setattr(Registry, "codecs_of_owner", lambda *_: released.wait(60))
    registry = RegistrySettings(url=f"http://user:secret@{NOWHERE}/apis")
    service = app._Service(Settings(kafka=kafka, registry=registry, feed=FeedSettings()))
    became, become = asyncio.Event(), service._status.become

    def noted(*args: Any, **details: Any) -> bool:
        became.set()
        return become(*args, **details)

    monkeypatch.setattr(service._status, "become", noted)
    preparing = asyncio.create_task(startup.prepare(service._settings, service._status, service._clock))
    try:
        await became.wait()
    finally:
        preparing.cancel()
        released.set()
        await asyncio.wait({preparing})
    assert service._status.state is State.WAITING_FOR_KAFKA
    assert f"the schema registry at {address} " in service._status.reason


async def test_a_standby_for_whom_no_client_can_be_made_goes_on(
    service: app._Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[KafkaSettings] = []

    def admin(settings: KafkaSettings) -> object:
        made.append(settings)
        if len(made) < 3:
            raise KafkaUnavailable("a file is away")
        return object()

    monkeypatch.setattr(clients, "admin", admin)
    with capture_logs() as logged:
        await service._stand_by(Apart(None, last=service._changed.set))
    assert [line.get("reason", "") for line in logged] == ["a file is away", ""]
    assert len(made) == 3


async def test_a_standby_that_may_not_see_the_group_does_not_repeat_what_is_over(
    service: app._Service,
) -> None:
    with capture_logs() as logged:
        await service._stand_by(Apart(ALONE, None, None, last=service._changed.set))
    assert ["waits for a" in line.get("reason", "") for line in logged] == [True, False]
    assert service._status.until is None


async def test_an_owner_that_lost_kafka_waits_for_it_until_a_look_says_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, seen = app._Service(Settings()), []

    class Losing(Apart):
        check, close = Mock(), Mock()
        is_owner = True

    async def lose(_: object, leadership: Losing) -> None:
        service._status.become(State.WAITING_FOR_KAFKA, "no broker answers")
        leadership.is_owner = False

    async def stand_by(_: object) -> NoReturn:
        seen.append((service._status.state, service._status.reason))
        raise asyncio.CancelledError

    async def prepare(*_: object) -> startup.Prepared:
        return startup.Prepared(declare(Settings()), Mock(), Mock(confirm_if_due=AsyncMock()), Mock())

    for name, value in {"_one_term": lose, "_stand_by": stand_by}.items():
        monkeypatch.setattr(service, name, value)
    monkeypatch.setattr(app, "prepare", prepare)
    monkeypatch.setattr(app, "LeaderElection", lambda *_: Losing())
    monkeypatch.setattr(app, "PAUSE_SECONDS", 0)
    monkeypatch.setattr("gc.freeze", Mock())
    monkeypatch.setattr("gc.unfreeze", Mock())
    monkeypatch.setattr(TransactionMonitor, "run", AsyncMock())
    with pytest.raises(asyncio.CancelledError):
        await service._stand_by_and_own()
    assert seen == [(State.WAITING_FOR_KAFKA, "no broker answers")]


def loses_the_feed(
    service: app._Service,
    monkeypatch: pytest.MonkeyPatch,
    known: TermStatus,
    owns: Callable[[], Awaitable[object]],
) -> None:
    """Have an owner that knows where it is, if it has restored that, and loses the feed."""

    class Owner:
        term, committed = 1, None

        def __init__(self, *_: object) -> None: ...

        def seen(self) -> TermStatus:
            return known

        async def run(self) -> None:
            await owns()
            raise NotOwner("leadership was lost")

    monkeypatch.setattr(app, "FeedOwner", Owner)
    monkeypatch.setattr(service._gaps, "read", AsyncMock())


async def test_without_kafka_the_last_owner_shows_where_it_was(
    service: app._Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = KafkaUnavailable("no broker"), None, Group(), ALONE, ALONE
    seen: list[tuple[bool, int | None, int]] = []

    def see() -> None:
        status = service._take_snapshot()
        seen.append((status.owner, status.known.revision, status.delivery.batch_records))

    async def owns() -> None:
        service._snapshot = service._take_snapshot()
        see()

    restored = TermStatus(KnownStatus(revision=7), delivery=DeliveryStatus(batch_records=5))
    leadership = Apart(*looks, before=see, last=service._changed.set)
    for known in (restored, TermStatus()):
        loses_the_feed(service, monkeypatch, known, owns)
        await service._one_term(NO_GAPS, leadership)
    await service._stand_by(leadership)
    terms = [(True, 7, 5), (True, None, 0)]
    assert seen == [*terms, (False, 7, 0), (False, 7, 0), (False, 7, 0), (False, 7, 0), (False, None, 0)]


async def test_a_term_that_restores_nothing_brings_back_nothing_older_than_another_owner(
    service: app._Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service._known, service._members.succeeded = KnownStatus(revision=7), True
    loses_the_feed(service, monkeypatch, TermStatus(), lambda: asyncio.sleep(0))  # its members are looked at
    await service._one_term(NO_GAPS, Apart())
    assert service._take_snapshot().known == KnownStatus()


async def test_an_owner_knows_who_stands_by_as_long_as_kafka_says_so(
    service: app._Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group((*ALONE.members, Member("2", "b", "h", False)))
    looks = group, KafkaUnavailable("no broker"), RuntimeError("unforeseen"), group, None
    seen: list[Group | None] = []
    clients_made: list[int] = []
    destroyed_by: list[str] = []

    class Client:
        def __del__(self) -> None:
            destroyed_by.append(threading.current_thread().name)

    def admin(_settings: KafkaSettings) -> object:
        clients_made.append(len(clients_made))
        return Client()

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(members, "OWNER_SECONDS", 0.001)
    monkeypatch.setattr(clients, "admin", admin)
    watch: asyncio.Future[NoReturn]
    leadership = Apart(
        *looks,
        before=lambda: seen.append(service._take_snapshot().group),
        last=lambda: loop.call_soon_threadsafe(watch.cancel),
    )
    watch = asyncio.ensure_future(service._members.watch_as_owner(leadership))
    with pytest.raises(asyncio.CancelledError), capture_logs() as logged:
        await watch
    assert seen == [None, group, None, None, group]
    assert [line["reason"] for line in logged] == ["no broker", "unforeseen"]
    assert len(clients_made) == 3
    for thread in threading.enumerate():
        if thread.name == "group":
            await asyncio.to_thread(thread.join, 10)
    # Not on the event loop, which has the feed: that may block. An unforeseen error keeps its frames.
    assert destroyed_by.count("group") >= 2
