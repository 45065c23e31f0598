"""Prints the results of commands, and declares the options that several commands share."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import orjson
import typer

from bridge.clock import Clock
from bridge.formatting import format_duration


def _of_command_or_program(ctx: typer.Context, value: Path | None) -> Path | None:
    """Take the option also from in front of the command."""
    return value or ctx.find_root().params.get("config")


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="TOML file with settings; by default that of BRIDGE_CONFIG, or ./bridge.toml. Environment "
        "variables override it.",
        callback=_of_command_or_program,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

RATE_SECONDS = 1.0
"""A rate over less time says nothing."""
_OBEYED = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"}
"""Control characters → how they are shown."""
_LABEL = re.compile(r"\s*(\S+( \S+)*  +(?=\S))?")
"""What a line may begin with: a name or a time, and spaces up to its column of text."""


def beginning_with(values: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what completes the value of an option, for Typer's `autocompletion`."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def in_utf_8(value: Any) -> Any:
    """Refuse text that is not UTF-8, for Typer's `callback`: no record could hold it."""
    for text in [value] if isinstance(value, str) else value or ():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter("it is not UTF-8") from None
    return value


def print_note(line: str) -> None:
    """Print a line for a person on stderr, as `print_text`."""
    print_text(line, err=True)


@contextmanager
def interruptible(note: str) -> Iterator[None]:
    """Print the note if the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        print_note(note)
        raise


def print_text(text: str, *, err: bool = False) -> None:
    """Print lines for a person; a terminal has them wrapped at words, in the column of their text.

    A terminal must not obey control characters in what the provider sent.
    """
    text = text.translate(_OBEYED)
    if (sys.stderr if err else sys.stdout).isatty():
        columns = shutil.get_terminal_size().columns
        text = "\n".join(_wrapped(line, columns) for line in text.split("\n"))
    typer.echo(text, err=err)


def _wrapped(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    label = _LABEL.match(line[: columns // 2])
    indent = " " * (label.end() if label else 0)
    return "\n".join(
        wrap(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )


def progress(now: Clock) -> Callable[[str, int, int], None]:
    """Return a function that shows on one line of a terminal's stderr how far a topic is read."""
    if not sys.stderr.isatty():
        return lambda *_: None
    topic, began, shown = "", 0.0, 0.0

    def advance(name: str, done: int, of: int) -> None:
        nonlocal topic, began, shown
        at = now().monotonic
        if name != topic:
            topic, began, shown = name, at, 0.0
        if at - shown < 0.2 and done < of:
            return
        shown, took = at, at - began
        line = f"{name}  {done / max(of, 1):.0%}"
        if took >= RATE_SECONDS and done:
            line += f"  {done / took:,.0f}/s, {format_duration((of - done) * took / done)} left"
        typer.echo(f"\r\x1b[K{line if done < of else ''}", nl=False, err=True)

    return advance


def show(data: Any, text: str, *, json: bool) -> None:
    """Print a result on stdout: the data for a script, or the text for a person."""
    print_json(data) if json else print_text(text)


def print_json(value: Any) -> None:
    """Print data for a script on stdout."""
    typer.echo(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2))
