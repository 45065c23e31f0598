"""Read-only commands: doctor, limits, gaps and audit."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import log
from bridge.cli.output import Config, Json, print_json, print_text, progress, show
from bridge.config import Settings, age_seconds, load
from bridge.errors import BridgeError, SettingsError, naming_option

if TYPE_CHECKING:
    from bridge.records.checkpoint import Checkpoint


def checkpoint_of(settings: Settings) -> Checkpoint:
    """Read the feed's checkpoint. Raises BridgeError if there is none yet."""
    from bridge.inspection.readers import read_checkpoint

    if (found := read_checkpoint(settings)) is None:
        raise BridgeError(
            f"there is no checkpoint of the feed {settings.feed.name} under the prefix "
            f"{settings.topics.prefix}: `bridge run` has not started with it yet."
        )
    return found


def doctor(
    config: Config = None,
    startup: Annotated[
        bool,
        typer.Option(
            "--startup",
            help="Exit 0 if `bridge run` would start, even if it had to wait; write no record and create no "
            "topic: for an init container.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check everything a bridge depends on, and say what to do.

    Writes one record, which it aborts, in a topic PREFIX.doctor.… that it creates and deletes; does not
    connect to the feed and asks no endpoint. Exit 1 if a check fails (✗: `bridge run` would end) or finds
    trouble (~: it would start, and wait where it has to).
    """
    from bridge.doctor.finding import Verdict, finding_as_json, finding_as_lines, summary
    from bridge.doctor.runner import CHECKS, run_checks

    log.configure(quiet=True)
    width = max(len(check.name) for check in CHECKS)
    checks = tuple(check for check in CHECKS if not (startup and check.writes))
    findings = {}
    for name, finding in run_checks(partial(load, config), checks):
        findings[name] = finding
        if not json:  # each as soon as it is known: a check may take long
            print_text(finding_as_lines(name, finding, width))
    found = {finding.outcome for finding in findings.values()}
    if json:
        print_json([finding_as_json(name, finding) for name, finding in findings.items()])
    elif follows := summary(findings):
        print_text(f"\n{follows}")
    if found & ({Verdict.FAIL} if startup else {Verdict.FAIL, Verdict.TROUBLE}):
        raise typer.Exit(1)


def limits(
    config: Config = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Forecast for this time: +30m from now, or 2030-01-31T12:00Z."),
    ] = None,
    recover: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Forecast a recovery of this length, such as 30m, instead of one from the committed "
            "position.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the usage of the provider's limits, and when they allow a reconnect.

    Computed from the attempts in the committed checkpoint; sends nothing to the provider.
    """
    from bridge import clock
    from bridge.inspection.limits import LimitForecast, forecast_as_json, forecast_as_lines, parse_moment

    settings, now = load(config), clock.now().wall
    with naming_option("--at"):
        then = math.ceil(now if at is None else parse_moment(at, now))
    if then < now:
        raise SettingsError(f"--at {at} is in the past: attempts before now are known, not forecast")
    with naming_option("--recover"):
        length = None if recover is None else age_seconds(recover)
    checkpoint = checkpoint_of(settings)
    revision = checkpoint.revision if length is None else then - length
    forecast = LimitForecast(settings, checkpoint, then, revision)
    show(forecast_as_json(forecast), forecast_as_lines(forecast), json=json)


def gaps(
    config: Config = None,
    feed: Annotated[
        str | None,
        typer.Option("--feed", metavar="NAME", help="Only gaps of this feed; all feeds by default."),
    ] = None,
    json: Json = False,
) -> None:
    """List the intervals that the provider could no longer replay: from, to, length, cause."""
    from bridge.inspection.gaps import gap_as_json, gap_as_line, read_gaps

    found = read_gaps(load(config), feed)
    lines = "\n".join(gap_as_line(gap) for gap in found) or "no gap has been declared"
    show([gap_as_json(gap) for gap in found], lines, json=json)


def audit(
    config: Config = None,
    feed: Annotated[
        str | None,
        typer.Option("--feed", metavar="NAME", help="Only checkpoints, gaps and dead letters of this feed."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="TIME", help="Only bets and dead letters received since; all by default."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Prove from the topics that nothing was lost, doubled, taken back or left undeclared.

    Exit 1 if not, with the first violation. Memory is bounded, and a bridge may be running. A TIME is a
    date-time with its zone, such as 2026-01-31T12:00:00Z, or an age: 2h is two hours ago. docs/operations.md
    lists the proofs.
    """
    from bridge import clock
    from bridge.audit.report import audit_as_json, audit_as_lines
    from bridge.audit.run import audit as run_audit
    from bridge.inspection.replay import parse_window

    now = clock.now().wall
    since = None if from_ is None else parse_window(from_, None, now).begin / 1000
    audited = run_audit(load(config), feed, since, progress(clock.now))
    show(audit_as_json(audited), audit_as_lines(audited), json=json)
    if audited.findings.violations:
        raise typer.Exit(1)
