"""How a command ends that is told to in the midst of what it does."""

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
from bridge.repair import redrive
from bridge.snapshots import job, scheduler


def between_requests(number: signal.Signals) -> Never:
    """A callback, whose exceptions nobody gets, is interrupted; then the run looks whether to go on."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(number)
    raise NotCommitted("stopped")


def amid_requests(number: signal.Signals) -> None:
    """A task is interrupted, in a group that makes another exception of what ends its tasks."""

    async def ask() -> None:
        async with anyio.create_task_group():
            signal.raise_signal(number)
            await asyncio.sleep(3600)

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("command", "code"), [("currencies", 130), ("currencies --every 1h", 0), ("deadletters redrive", 130)]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("interrupted", [between_requests, amid_requests])
def test_a_signal_ends_a_run_whatever_is_made_of_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    interrupted: Callable[[signal.Signals], None],
    number: signal.Signals,
    command: str,
    code: int,
) -> None:
    def run(*given: Any, patience: object = None) -> None:
        try:
            interrupted(number)
        finally:
            assert all(one.is_set() for one in given if isinstance(one, threading.Event))

    for module, name in ((job, "run"), (scheduler, "run"), (redrive, "redrive")):
        monkeypatch.setattr(module, name, run)
    monkeypatch.setattr(sys, "argv", ["bridge", *command.split()])
    monkeypatch.setenv("BRIDGE_WEB__PORT", "0")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert (ended.value.code, "Traceback" in said, "error" in said) == (code, False, False)
    assert ("what was published stays" in said) == (command == "currencies")
