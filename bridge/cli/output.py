"""Print the results of commands, and declare the options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="TOML file with settings; environment variables override it."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def say(line: str) -> None:
    """Print a line for a person on stderr."""
    typer.echo(line, err=True)


def show(data: Any, text: str, *, json: bool) -> None:
    """Print a result on stdout: the data for a script, or the text for a person."""
    print_json(data) if json else typer.echo(text)


def print_json(value: Any) -> None:
    """Print data for a script on stdout."""
    typer.echo(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2))
