"""systemd's watchdog, on a socket like its own."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from bridge.config import FeedSettings, Settings, WebSettings
from bridge.observability import health
from bridge.service import app
from bridge.service.systemd_watchdog import watched

INTERVAL = 0.02
LONG = 10 * INTERVAL


@pytest.fixture(params=["path", "abstract"])
def systemd(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[socket.socket]:
    """The end at which systemd listens; its address and time-out are in the environment."""
    shown = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(shown.replace("@", "\0", 1))
        monkeypatch.setenv("NOTIFY_SOCKET", shown)
        monkeypatch.setenv("WATCHDOG_USEC", str(round(4 * INTERVAL * 1e6)))
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        yield receiver


def beats(receiver: socket.socket, within: float = 10) -> bool:
    """Whether one comes now, after those that have come."""
    receiver.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            receiver.recv(100)
    receiver.settimeout(within)
    try:
        return receiver.recv(100) == b"WATCHDOG=1"
    except TimeoutError:
        return False


def test_beats_come_while_it_is_healthy_and_end_with_the_block(systemd: socket.socket) -> None:
    well = True
    with watched(lambda: well):
        assert beats(systemd)
        well = False
        time.sleep(LONG)
        assert not beats(systemd, LONG)
        well = True
        assert beats(systemd)
    time.sleep(LONG)
    assert not beats(systemd, LONG)


@pytest.mark.parametrize(
    ("name", "value"), [("NOTIFY_SOCKET", ""), ("WATCHDOG_USEC", ""), ("WATCHDOG_PID", "1")]
)
def test_where_no_watchdog_waits_for_this_process_nothing_is_sent(
    name: str, value: str, systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with watched(lambda: True):
        assert not beats(systemd, LONG)


def test_a_socket_that_is_away_for_a_time_ends_nothing(systemd: socket.socket, tmp_path: Path) -> None:
    address = systemd.getsockname()
    with watched(lambda: True):
        systemd.close()
        if isinstance(address, str):
            Path(address).unlink()
        time.sleep(2 * INTERVAL)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as again:
            again.bind(address)
            assert beats(again)


@pytest.mark.parametrize("systemd", ["path"], indirect=True)
def test_a_bridge_whose_event_loop_hangs_sends_none_and_its_metrics_tell_for_how_long(
    systemd: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOOP_SECONDS", LONG)
    monkeypatch.setattr(app, "HEARTBEAT_SECONDS", INTERVAL)
    settings = Settings(feed=FeedSettings(base_url="http://127.0.0.1:1"), web=WebSettings(port=0))
    service = app._Service(settings)
    seen: list[bool] = []
    silent: list[float] = []

    def scrape() -> None:
        [url] = [line["address"] for line in logged if "address" in line]
        with urlopen(f"{url}/metrics", timeout=10) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        samples = [sample for family in families for sample in family.samples]
        silent.extend(it.value for it in samples if it.name == "bridge_event_loop_silent_seconds")

    async def hang() -> NoReturn:
        await asyncio.sleep(LONG)
        seen.append(await asyncio.to_thread(beats, systemd))
        await asyncio.to_thread(scrape)
        scraping = threading.Timer(2 * LONG, scrape)
        scraping.start()
        scraping.join()  # nothing else of the loop has its turn
        seen.append(beats(systemd, LONG))
        await asyncio.sleep(LONG)
        seen.append(await asyncio.to_thread(beats, systemd))
        raise asyncio.CancelledError

    monkeypatch.setattr(service, "_stand_by_and_own", hang)
    with capture_logs() as logged, pytest.raises(asyncio.CancelledError):
        asyncio.run(service.serve())
    assert seen == [True, False, True]
    before, after = silent
    assert after >= max(before, 2 * LONG)
