"""How a snapshot job ends that is told to."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Never

import anyio
import pytest

from bridge import cli
from bridge.errors import NotCommitted
from bridge.snapshots import job, scheduler


def between_requests(number: signal.Signals, stop: threading.Event) -> Never:
    """A callback, whose exceptions nobody gets, is interrupted; then the lock is asked whether to go on."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(number)
    assert stop.is_set()
    raise NotCommitted("stopped")


def amid_requests(number: signal.Signals, stop: threading.Event) -> None:
    """A task is interrupted, in a group that makes another exception of what ends its tasks."""

    async def ask() -> None:
        async with anyio.create_task_group():
            signal.raise_signal(number)
            await asyncio.sleep(3600)

    asyncio.run(ask())


@pytest.mark.parametrize(("options", "code"), [([], 130), (["--every", "1h"], 0)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("interrupted", [between_requests, amid_requests])
def test_a_signal_ends_a_run_whatever_is_made_of_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    interrupted: Callable[[signal.Signals, threading.Event], None],
    number: signal.Signals,
    options: list[str],
    code: int,
) -> None:
    def run(*given: Any, patience: object = None) -> None:
        interrupted(number, next(one for one in given if isinstance(one, threading.Event)))

    for module in (job, scheduler):
        monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(sys, "argv", ["bridge", "currencies", *options])
    monkeypatch.setenv("BRIDGE_WEB__PORT", "0")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert (ended.value.code, "interrupted" in said, "error" in said) == (code, code == 130, False)
