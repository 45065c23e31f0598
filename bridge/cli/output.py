"""What the commands share: how they print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings; the environment wins."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def say(line: str) -> None:
    """A line for a person, on stderr."""
    typer.echo(line, err=True)


def print_json(value: Any) -> None:
    """Data for a script, on stdout."""
    typer.echo(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2))
