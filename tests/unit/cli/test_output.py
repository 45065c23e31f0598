"""What people see on a terminal: how far a topic is read, and text that is not obeyed."""

from __future__ import annotations

import sys

import pytest

from bridge import cli
from bridge.cli.output import print_note, print_text, progress, show
from bridge.clock import Instant
from bridge.errors import AuthError


def test_a_rate_is_shown_once_it_says_something(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    at = 100.0
    advance = progress(lambda: Instant(0.0, at))
    for at, done in ((100.0, 1000), (100.3, 2000), (102.0, 4000)):  # noqa: B007
        advance("bets", done, 10_000)
    lines = capsys.readouterr().err.split("\r\x1b[K")[1:]
    assert lines == ["bets  10%", "bets  20%", "bets  40%  2,000/s, 3s left"]


def test_a_terminal_obeys_nothing_that_the_provider_sent(capsys: pytest.CaptureFixture[str]) -> None:
    text = "Malmö\x1b]0;title\x07\x9b2J\r\x7f\tGent\nnext"
    print_text(text)
    show({}, text, json=False)
    print_note(text)
    seen = "Malmö\\x1b]0;title\\x07\\x9b2J\\x0d\\x7f\tGent\nnext\n"
    assert tuple(capsys.readouterr()) == (2 * seen, seen)


LONG = "word " * 30


@pytest.mark.parametrize(
    ("line", "column"),
    [
        (f"error: {LONG}", 0),
        (f"  stake 10.50 EUR, payout 0.00, {LONG}", 2),
        (f"reason      {LONG}", 12),
        (f"  ✓ a check  {LONG}", 13),
        (f"1,204  data.payout: {LONG}", 7),
        (f"settlement.bets: create: 6 partitions, cleanup.policy=compact, {LONG}", 0),
        (f"a label that takes more than half of the terminal  {LONG}", 0),
    ],
)
@pytest.mark.parametrize("width", [80, 100])
def test_a_terminal_has_long_lines_wrapped_at_words(
    line: str, column: int, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_text(line)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_text(line)
    whole, first, *more = capsys.readouterr().out.splitlines()
    assert (whole, " ".join([first, *more]).split()) == (line, line.split())
    assert width - 20 < len(first) <= width
    assert {len(rest) - len(rest.lstrip()) for rest in more} == {column}
    assert max(map(len, more)) <= width


def test_nor_in_an_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise AuthError("HTTP 401: \x1b]0;title\x07")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == AuthError.exit_code
    assert capsys.readouterr().err == "error: HTTP 401: \\x1b]0;title\\x07\n"
