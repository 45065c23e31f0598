"""What the demo shows: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bridge.inspection.readers import amount_in_words
from bridge.sandbox.demo.names import Names

ROWS = 6
RATE_SECONDS = 5.0
LINE_SECONDS = 5.0


@dataclass
class Board:
    """The figures of the moment, and the last bets."""

    state: str = "starting"
    revision: int | None = None
    sent: int = 0
    published: int = 0
    duplicates: int = 0
    deadlettered: int = 0
    wrong: int = 0
    kills: int = 0
    names: Names = field(default_factory=Names)
    """What things are called, from the topic of translations."""
    lag: float | None = None
    """Seconds from a message's publication by the provider to its arrival at a reader of the topic."""
    bets: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=ROWS))
    _arrivals: deque[tuple[float, int]] = field(default_factory=deque)

    def arrived(self, datum: dict[str, Any], lag: float | None) -> None:
        """Take the latest bet."""
        self.lag = lag
        self.bets.append(datum)

    def row(self, datum: dict[str, Any]) -> tuple[str, ...]:
        """A bet in cells of two lines, with the names that are known by now."""
        bet_id, result = datum["betId"], f"{datum['betSettlement']}, v{datum['settlementVersion']}"
        payout = f"{datum['payout']:,.{_decimals(datum['amount'])}f}"
        who, what = self.names.bet_on(datum)
        return (
            f"{bet_id[:8]}…{bet_id[-4:]}\n{result}",
            f"{amount_in_words(datum['amount'])}\n{payout}",
            f"{who}\n{what}",
        )

    @property
    def rate(self) -> float:
        """Bets a second, over the last `RATE_SECONDS`."""
        now = time.monotonic()
        self._arrivals.append((now, self.published))
        # One from before is kept: where it is asked seldom there would be no other.
        while len(self._arrivals) > 2 and self._arrivals[1][0] < now - RATE_SECONDS:
            self._arrivals.popleft()
        (began, first), (ended, last) = self._arrivals[0], self._arrivals[-1]
        return (last - first) / (ended - began) if ended > began else 0.0

    def line(self) -> str:
        """The figures on one line."""
        return (
            f"{self.state}: {self.published:,} of {self.sent:,} bets in the topic, {self.rate:,.0f}/s, "
            f"revision {self.revision or '—'}, {self.duplicates} duplicates, {self.wrong} wrong"
        )

    def __rich__(self) -> Group:
        figures = Table.grid(padding=(0, 3))
        age = "" if self.revision is None else f" ({time.time() - self.revision:.0f} s ago)"
        lag = "—" if self.lag is None else f"{self.lag * 1000:,.0f} ms"
        alarm = "bold red" if self.duplicates or self.wrong else "green"
        figures.add_row("bridge", Text(self.state, "bold cyan"), "sent by the provider", f"{self.sent:,}")
        figures.add_row("rate", f"{self.rate:,.0f} bets/s", "in the topic, checked", f"{self.published:,}")
        figures.add_row("delay", lag, "dead letters", f"{self.deadlettered:,}")
        figures.add_row(
            "committed revision",
            f"{self.revision or '—'}{age}",
            "duplicates / wrong",
            Text(f"{self.duplicates} / {self.wrong}", alarm),
        )
        figures.add_row("names", f"{len(self.names):,}")
        if self.kills:
            figures.add_row("killed so far", Text(f"{self.kills} times", "yellow"))
        table = Table(expand=True, border_style="dim", header_style="bold")
        for name, options in _COLUMNS:
            table.add_column(name, **options)
        for datum in self.bets:
            table.add_row(*self.row(datum))
        return Group(Panel(figures, title="settlement bridge", border_style="cyan"), table)


_COLUMNS: list[tuple[str, dict[str, Any]]] = [
    ("bet, result", {"no_wrap": True}),
    ("stake, payout", {"justify": "right", "no_wrap": True}),
    ("bet on", {"no_wrap": True, "overflow": "ellipsis", "ratio": 1}),
]


class Display:
    """Shows the board: live on a terminal, as lines on stderr elsewhere."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._console = Console()
        self._live: Live | None = None
        self._line_at = 0.0
        self._errors = Console(stderr=True)

    def say(self, text: str) -> None:
        """A line of progress, before and after the table."""
        self._errors.print(text, style="dim", highlight=False, soft_wrap=True)

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live = Live(self._board, console=self._console, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        else:
            self._console.print(self._board)

    def tick(self) -> None:
        """To be called now and then; prints a line where there is no live table."""
        if self._live is None and time.monotonic() >= self._line_at:
            self._line_at = time.monotonic() + LINE_SECONDS
            self.say(self._board.line())


def _decimals(amount: dict[str, Any] | None) -> int:
    """So many as the currency has, eight at most."""
    return 2 if amount is None else max(0, min(amount["precision"], 8))
