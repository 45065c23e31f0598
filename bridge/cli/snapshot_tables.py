"""Shows the progress and the result of a run: bars and tables on a terminal, log lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bridge.clock import Clock
from bridge.formatting import format_duration
from bridge.log import get
from bridge.snapshots.report import Covered, Report
from bridge.snapshots.wanted import Estimate

LINE_SECONDS: Final = 15.0


@contextmanager
def bars(clock: Clock, console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows how many things of a step of a run are done, of so many."""
    logged_at = clock().monotonic
    tasks: dict[str, TaskID] = {}

    def advance(what: str, done: int, total: int) -> None:
        nonlocal logged_at
        if console.is_terminal:
            if what not in tasks:
                tasks[what] = progress.add_task(what)
            progress.update(tasks[what], completed=done, total=total)
        elif (now := clock().monotonic) - logged_at >= LINE_SECONDS:
            logged_at = now
            get().info("snapshot in progress", doing=what, done=done, of=total)

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        disable=not console.is_terminal,
    ) as progress:
        yield advance


def report_as_table(report: Report) -> Group:
    """Return a table of what was published, and of the coverage of bets."""
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
    what = "everything fetched" if report.full else "new ids fetched"
    scope = "" if snapshot.complete else ", partial"
    head = (
        f"{snapshot.job} {snapshot.id}: {what}{scope}, {report.bets:,} bets read, "
        f"{report.requests:,} requests, {format_duration(report.seconds)}"
    )
    lines = [Text(f"- {note}") for note in report.notes]
    lines += [
        Text(f"- {row.kind} lacks a language: {', '.join(row.missing)}")
        for row in report.coverage
        if row.missing
    ]
    return Group(Text(head), table, *lines)


def plan_as_table(rows: Sequence[Estimate], per_second: float) -> Group:
    """Return a table of the requests that a run would send, and its duration."""
    table = Table(header_style="bold", border_style="dim")
    table.add_column("endpoint", overflow="fold")
    table.add_column("at least", justify="right")
    table.add_column("at most", justify="right")
    for row in rows:
        table.add_row(row.endpoint, f"{row.least:,}", "?" if row.most is None else f"{row.most:,}")
    least, most = total(rows)
    table.add_section()
    table.add_row("all", f"{least:,}", "?" if most is None else f"{most:,}")
    text = f"at {per_second:g} requests a second: {format_duration(least / per_second)}"
    if most is None:
        text += " or more"
    elif most > least:
        text += f" to {format_duration(most / per_second)}"
    return Group(table, Text(text))


def plan_as_json(rows: Sequence[Estimate], per_second: float) -> dict[str, Any]:
    """Return the estimate for `--json`."""
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
    """Return the least and, if known, the most requests to all endpoints."""
    most = [row.most for row in rows]
    return sum(row.least for row in rows), None if None in most else sum(x for x in most if x is not None)


def _few(number: int) -> str:
    return f"{number:,}" if number else "–"


def _shares(row: Covered) -> Text:
    """Return `100 %` if all languages are equal, else `en, sv 100 %; de 99.9 %`."""
    languages: dict[str, list[str]] = {}
    for language in row.named:
        languages.setdefault(_share(row.share(language)), []).append(language)
    shares = [f"{', '.join(names)} {share}" for share, names in languages.items()]
    return Text("; ".join(languages if len(languages) == 1 else shares), "yellow" if row.missing else "green")


def _share(share: float) -> str:
    """Return the share in per cent, never rounded up to 100."""
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"
