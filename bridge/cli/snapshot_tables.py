"""How a run is shown: a bar for each thing asked about on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console, Group
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from bridge.clock import Clock
from bridge.formatting import duration
from bridge.log import get
from bridge.snapshots.plan import Estimate
from bridge.snapshots.results import Covered, Report

LINE_SECONDS: Final = 15.0


class Bars:
    """Takes the progress of a run. A context manager."""

    def __init__(self, clock: Clock, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._told_at = clock().monotonic
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
        )

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of so many are done."""
        if self._console.is_terminal:
            if what not in self._tasks:
                self._tasks[what] = self._progress.add_task(what)
            self._progress.update(self._tasks[what], completed=done, total=total)
        elif (now := self._clock().monotonic) - self._told_at >= LINE_SECONDS:
            self._told_at = now
            get().info("the snapshot is under way", doing=what, done=done, of=total)


def report_as_table(report: Report) -> Group:
    """What was published, and how much of the bets it covers."""
    snapshot = report.snapshot
    covered: dict[str, Covered] = {row.kind: row for row in report.coverage}
    table = Table(header_style="bold", border_style="dim")
    table.add_column("kind", no_wrap=True)
    for name in ("records", "written", "removed", *(["in bets"] if covered else [])):
        table.add_column(name, justify="right", no_wrap=True)
    if covered:
        table.add_column("named")
    for kind, counts in snapshot.counts.items():
        cells: list[str | Text] = [f"{counts.records:,}", _few(counts.written), _few(counts.removed)]
        if row := covered.get(kind):
            cells += [f"{row.seen:,}", _shares(row)]
        table.add_row(kind, *cells)
    what = "all asked anew" if report.full else "what was new"
    scope = "" if snapshot.complete else ", partial"
    head = (
        f"{snapshot.job} {snapshot.id}: {what}{scope}, {report.bets:,} bets read, "
        f"{report.requests:,} requests, {duration(report.seconds)}"
    )
    lines = [Text(f"- {note}") for note in report.notes]
    lines += [
        Text(f"- {row.kind} lacks a language: {', '.join(row.missing)}")
        for row in report.coverage
        if row.missing
    ]
    return Group(Text(head), table, *lines)


def plan_as_table(rows: Sequence[Estimate], per_second: float) -> Group:
    """How many requests a run would make, and how long that takes."""
    table = Table(header_style="bold", border_style="dim")
    table.add_column("endpoint", overflow="fold")
    table.add_column("at least", justify="right")
    table.add_column("at most", justify="right")
    for row in rows:
        table.add_row(row.endpoint, f"{row.least:,}", "?" if row.most is None else f"{row.most:,}")
    least, most = total(rows)
    table.add_section()
    table.add_row("all", f"{least:,}", "?" if most is None else f"{most:,}")
    text = f"at {per_second:g} requests a second: {duration(least / per_second)}"
    if most is None:
        text += " or more"
    elif most > least:
        text += f" to {duration(most / per_second)}"
    return Group(table, Text(text))


def plan_as_json(rows: Sequence[Estimate], per_second: float) -> dict[str, Any]:
    """The same for a script."""
    least, most = total(rows)
    return {
        "endpoints": {row.endpoint: {"atLeast": row.least, "atMost": row.most} for row in rows},
        "atLeast": least,
        "atMost": most,
        "requestsPerSecond": per_second,
        "secondsAtLeast": least / per_second,
        "secondsAtMost": None if most is None else most / per_second,
    }


def total(rows: Sequence[Estimate]) -> tuple[int, int | None]:
    """Of all endpoints: at least, and at most where that is known."""
    most = [row.most for row in rows]
    return sum(row.least for row in rows), None if None in most else sum(x for x in most if x is not None)


def _few(number: int) -> str:
    return f"{number:,}" if number else "–"


def _shares(row: Covered) -> Text:
    """`100 %` of all languages, or `en, sv 100 %; de 99.9 %`: as many languages as there may be."""
    languages: dict[str, list[str]] = {}
    for language in row.named:
        languages.setdefault(_share(row.share(language)), []).append(language)
    shares = [f"{', '.join(names)} {share}" for share, names in languages.items()]
    return Text("; ".join(languages if len(languages) == 1 else shares), "yellow" if row.missing else "green")


def _share(share: float) -> str:
    """Never rounded up to all of it."""
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"
