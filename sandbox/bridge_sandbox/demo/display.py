"""The demo's screen: a live table on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from bridge.formatting import format_duration
from bridge.reader.money import format_payout, format_stake
from bridge_sandbox.demo.verify import Tally

ROWS = 6
LINE_SECONDS = 5.0
LANGUAGE = "en"
_BEHIND = "the position stays behind by design: late bets are replayed from it"
_CONSOLE = Console()
_ERRORS = Console(stderr=True)


class KnownNames:
    """The names of what was bet on, from the records of the translations topic."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def take(self, key: str, record: Mapping[str, Any] | None) -> None:
        """Take a record; None is a tombstone."""
        if record is None:
            self._texts.pop(key, None)
        else:
            self._texts[key] = record["translations"].get(LANGUAGE, "")

    def bet_on(self, bet: Mapping[str, Any]) -> tuple[str, str]:
        """Return the event, and market and selection, of a bet's first item; `+2` counts further items."""
        items = bet["selections"] or []
        if not items:
            return "—", ""
        event, market, more = items[0]["event"], items[0]["market"], len(items) - 1
        keys = [f"market:{event['id']}:{market['id']}"] if event and market else []
        keys.append(f"selection:{items[0]['selectionId']}")
        name = event and (self._texts.get(f"event:{event['id']}") or event["name"])
        picked = " · ".join(text for key in keys if (text := self._texts.get(key)))
        return (name or "…") + (f"  +{more}" if more else ""), picked


def say(text: str) -> None:
    """Print a line of progress on stderr."""
    _ERRORS.print(text, style="dim", highlight=False, soft_wrap=True)


@dataclass
class Board:
    """The current figures and the last bets."""

    tally: Tally
    state: str = "starting"
    revision: int | None = None
    received: int = 0
    """Bets received, by the bridge's last checkpoint."""
    deadlettered: int = 0
    kills: int = 0
    names: KnownNames = field(default_factory=KnownNames)
    lag: float | None = None
    """Seconds from a message's publication by the provider to its arrival at a reader of the topic."""
    bets: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=ROWS))
    _began: float = field(default_factory=time.monotonic)
    _line_at: float = 0.0
    _has_shown_bets: bool = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the board: live on a terminal, elsewhere at the end."""
        if _CONSOLE.is_terminal:
            with Live(self, console=_CONSOLE, refresh_per_second=8):
                yield
        else:
            try:
                yield
            finally:
                _CONSOLE.print(self)

    def tick(self) -> None:
        """Print a line for the first bets, and every `LINE_SECONDS`, unless the board is live."""
        is_first_bet = bool(self.tally.published) and not self._has_shown_bets
        if not _CONSOLE.is_terminal and (is_first_bet or time.monotonic() >= self._line_at):
            self._has_shown_bets = bool(self.tally.published)
            self._line_at = time.monotonic() + LINE_SECONDS
            say(self.line())

    def has_names(self) -> bool:
        """Return whether one of the bets has the name of its market or selection."""
        return any(self.names.bet_on(bet)[1] for bet in self.bets)

    def row(self, datum: dict[str, Any]) -> tuple[str, ...]:
        """Return a bet as cells of two lines, with the names known so far."""
        bet_id, result = datum["betId"], f"{datum['betSettlement']}, v{datum['settlementVersion']}"
        amount = datum["amount"]
        who, what = self.names.bet_on(datum)
        return (
            f"{bet_id[:8]}…{bet_id[-4:]}\n{result}",
            f"{format_stake(amount)}\n{format_payout(datum['payout'], amount)}",
            f"{who}\n{what}",
        )

    @property
    def rate(self) -> float:
        """Bets a second since the start."""
        return self.tally.published / max(time.monotonic() - self._began, 1.0)

    def line(self) -> str:
        """Return the figures on one line."""
        tally = self.tally
        return (
            f"{self.state}: {tally.published:,} of {tally.sent:,} bets in the topic, {self.rate:,.0f}/s, "
            f"position {self.revision or '—'}, {tally.duplicates} duplicates, {len(tally.wrong)} wrong"
        )

    def __rich__(self) -> Group:
        age = "" if self.revision is None else f" ({format_duration(time.time() - self.revision)} ago)"
        lag = "—" if self.lag is None else f"{self.lag * 1000:,.0f} ms"
        alarm = "bold red" if self.tally.duplicates or self.tally.wrong else "green"
        figures = Table.grid(padding=(0, 3))
        for row in (
            ("bridge", Text(self.state, "bold cyan"), "sent by the provider", f"{self.tally.sent:,}"),
            ("rate", f"{self.rate:,.0f} bets/s", "in the topic, checked", f"{self.tally.published:,}"),
            ("delay", lag, "dead letters", f"{self.deadlettered:,}"),
            (
                "position",
                f"{self.revision or '—'}{age}",
                "duplicates / wrong",
                Text(f"{self.tally.duplicates} / {len(self.tally.wrong)}", alarm),
            ),
            ("names", f"{len(self.names):,}", "killed", f"{self.kills} times"),
        ):
            figures.add_row(*row)
        table = Table(expand=True, border_style="dim", header_style="bold")
        table.add_column("bet, result", no_wrap=True)
        table.add_column("stake, payout", justify="right", no_wrap=True)
        table.add_column("bet on", no_wrap=True, overflow="ellipsis", ratio=1)
        for datum in self.bets:
            table.add_row(*self.row(datum))
        return Group(Panel(figures, title="settlement bridge", subtitle=_BEHIND, border_style="cyan"), table)
