"""Commands by which an operator changes the state of a feed: checkpoint set, reset and retire."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bridge.cli.inspection import checkpoint_of
from bridge.cli.output import Config, Json, in_utf_8, interruptible, print_json, print_note, print_text, show
from bridge.config import Settings, load
from bridge.errors import SettingsError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; write nothing.")]
Reason = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why; kept in the checkpoint.", callback=in_utf_8),
]

UNKNOWN = "Interrupted: `bridge checkpoint show` shows what was committed."


def set_checkpoint(
    revision: Annotated[
        str,
        typer.Option(
            "--revision",
            metavar="TIME",
            help="The new position: Unix seconds, a time with its zone, or an age such as 2h.",
        ),
    ],
    config: Config = None,
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Move the position of the feed, while no process owns it.

    First shows what is received again or skipped, and what the provider's limits allow. Skipped is declared
    as a gap. What is published already is not published again. Keeps the connection attempts and the
    counters. Ends the state StoppedOnGap.
    """
    from bridge import clock
    from bridge.repair.position import parse_revision

    _move(load(config), parse_revision(revision, clock.now().wall), reason, yes, dry_run, json)


def reset_checkpoint(
    config: Config = None,
    reason: Reason = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Move the position of the feed to feed.start, as at a first start, while no process owns it.

    Like `bridge checkpoint set`: keeps the connection attempts and the counters, and declares what is skipped
    as a gap.
    """
    from bridge import clock
    from bridge.repair.position import first_revision

    settings = load(config)
    _move(settings, first_revision(settings.feed, clock.now().wall), reason, yes, dry_run, json)


def retire_feed(
    name: Annotated[str, typer.Argument(metavar="FEED", help="The feed that is over.", callback=in_utf_8)],
    config: Config = None,
    position: Annotated[
        str,
        typer.Option(
            "--position",
            metavar="FEED",
            help="Whose position counts, if both have run: that of FEED if the two are names of one feed, "
            "that of feed.name if they are two feeds.",
        ),
    ] = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Declare another feed of this prefix to be over, so that feed.name can use its topics.

    For a feed whose feed.name was changed, or that the provider has replaced. No process may own it. The
    connection attempts go to feed.name, and the position too unless feed.name has one of its own.
    """
    from bridge.inspection.readers import checkpoint_as_json
    from bridge.repair.retirement import retire

    if not yes and (json or not sys.stdin.isatty()):
        raise SettingsError("this ends a feed: give --yes")
    settings = load(config)

    def confirm(text: str) -> None:
        print_note(text)
        if not yes:
            question = f"Retire {name}? {settings.feed.name} uses its topics from now on."
            typer.confirm(question, abort=True)

    with interruptible(UNKNOWN):
        succession = retire(settings, name, position=position, confirm=confirm)
    print_text(f"{name} is retired; {succession.text}", err=json)
    if json:
        print_json({"retired": name, "successor": checkpoint_as_json(succession.checkpoint)})


def _move(settings: Settings, revision: int, reason: str, yes: bool, dry_run: bool, json: bool) -> None:
    from bridge import clock
    from bridge.repair.ownership import members, owning, refuse_members
    from bridge.repair.position import commit_move, plan_as_json, plan_as_lines, plan_move

    ask = not (yes or dry_run)
    settings.require("kafka.bootstrap_servers", "registry.url")
    if not dry_run:  # the owner first: while there is one, no option helps
        refuse_members(settings, members(settings))
    if ask and (json or not sys.stdin.isatty()):
        raise SettingsError("this changes the position: give --yes, or --dry-run to see what it would do")
    plan = plan_move(settings, checkpoint_of(settings), revision, clock.now().wall)
    if not json:
        print_text(plan_as_lines(plan))
    if dry_run or not plan.changes:
        show(plan_as_json(plan, changed=False), "nothing is changed", json=json)
        return
    if ask:
        typer.confirm("Move the position?", abort=True)
    with interruptible(UNKNOWN), owning(settings) as owned:
        commit_move(owned, plan, reason)
    print_note("The position has been moved. `bridge run` resumes from there.")
    if json:
        print_json(plan_as_json(plan, changed=True))
