"""What the commands share: how they print."""

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
    typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings; the environment wins."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print whole records, one JSON object a line.")]


def say(line: str) -> None:
    """A line for a person, on stderr."""
    typer.echo(line, err=True)


def print_json(value: Any) -> None:
    """Data for a script, on stdout."""
    typer.echo(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2))


def print_bets(bets: Iterable[Bet], *, json: bool) -> None:
    """Settled bets on stdout: a table on a terminal, unless `json`; one JSON object a line elsewhere."""
    from bridge.inspection.readers import BET_HEAD, bet_as_json, bet_as_line

    json = json or not sys.stdout.isatty()
    if not json:
        typer.echo(BET_HEAD)
    for bet in bets:
        width = shutil.get_terminal_size().columns
        typer.echo(orjson.dumps(bet_as_json(bet)) if json else bet_as_line(bet, width))
