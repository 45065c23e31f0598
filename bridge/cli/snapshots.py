"""The commands that publish snapshots: translations and currencies."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType

from bridge import log
from bridge.cli.output import Config, Json, beginning_with, interruptible, print_json
from bridge.config import Settings, age_seconds, load
from bridge.config.api import KINDS
from bridge.config.fields import LONGEST_SECONDS
from bridge.errors import SettingsError, naming_option

if TYPE_CHECKING:
    from bridge.snapshots.wanted import Task

WIDTH = 120
"""Columns of a table that is redirected."""
INTERRUPTED = "interrupted; what was published stays, and nothing more is, unless it was just being committed"

Full = Annotated[bool, typer.Option("--full", help="Fetch everything again, not only new ids.")]
Plan = Annotated[bool, typer.Option("--plan", help="Estimate requests and duration without sending any.")]
Every = Annotated[
    str | None,
    typer.Option(
        "--every",
        metavar="AGE",
        help="Keep running: now, and again every 15m, 1h, ….",
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file", metavar="FILE", help="Write metrics to this file, for a textfile collector."
    ),
]


def translations(
    config: Config = None,
    event: Annotated[
        list[int] | None,
        typer.Option(
            "--event", metavar="ID", min=1, help="Only these events, instead of all that bets refer to."
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help=f"Only these kinds: {', '.join(KINDS)}.",
            autocompletion=beginning_with(KINDS),
        ),
    ] = None,
    language: Annotated[
        list[str] | None,
        typer.Option("--language", metavar="CODE", help="Only these of the configured languages."),
    ] = None,
    full: Full = False,
    plan: Plan = False,
    every: Every = None,
    metrics_file: MetricsFile = None,
    json: Json = False,
) -> None:
    """Publish the names of everything that settled bets refer to, as one snapshot.

    Fetches complete lists, and by id those events, markets, selections and templates that bets refer to and
    the topic lacks. Once a day it fetches again everything that recent bets refer to. Needs
    BRIDGE_API__BASE_URL and BRIDGE_API__TOKEN_FILE. Exit 3: the provider refuses the token. Exit 4:
    published, but the provider left some requests unanswered; the next run repeats them. Exit 9: the clocks
    are too far apart. Exit 10: the run failed; what is published stays.
    """
    from bridge.snapshots.wanted import Task

    settings = load(config)
    if unknown := [name for name in kind or () if name not in KINDS]:
        raise SettingsError(f"--kind {unknown[0]} is not one of {', '.join(KINDS)}")
    task = Task.translations(settings.api, kind or (), language or (), event or (), full=full)
    _do(settings, task, plan, every, metrics_file, json)


def currencies(
    config: Config = None,
    full: Full = False,
    plan: Plan = False,
    every: Every = None,
    metrics_file: MetricsFile = None,
    json: Json = False,
) -> None:
    """Publish the provider's currencies and their precision, as one snapshot.

    Includes currencies that settled bets use but the list of active currencies lacks. Needs
    BRIDGE_API__BASE_URL and BRIDGE_API__TOKEN_FILE. Exit codes as for `bridge translations`.
    """
    from bridge.snapshots.wanted import Task

    settings = load(config)
    _do(settings, Task("currencies", full=full), plan, every, metrics_file, json)


def _do(
    settings: Settings, task: Task, plan: bool, every: str | None, metrics_file: Path | None, json: bool
) -> None:
    from bridge import clock
    from bridge.cli import snapshot_tables
    from bridge.ownership.signals import stoppable
    from bridge.snapshots import job, scheduler
    from bridge.snapshots.status import JobStatus, must_be_writable, write

    if every is not None and (plan or metrics_file or json):
        raise SettingsError(
            "--every serves metrics over HTTP: it excludes --plan, --json and --metrics-file."
        )
    if plan and metrics_file:
        raise SettingsError("--plan cannot be combined with --metrics-file: it publishes no snapshot.")
    with naming_option("--every"):
        seconds = None if every is None else age_seconds(every)
    if seconds is not None and not 0 < seconds <= LONGEST_SECONDS:
        raise SettingsError("--every must be between 1s and 366d")
    if metrics_file is not None:
        must_be_writable(metrics_file)  # checked before the run
    shown = snapshot_tables.bars(clock.now, Console(stderr=True))
    if seconds is not None:
        log.never_wait()
        with suppress(KeyboardInterrupt), stoppable() as stop, shown as bars:  # the normal end
            scheduler.run_every(settings, task, seconds, bars, stop)
        return
    if plan:
        rate = settings.api.requests_per_second
        with interruptible("interrupted"), stoppable(), shown as bars:
            rows = job.plan(settings, task, bars)
        _print(snapshot_tables.plan_as_json(rows, rate), snapshot_tables.plan_as_table(rows, rate), json=json)
        return
    with interruptible(INTERRUPTED), stoppable() as stop, shown as bars:
        report = job.run(settings, task, bars, stop)
    try:  # what is published is told to both, whichever fails
        try:
            if metrics_file is not None:
                write(JobStatus.of(report), metrics_file)
        finally:
            _print(report.as_json(), snapshot_tables.report_as_table(report), json=json)
    finally:
        report.raise_if_left_out()


def _print(data: Any, table: RenderableType, *, json: bool) -> None:
    if json:
        print_json(data)
    else:
        Console(width=None if sys.stdout.isatty() else WIDTH).print(table)
