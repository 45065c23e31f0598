"""The command line: parses arguments, prints results, turns errors into exit codes. Nothing else."""

from __future__ import annotations

import sys
import time
from itertools import islice
from pathlib import Path
from typing import Annotated, Never

import typer

from bridge import __version__, log
from bridge.cli import inspection, sandbox, snapshots
from bridge.cli.output import Config, Json, JsonLines, print_bets, show
from bridge.config import load
from bridge.errors import BridgeError, TopologyError

app = typer.Typer(
    name="bridge",
    help="Owns a sportsbook's settlement feed and turns it into Kafka: exactly once, with no silent gap.",
    epilog="Settings: environment variables BRIDGE_SECTION__NAME, or a TOML file given by --config; "
    "bridge.example.toml lists them all. Exit codes: 0 success, 1 failure or a difference found, "
    "2 wrong settings, 3 credentials refused, 4 a right is missing, 5 a gap, 6 topics or schemas, "
    "7 embedded Kafka, 8 Kafka refuses, 9 a clock is wrong, 10 no translations or currencies, 130 Ctrl-C.",
    no_args_is_help=True,
    rich_markup_mode="markdown",  # so that a paragraph is wrapped by the terminal, not where the code is
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
topics = typer.Typer(help="Show and mend the topics in Kafka.", no_args_is_help=True)
schemas = typer.Typer(help="The Avro schemas of what is published.", no_args_is_help=True)
checkpoint = typer.Typer(help="Show how far the feed is published.", no_args_is_help=True)
app.add_typer(sandbox.dev, name="dev")
app.add_typer(topics, name="topics")
app.add_typer(schemas, name="schemas")
app.add_typer(checkpoint, name="checkpoint")


def main() -> Never:
    """Entry point of `bridge`: runs the command, prints errors as one line, exits with their code."""
    log.configure()
    try:
        app(standalone_mode=True)
    except BridgeError as error:
        for line in log.concealed(str(error)).splitlines():
            typer.echo(f"error: {line}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001  # a traceback may show a secret, too
        log.get().critical("unforeseen; please report it", exc_info=error)
        sys.exit(1)
    sys.exit(0)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"settlement-bridge {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    config: Config = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what the libraries report, too.")
    ] = False,
) -> None:
    """Own the feed and publish it, or stand by while another process owns it.

    Needs the provider's address (BRIDGE_FEED__BASE_URL), Kafka (BRIDGE_KAFKA__BOOTSTRAP_SERVERS) and a
    schema registry (BRIDGE_REGISTRY__URL). Creates missing topics, refuses wrong ones. Ends with exit 0
    on SIGTERM or Ctrl-C, after the batch in hand is committed.
    """
    from bridge.service.app import run as serve

    log.configure(verbose=verbose)
    serve(load(config))


app.command()(snapshots.translations)
app.command()(snapshots.currencies)


@app.command()
def tail(
    config: Config = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record.")
    ] = False,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, help="Stop after so many records; 0 never stops.")
    ] = 0,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Stop at the end of the topic; use it with --from-beginning.")
    ] = False,
    json: JsonLines = False,
) -> None:
    """Print settled bets from the topic as they become visible to a read_committed consumer.

    On a terminal a table, elsewhere whole records, one JSON object a line.
    """
    from bridge.inspection.tail import follow_bets

    followed = follow_bets(load(config), from_beginning=from_beginning, until_end=until_end)
    print_bets(islice((bet for bet in followed if bet is not None), count or None), json=json)


@checkpoint.command("show")
def checkpoint_show(config: Config = None, json: Json = False) -> None:
    """Show the committed position of the feed, its state, counters, recent connections, and who owns it."""
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
    except TopologyError:  # a principal that may read the topic need not be allowed to see the group
        group = None
    now, session = time.time(), session_seconds(settings.kafka)
    show(
        {**checkpoint_as_json(found), **leadership_as_json(group, found, session, now)},
        f"{checkpoint_as_lines(found, now)}\n{leadership_as_lines(group, found, session, now)}",
        json=json,
    )


@topics.command("plan")
def topics_plan(config: Config = None, json: Json = False) -> None:
    """Show what `bridge topics apply` would do. Changes nothing; exit 1 when something differs."""
    if _differing_topics(config, json):
        raise typer.Exit(1)


@topics.command("apply")
def topics_apply(config: Config = None, json: Json = False) -> None:
    """Create missing topics and mend the settings of the others. Never adds partitions."""
    _differing_topics(config, json, mend=True)


def _differing_topics(config: Path | None, json: bool, *, mend: bool = False) -> bool:
    """Print what differs from the declared topics, once it is mended if `mend`; return whether any did."""
    from bridge.kafka import clients
    from bridge.kafka import topics as _topics

    settings = load(config)
    settings.need("kafka.bootstrap_servers")
    client = clients.admin(settings.kafka)
    changes = _topics.plan(client, _topics.declare(settings))
    if mend:
        _topics.apply(client, changes, replication_factor=settings.topics.replication_factor)
    rows = [{"topic": c.topic.name, "action": c.action.value, "detail": c.detail} for c in changes]
    lines = "\n".join(": ".join(row.values()) for row in rows)
    show(rows, lines or "the topics are as they must be", json=json)
    return bool(changes)


@schemas.command("check")
def schemas_check() -> None:
    """Check the schemas, offline: names, documentation, nullability, compatibility with all before."""
    from bridge.avro.evolution import check

    problems = check()
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(6)
    typer.echo("all schemas are well, and compatible with every earlier version")


@schemas.command("register")
def schemas_register(config: Config = None, json: Json = False) -> None:
    """Register the schemas in the registry, under the subjects of the topics."""
    from bridge.avro.registry import Registry
    from bridge.avro.schemas import subject

    settings = load(config)
    settings.need("registry.url")
    ids = Registry(settings.registry).register(settings.topics.prefix)
    rows = {subject(settings.topics.prefix, name): schema_id for name, schema_id in ids.items()}
    show(rows, "\n".join(f"{name}: schema {schema_id}" for name, schema_id in rows.items()), json=json)


app.command()(inspection.replay)
app.command()(inspection.limits)
app.command()(inspection.gaps)
app.command()(inspection.doctor)

# Listed last: whoever runs the bridge looks for `run` first.
app.command()(sandbox.demo)
app.command()(sandbox.simulate)
