"""How a snapshot job ends that is told to."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import suppress
from typing import Any, Never

import pytest

from bridge import cli
from bridge.errors import NotCommitted
from bridge.snapshots import job, scheduler


@pytest.mark.parametrize(("options", "code"), [([], 130), (["--every", "1h"], 0)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_also_when_its_exception_is_lost(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    number: signal.Signals,
) -> None:
    def run(*given: Any, patience: object = None) -> Never:
        with suppress(KeyboardInterrupt):  # so is one of a task that is cancelled while it cleans up
            signal.raise_signal(number)
        assert next(one for one in given if isinstance(one, threading.Event)).is_set()
        raise NotCommitted("stopped")

    for module in (job, scheduler):
        monkeypatch.setattr(module, "run", run)
    monkeypatch.setattr(sys, "argv", ["bridge", "currencies", *options])
    monkeypatch.setenv("BRIDGE_WEB__PORT", "0")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert ("interrupted" in said, "error" in said) == (code == 130, False)
