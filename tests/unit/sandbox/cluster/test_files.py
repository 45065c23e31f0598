"""The lines about what takes long."""

from __future__ import annotations

import threading

import pytest

from bridge_sandbox.cluster import files


def test_what_takes_long_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TICK_SECONDS", 0.01)
    lines, third, before = list[str](), threading.Event(), threading.active_count()

    def progress(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            third.set()

    with files.ticking(progress):
        assert third.wait(30)
    assert lines[:3] == ["  … 0.01 s", "  … 0.02 s", "  … 0.03 s"]
    assert threading.active_count() == before
