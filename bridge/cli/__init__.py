"""The command line: parses arguments, prints results and turns errors into exit codes."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from contextlib import suppress
from importlib import metadata
from io import TextIOWrapper, UnsupportedOperation
from pathlib import Path
from typing import Annotated, Any, Never

import typer

from bridge import __version__, log, masking
from bridge.cli import beginning, bets, dead_letters, inspection, repair, snapshots
from bridge.cli.output import Config, Json, print_json, print_text, show
from bridge.config import load
from bridge.errors import BridgeError, TopologyError

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for a wrong option. It exports only this subclass."""
_ADVICE = {
    r".*bridge No such command 'status'.*": "Did you mean `bridge checkpoint show`?",
    r".*bridge No such command '(dev|demo)'.*": 'Try `pip install "settlement-bridge-sandbox[cluster]"`',
    r".*bridge No such command 'simulate'.*": "Try `pip install settlement-bridge-sandbox`",
    r".* tail Got unexpected extra argument\(s\) \(([0-9]+)\)": r"Did you mean `-n \1`?",
}
"""A command, and the error of a word that it does not have → what to do about it."""

app = typer.Typer(
    name="bridge",
    help="Publish a sportsbook's settlement feed to Kafka exactly once, and declare every gap.",
    epilog="Settings come from environment variables BRIDGE_SECTION__NAME and a TOML file (--config); "
    "bridge.example.toml lists them all.\n\nExit codes (docs/exit-codes.md):\n\n- 0: success\n"
    "- 1: failure, or a difference found\n- 2: invalid setting or option\n- 3: credential refused\n"
    "- 4: published, but incomplete\n- 5: gap\n- 6: invalid topic or schema, or a missing right\n"
    "- 7: embedded Kafka failed to start\n- 8: Kafka refuses a write\n- 9: clocks too far apart\n"
    "- 10: snapshot failed\n- 11: nothing that comes can be converted\n- 130: Ctrl-C",
    no_args_is_help=True,
    rich_markup_mode="markdown",  # so that a paragraph is wrapped by the terminal, not where the code is
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
topics = typer.Typer(
    help="Compare the topics in Kafka with the settings, and correct them.", no_args_is_help=True
)
schemas = typer.Typer(help="Check and register the Avro schemas.", no_args_is_help=True)
checkpoint = typer.Typer(help="Show or change how far the feed has been published.", no_args_is_help=True)


def main() -> Never:
    """Run the command; print an error on stderr and exit with its code."""
    _prepare_streams()
    log.configure()
    code = 0
    try:
        code = app(standalone_mode=False) or 0
    except typer.Abort:
        typer.echo("\nerror: not confirmed: nothing was changed", err=True)
        sys.exit(1)
    except _UsageError as error:
        _refuse(error)
    except BridgeError as error:
        _tell(error)
        sys.exit(error.exit_code)
    except UnsupportedOperation:
        print_text("error: the output cannot be written: stdout is closed", err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            _report(error)
        what = f"{error.filename or 'the output'} cannot be written: {error.strerror}"
        print_text(f"error: {what}. Free some space, or write elsewhere.", err=True)
        sys.exit(1)
    except Exception as error:  # noqa: BLE001  # whatever it is
        _report(error)
    sys.exit(code)


def _tell(error: BridgeError) -> None:
    for line in masking.concealed(str(error)).splitlines():
        print_text(f"error: {line}", err=True)


def _prepare_streams() -> None:
    """Replace each standard stream that is closed, or a socket would get its number and be written to.

    What the encoding of a stream lacks is written as an escape. To write to stdout stays an error: a script
    must not take silence for an empty result.
    """
    for name, mode in (("stdin", "r"), ("stdout", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # for good
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # one that says that it can seek, and cannot
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")


def _report(error: Exception) -> Never:
    log.get().critical("unexpected error, please report it", exc_info=error)  # which masks secrets
    sys.exit(1)


def _refuse(error: Any) -> Never:
    """Print on one line which option is wrong; the help that stands for a missing command is printed."""
    if text := " ".join(error.format_message().replace("Value error, ", "").split()).rstrip("."):
        command = error.ctx.command_path if error.ctx else ""
        for pattern, advice in _ADVICE.items():
            if found := re.fullmatch(pattern, f"{command} {text}"):
                text = f"{text.partition('. ')[0]}. {found.expand(advice)}"
        help_ = command and f"; see `{command} --help`"
        print_text(f"error: {text}{help_}", err=True)
    sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"settlement-bridge {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    config: Config = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    config: Config = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Include the log messages of libraries.")
    ] = False,
) -> None:
    """Own the feed and publish it, or stand by while another process owns it.

    Needs the provider's address (BRIDGE_FEED__BASE_URL), Kafka (BRIDGE_KAFKA__BOOTSTRAP_SERVERS) and a
    schema registry (BRIDGE_REGISTRY__URL). Creates missing topics; exits with 6 if an existing one has the
    wrong settings. On SIGTERM or Ctrl-C, commits the current batch and exits with 0.
    """
    from bridge.service.app import run as serve

    log.never_wait()
    log.configure(verbose=verbose)
    serve(load(config), _tell)


app.command()(beginning.init)
app.command()(snapshots.translations)
app.command()(snapshots.currencies)


app.command()(bets.tail)
app.command()(bets.replay)
app.command()(bets.explain)


@checkpoint.command("show")
def checkpoint_show(config: Config = None, json: Json = False) -> None:
    """Show the committed position of the feed, its state, counters, recent connection attempts and owner."""
    from bridge.doctor.kafka_checks import ask_members
    from bridge.inspection.readers import (
        checkpoint_as_json,
        checkpoint_as_lines,
        leadership_as_json,
        leadership_as_lines,
    )
    from bridge.kafka.clients import session_seconds

    settings = load(config)
    found = inspection.checkpoint_of(settings)
    try:
        group = ask_members(settings)
    except TopologyError:  # a principal may be allowed to read the topic but not to describe the group
        group = None
    now, session = time.time(), session_seconds(settings.kafka)
    show(
        {**checkpoint_as_json(found), **leadership_as_json(group, found, session, now)},
        f"{checkpoint_as_lines(found, now)}\n{leadership_as_lines(group, found, session, now)}",
        json=json,
    )


checkpoint.command("set")(repair.set_checkpoint)
checkpoint.command("reset")(repair.reset_checkpoint)
checkpoint.command("retire")(repair.retire_feed)


@topics.command("plan")
def topics_plan(config: Config = None, json: Json = False) -> None:
    """Show what `bridge topics apply` would change, or refuses. Changes nothing; exit 1 if there is any."""
    if _differing_topics(config, json):
        raise typer.Exit(1)


@topics.command("apply")
def topics_apply(config: Config = None, json: Json = False) -> None:
    """Create missing topics and correct the settings of existing ones. Never adds partitions."""
    _differing_topics(config, json, mend=True)


def _differing_topics(config: Path | None, json: bool, *, mend: bool = False) -> bool:
    """Print what differs from the declared topics, after correcting it if `mend`; return whether any did."""
    from bridge.kafka import clients
    from bridge.records import topics as _topics

    settings = load(config)
    settings.require("kafka.bootstrap_servers")
    client = clients.admin(settings.kafka)
    changes = _topics.plan(client, _topics.declare(settings))
    if mend:
        _topics.apply(client, changes, replication_factor=settings.topics.replication_factor)
    rows = [{"topic": c.topic.name, "action": c.action.value, "detail": c.detail} for c in changes]
    done = {_topics.Action.CREATE: "created", _topics.Action.ALTER: "altered"} if mend else {}
    lines = "\n".join(f"{c.topic.name}: {done.get(c.action, c.action.value)}: {c.detail}" for c in changes)
    show(rows, lines or "all topics match the settings", json=json)
    return any(change.action not in _topics.STANDING for change in changes)


@schemas.command("check")
def schemas_check(json: Json = False) -> None:
    """Check the schemas offline: names, documentation, nullability, compatibility with all versions."""
    from bridge.avro.evolution import check

    problems = check()
    if json:
        print_json({"problems": problems})
    else:
        for problem in problems:
            print_text(problem, err=True)
        if not problems:
            typer.echo("all schemas are valid and compatible with every earlier version")
    if problems:
        raise typer.Exit(6)


@schemas.command("register")
def schemas_register(config: Config = None, json: Json = False) -> None:
    """Register the schemas in the registry, under the topics' subjects."""
    from bridge.avro.schemas import subject
    from bridge.registry import Registry

    settings = load(config)
    settings.require("registry.url")
    ids = Registry(settings.registry).register(settings.topics.prefix)
    rows = {subject(settings.topics.prefix, name): schema_id for name, schema_id in ids.items()}
    show(rows, "\n".join(f"{name}: schema {schema_id}" for name, schema_id in rows.items()), json=json)


app.command()(inspection.limits)
app.command()(inspection.gaps)
app.command()(inspection.audit)
app.command()(inspection.doctor)

# What other distributions add comes after the commands, among which an operator looks for `run`.
for _point in sorted(metadata.entry_points(group="settlement_bridge.commands")):
    with suppress(Exception):  # of another version: to type it says what to install
        _found = _point.load()
        if isinstance(_found, typer.Typer):
            app.add_typer(_found, name=_point.name)
        else:
            app.command(_point.name)(_found)
app.add_typer(topics, name="topics")
app.add_typer(schemas, name="schemas")
app.add_typer(checkpoint, name="checkpoint")
app.add_typer(dead_letters.deadletters, name="deadletters")
