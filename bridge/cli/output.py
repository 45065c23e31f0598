"""Print the results of commands, and declare the options that several commands share."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

if TYPE_CHECKING:
    from bridge.inspection.readers import Bet

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="TOML file with settings; environment variables override it."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print whole records, one JSON object per line.")]


def say(line: str) -> None:
    """Print a line for a person on stderr."""
    typer.echo(line, err=True)


def show(data: Any, text: str, *, json: bool) -> None:
    """Print a result on stdout: the data for a script, or the text for a person."""
    print_json(data) if json else typer.echo(text)


def print_json(value: Any) -> None:
    """Print data for a script on stdout."""
    typer.echo(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2))


def print_bets(bets: Iterable[Bet], *, json: bool) -> None:
    """Print settled bets on stdout: a table on a terminal unless `json`, else one JSON object per line."""
    from bridge.inspection.readers import BET_HEAD, bet_as_json, bet_as_line

    json = json or not sys.stdout.isatty()
    if not json:
        typer.echo(BET_HEAD)
    for bet in bets:
        width = shutil.get_terminal_size().columns
        typer.echo(orjson.dumps(bet_as_json(bet)) if json else bet_as_line(bet, width))
