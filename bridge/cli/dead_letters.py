"""`bridge deadletters`: list, show, export and redrive what could not be converted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from bridge.cli.output import Config, Json, interruptible, print_note, show
from bridge.config import load
from bridge.errors import BridgeError, SettingsError
from bridge.formatting import plural

if TYPE_CHECKING:
    from bridge.inspection.dead_letters import Filter

deadletters = typer.Typer(
    help="List, show, export and redrive the messages that could not be converted.", no_args_is_help=True
)
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Only those whose reason contains this text.")
]
Field = Annotated[
    str,
    typer.Option(
        "--field",
        metavar="PATH",
        help="Only those whose first wrong field is this, like data.payout.",
    ),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Only those received since: a date-time with zone, or 2h."),
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Only those received before.")]
Bet = Annotated[str | None, typer.Option("--bet", metavar="ID", help="Only those of this bet.")]
All = Annotated[bool, typer.Option("--all", help="Include those that were redriven.")]


def _filter(reason: str, field: str, from_: str | None, to: str | None, bet: str | None) -> Filter:
    from bridge import clock
    from bridge.inspection.dead_letters import EVER, Filter
    from bridge.inspection.replay import parse_window
    from bridge.records.dead_letter import without_indices

    if bet == "":
        raise SettingsError("--bet is empty: give a betId, as `bridge replay --json` prints it")
    window = EVER if from_ is None and to is None else parse_window(from_, to, clock.now().wall)
    return Filter(reason, without_indices(field), window, bet)


@deadletters.command("list")
def list_(
    config: Config = None,
    reason: Reason = "",
    field: Field = "",
    from_: From = None,
    to: To = None,
    bet: Bet = None,
    json: Json = False,
) -> None:
    """List the open dead letters by wrong field and reason: count, first, last, key of a sample.

    Open are those that were not redriven, or failed again. Samples of messages with unknown fields do not
    count: their bets are published.
    """
    from bridge.inspection.dead_letters import by_cause, cause_as_json, causes_as_lines, read_letters

    letters = read_letters(load(config), _filter(reason, field, from_, to, bet))
    kinds = by_cause(letter for letter in letters if letter.open)
    redriven = sum(not letter.open for letter in letters)
    data = {"open": len(letters) - redriven, "redriven": redriven, "kinds": list(map(cause_as_json, kinds))}
    show(data, causes_as_lines(kinds, redriven), json=json)


@deadletters.command("show")
def show_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its key, or the beginning of it.")],
    config: Config = None,
    json: Json = False,
) -> None:
    """Show one dead letter: when and why, what became of it, and its bytes."""
    from bridge.inspection.dead_letters import (
        Filter,
        letter_as_json,
        letter_as_lines,
        read_letters,
        read_messages,
        resolve_key,
    )

    if not key:
        raise SettingsError("KEY is empty: give a key or its beginning; `bridge deadletters list` shows keys")
    settings = load(config)
    letter = resolve_key(read_letters(settings, Filter(key=key)), key)
    message = read_messages(settings, [letter])[letter.place]
    show(letter_as_json(letter, message), letter_as_lines(letter, message), json=json)


@deadletters.command("export")
def export(
    config: Config = None,
    reason: Reason = "",
    field: Field = "",
    from_: From = None,
    to: To = None,
    bet: Bet = None,
    all_: All = False,
    to_directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Write files here: KEY.message and KEY.json."),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="With --dir, print the number as JSON; otherwise all output is JSON anyway."
        ),
    ] = False,
) -> None:
    """Export dead letters with their original bytes and headers, in order of receipt.

    Prints one JSON object per line; bytes that are not UTF-8 are in `base64`, others in `value`.
    """
    from bridge.inspection.dead_letters import batches, letter_as_json, read_letters, read_messages

    settings, wanted = load(config), _filter(reason, field, from_, to, bet)
    if to_directory is not None:
        try:
            to_directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"--dir {to_directory} cannot be created: {error.strerror}. Name another directory."
            raise SettingsError(text) from None
    letters = [letter for letter in read_letters(settings, wanted) if all_ or letter.open]
    for batch in batches(letters, settings.batch):
        messages = read_messages(settings, batch)
        for letter in batch:
            message = messages[letter.place]
            whole = letter_as_json(letter, message)
            if to_directory is None:
                typer.echo(orjson.dumps(whole))
                continue
            whole.pop("value", None)
            whole.pop("base64", None)
            try:
                (to_directory / f"{letter.key}.message").write_bytes(message.value() or b"")
                described = orjson.dumps(whole, option=orjson.OPT_INDENT_2)
                (to_directory / f"{letter.key}.json").write_bytes(described)
            except OSError as error:
                raise BridgeError(f"{to_directory} cannot be written: {error.strerror}") from None
    if to_directory is not None:
        text = f"{plural(len(letters), 'dead letter')} exported to {to_directory}"
        show({"exported": len(letters), "directory": str(to_directory)}, text, json=json)
    elif not letters:
        print_note("no matching dead letter")


@deadletters.command("redrive")
def redrive(
    config: Config = None,
    reason: Reason = "",
    field: Field = "",
    from_: From = None,
    to: To = None,
    bet: Bet = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would happen to each; write nothing, and take no lock."),
    ] = False,
    json: Json = False,
) -> None:
    """Publish open dead letters that this version and these settings can convert, each bet once, in order.

    Owns the feed meanwhile: refuses if a bridge runs, and a bridge that is started stands by. Marks each
    letter in the transaction of its bet, so it can be interrupted and run again. What fails again stays open.
    A bet of which a later version is published is not published again.
    """
    from bridge.ownership.signals import stoppable
    from bridge.repair.redrive import forecast
    from bridge.repair.redrive import redrive as _redrive
    from bridge.repair.report import report_as_json, report_as_lines

    settings, wanted = load(config), _filter(reason, field, from_, to, bet)
    with interruptible("interrupted; what was committed stays, and the rest open"), stoppable() as stop:
        report = forecast(settings, wanted) if dry_run else _redrive(settings, wanted, stop)
    show(report_as_json(report, dry_run), report_as_lines(report, dry_run), json=json)
