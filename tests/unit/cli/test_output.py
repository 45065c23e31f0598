"""How far a topic is read, on one line of a terminal."""

from __future__ import annotations

import sys

import pytest

from bridge.cli.output import progress
from bridge.clock import Instant


def test_a_rate_is_shown_once_it_says_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not of the first second, in which 2,000 records after 10 ms would be 200,000 a second."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    at = 100.0
    advance = progress(lambda: Instant(0.0, at))
    for at, done in ((100.0, 1000), (100.3, 2000), (102.0, 4000)):  # noqa: B007
        advance("bets", done, 10_000)
    lines = capsys.readouterr().err.split("\r\x1b[K")[1:]
    assert lines == ["bets  10%", "bets  20%", "bets  40%  2,000/s, 3s left"]
