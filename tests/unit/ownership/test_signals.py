"""How a command ends that is told to in the midst of what it does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import SimpleNamespace
from typing import Any, Never
from unittest.mock import MagicMock

import anyio
import pytest

from bridge import cli
from bridge.config import FeedSettings
from bridge.errors import ClockError, NotCommitted
from bridge.ownership import signals
from bridge.ownership.signals import Stop, stoppable
from bridge.repair import ownership, redrive
from bridge.snapshots import job, scheduler
from bridge.snapshots.wanted import Task

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(autouse=True)
def from_a_terminal() -> Iterator[None]:
    """Whoever runs the tests may have them ignore Ctrl-C. No handler may stay."""
    handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    got_through.clear()
    yield
    left = {number: signal.signal(number, handler) for number, handler in former.items()}
    assert left == handlers


@contextmanager
def ended() -> Iterator[Stop]:
    """A block that is interrupted, and must end so."""
    with suppress(KeyboardInterrupt):
        with stoppable() as stop:
            yield stop
        pytest.fail("it went on")


async def interrupted(number: signal.Signals, times: int = 1) -> None:
    """A task is interrupted, in a group that makes another exception of one that ends its tasks."""
    async with anyio.create_task_group() as group:
        group.start_soon(asyncio.sleep, 60)
        for _ in range(times):
            signal.raise_signal(number)
        got_through.append(number)
        group.start_soon(asyncio.sleep, 60)  # cancelled before it begins


got_through: list[signal.Signals] = []
"""Signals that did not raise at once."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 2])
def test_what_is_asked_is_cancelled_and_ended_by_a_second_signal(number: signal.Signals, times: int) -> None:
    with ended():
        signals.run(interrupted(number, times))
    assert got_through == [number] * (times == 1)


@pytest.mark.parametrize("number", SIGNALS)
def test_what_waits_is_cancelled(number: signal.Signals) -> None:
    late = list[float]()

    async def wait() -> None:
        asyncio.get_running_loop().call_later(20, late.append, 20)
        threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
        await asyncio.Event().wait()

    with ended():
        signals.run(wait())
    assert late == []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_provider_that_is_asked_for_its_clock_or_for_names_is_not_asked_on(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(ownership, "ask", lambda _: interrupted(number))
    with ended():
        ownership._refuse_wrong_clock(FeedSettings(base_url="ws://127.0.0.1:1"))
    monkeypatch.setattr(job, "_Making", MagicMock())
    monkeypatch.setattr(job, "_job", lambda *_: SimpleNamespace(run=lambda *_: interrupted(number)))
    with ended():
        job.make_snapshot(MagicMock(), Task("currencies"), *[MagicMock()] * 5)
    assert got_through == [number] * 2


@pytest.mark.parametrize("number", SIGNALS)
def test_what_is_busy_is_ended_by_a_second_signal(number: signal.Signals) -> None:
    async def busy() -> None:
        signal.raise_signal(number)
        signal.raise_signal(number)
        pytest.fail("it went on")

    with ended():
        signals.run(busy())


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_after_all_is_asked_is_not_lost(number: signal.Signals) -> None:
    async def last(when: str) -> None:
        if when == "after":
            asyncio.current_task().add_done_callback(lambda _: signal.raise_signal(number))  # type: ignore[union-attr]
        else:
            signal.raise_signal(number)

    for when in ("in its last step", "after"):
        with ended():
            signals.run(last(when))


@pytest.mark.parametrize("number", SIGNALS)
def test_elsewhere_the_first_signal_ends_it(number: signal.Signals) -> None:
    with ended():
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interruption_that_was_lost_is_one_all_the_same(number: signal.Signals) -> None:
    with ended() as stop:
        assert not stop.is_set()
        stop.check()
        # As in the midst of `stop.wait`, whose lock `stop.set` would wait for.
        with suppress(KeyboardInterrupt), stop._cond:  # type: ignore[attr-defined]
            signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            stop.check()
        raise NotCommitted("stopped")


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interruption_that_breaks_a_lock_is_one_all_the_same(number: signal.Signals) -> None:
    with ended():
        try:
            signal.raise_signal(number)
        finally:
            threading.Lock().release()  # as `Condition.wait` does


@pytest.mark.parametrize("number", SIGNALS)
def test_an_error_of_its_own_stays_one(number: signal.Signals) -> None:
    def fail() -> Never:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise ClockError("an hour ahead")

    with pytest.raises(ClockError), stoppable():
        fail()


@pytest.mark.parametrize("error", [NotCommitted("stopped"), asyncio.CancelledError()])
def test_without_a_signal_nothing_is_an_interruption(error: BaseException) -> None:
    with pytest.raises(type(error)), stoppable():
        raise error


def test_what_was_told_to_ignore_ctrl_c_does_and_ends_by_sigterm() -> None:
    handlers = [signal.signal(number, signal.SIG_IGN) for number in SIGNALS]
    got = []
    with ended():
        for number in (signal.SIGINT, signal.SIGTERM):
            got.append(number)
            signal.raise_signal(number)
    assert got == [signal.SIGINT, signal.SIGTERM]
    assert [signal.signal(*one) for one in zip(SIGNALS, handlers, strict=True)] == [signal.SIG_IGN] * 2


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("currencies", 130),
        ("currencies --every 1h", 0),
        ("currencies --plan", 130),
        ("deadletters redrive", 130),
        ("deadletters redrive --dry-run", 130),
    ],
)
@pytest.mark.parametrize("number", SIGNALS)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
    command: str,
    code: int,
) -> None:
    def run(*given: object, **_: object) -> Never:
        try:
            signals.run(interrupted(number))
        finally:
            stops.extend(one.is_set() for one in given if isinstance(one, threading.Event))
        pytest.fail("it went on")

    stops: list[bool] = []
    patched = (job, "run"), (scheduler, "run"), (job, "plan"), (redrive, "redrive"), (redrive, "forecast")
    for module, name in patched:
        monkeypatch.setattr(module, name, run)
    monkeypatch.setattr(sys, "argv", ["bridge", *command.split()])
    monkeypatch.setenv("BRIDGE_WEB__PORT", "0")
    with pytest.raises(SystemExit) as exited:
        cli.main()
    said = capsys.readouterr().err
    assert (exited.value.code, "Traceback" in said, "error" in said) == (code, False, False)
    assert ("interrupted" in said, got_through) == (code == 130, [number])
    assert stops == [True] * (not command.endswith(("--plan", "--dry-run")))


def test_a_redrive_commits_nothing_after_an_interruption_that_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    committed = []

    def commit(_: object, __: object, letters: list[Any], ___: object) -> None:
        committed.extend(letters)
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)

    letters = [SimpleNamespace(size=1) for _ in range(3)]
    replaced = {
        "_Work": lambda *_, **__: MagicMock(letters=letters),
        "_commit": commit,
        "admin": MagicMock(),
        "batches": lambda *_: ([letter] for letter in letters),
        "owning": lambda _: nullcontext(MagicMock()),
        "read_bodies": lambda *_: {},
    }
    for name, fake in replaced.items():
        monkeypatch.setattr(redrive, name, fake)
    with ended() as stop:
        redrive.redrive(MagicMock(), MagicMock(), stop)
    assert committed == letters[:1]
