"""The command line: parses arguments, prints results, turns errors into exit codes. Nothing else."""

from __future__ import annotations

import math
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Never

import orjson
import typer

from bridge import __version__, log
from bridge.config import Settings, age_seconds, load, read_secret
from bridge.errors import BridgeError, SettingsError

app = typer.Typer(
    name="bridge",
    help="Owns a sportsbook's settlement feed and turns it into Kafka: exactly once, with no silent gap.",
    epilog="Settings: environment variables BRIDGE_SECTION__NAME, or a TOML file given by --config; "
    "bridge.example.toml lists them all. Exit codes: 0 success, 1 failure or a difference found, "
    "2 wrong settings, 3 credentials refused, 5 a gap, 6 topics or schemas, 7 embedded Kafka, "
    "8 Kafka refuses, 130 Ctrl-C.",
    no_args_is_help=True,
    rich_markup_mode="markdown",  # so that a paragraph is wrapped by the terminal, not where the code is
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
dev = typer.Typer(
    help="A real Kafka and schema registry on this machine, for trying things out.", no_args_is_help=True
)
topics = typer.Typer(help="Show and mend the topics in Kafka.", no_args_is_help=True)
schemas = typer.Typer(help="The Avro schemas of what is published.", no_args_is_help=True)
checkpoint = typer.Typer(help="Show how far the feed is published.", no_args_is_help=True)
app.add_typer(dev, name="dev")
app.add_typer(topics, name="topics")
app.add_typer(schemas, name="schemas")
app.add_typer(checkpoint, name="checkpoint")

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings; the environment wins."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DataDir = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="Where Kafka and the registry keep their data.")
]
DEFAULT_DATA = Path(".bridge-dev")


def main() -> Never:
    """Entry point of `bridge`: runs the command, prints errors as one line, exits with their code."""
    log.configure()
    try:
        app(standalone_mode=True)
    except BridgeError as error:
        for line in str(error).splitlines():
            typer.echo(f"error: {line}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # `bridge tail | head`
        sys.stderr.close()
        sys.exit(0)
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
    from bridge.app import run as serve

    log.configure(verbose=verbose)
    serve(load(config))


@app.command()
def simulate(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; a free one where it is taken.")
    ] = 8900,
    rate: Annotated[float, typer.Option(min=0.001, help="Messages a second.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed makes the same bets.")] = 1,
    history: Annotated[
        str,
        typer.Option(metavar="AGE", help="How long the feed has already run, for replays: 90s, 30m, 2h, 3d."),
    ] = "0s",
    resettle: Annotated[
        float, typer.Option(min=0, max=1, help="Share of messages that settle a bet again.")
    ] = 0.05,
    disorder: Annotated[
        float, typer.Option(min=0, help="How many seconds before its publication a settlementTime may lie.")
    ] = 2,
    ping: Annotated[float, typer.Option(min=0.01, help="Seconds between pings.")] = 5,
    replay_rate: Annotated[float, typer.Option(min=1, help="Messages a second in a replay.")] = math.inf,
    second: Annotated[
        Literal["refuse", "replace"],
        typer.Option(help="A second connection is refused, or replaces the first."),
    ] = "refuse",
    zero: Annotated[
        Literal["nothing", "everything"], typer.Option(help="What revision 0 replays.")
    ] = "nothing",
    limits_scale: Annotated[
        float,
        typer.Option(
            min=1, help="Time in the limits runs this many times faster; set BRIDGE_LIMITS__SCALE alike."
        ),
    ] = 1,
    refusal_status: Annotated[int, typer.Option(min=300, max=599, help="HTTP status of a refusal.")] = 429,
    skew: Annotated[float, typer.Option(help="Seconds by which its clock is ahead.")] = 0,
    auth: Annotated[
        Literal["none", "bearer", "header", "query"], typer.Option(help="Credentials it asks for.")
    ] = "none",
    auth_name: Annotated[str | None, typer.Option(help="Name of the header or the parameter.")] = None,
    auth_value_file: Annotated[Path | None, typer.Option(help="File with the credential.")] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file with certificate and key: use TLS.")
    ] = None,
) -> None:
    """Be the provider: a settlement feed with replay, pings, resettlements and enforced limits.

    Prints its address, then one JSON line for each connection attempt. Point BRIDGE_FEED__BASE_URL at it.
    """
    from bridge.simulator.command import simulate as serve

    serve(
        _say,
        host=host,
        port=port,
        rate=rate,
        seed=seed,
        history_seconds=age_seconds(history),
        resettle=resettle,
        disorder_seconds=disorder,
        ping_seconds=ping,
        replay_rate=replay_rate,
        second=second,
        zero=zero,
        limits_scale=limits_scale,
        refusal_status=refusal_status,
        clock_skew_seconds=skew,
        auth=auth,
        auth_name=auth_name,
        auth_value=None if auth_value_file is None else read_secret("--auth-value-file", auth_value_file),
        certificate=certificate,
    )


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
    json: Annotated[
        bool, typer.Option("--json", help="Print whole records, one JSON object a line.")
    ] = False,
) -> None:
    """Print settled bets from the topic as they become visible to a read_committed consumer."""
    from bridge.readers import Bet, bet_as_json, bet_as_line, follow_bets

    shown = 0
    for bet in follow_bets(load(config), from_beginning=from_beginning, until_end=until_end):
        if not isinstance(bet, Bet):
            continue
        typer.echo(orjson.dumps(bet_as_json(bet)) if json else bet_as_line(bet))
        shown += 1
        if shown == count:
            break


@checkpoint.command("show")
def checkpoint_show(config: Config = None, json: Json = False) -> None:
    """Show the committed position of the feed, its counters and its recent connections."""
    from bridge.readers import checkpoint_as_json, checkpoint_as_lines, read_checkpoint

    settings = load(config)
    found = read_checkpoint(settings)
    if found is None:
        raise BridgeError(
            f"there is no checkpoint of the feed {settings.feed.name} under the prefix "
            f"{settings.topics.prefix}: no `bridge run` has begun with it yet."
        )
    if json:
        _print_json(checkpoint_as_json(found))
    else:
        typer.echo(checkpoint_as_lines(found))


@topics.command("plan")
def topics_plan(config: Config = None, json: Json = False) -> None:
    """Show what `bridge topics apply` would do. Changes nothing; exit 1 when something differs."""
    from bridge import kafka
    from bridge import topics as _topics

    settings = _with_kafka(config)
    changes = _topics.plan(kafka.admin(settings.kafka), _topics.declare(settings))
    _print_changes(changes, json)
    if changes:
        raise typer.Exit(1)


@topics.command("apply")
def topics_apply(config: Config = None, json: Json = False) -> None:
    """Create missing topics and mend the settings of the others. Never adds partitions."""
    from bridge import kafka
    from bridge import topics as _topics

    settings = _with_kafka(config)
    client = kafka.admin(settings.kafka)
    changes = _topics.plan(client, _topics.declare(settings))
    _topics.apply(client, changes, replication_factor=settings.topics.replication_factor)
    _print_changes(changes, json)


@schemas.command("check")
def schemas_check() -> None:
    """Check the schemas, offline: names, documentation, nullability, compatibility with all before."""
    from bridge.avro.check import check

    problems = check()
    for problem in problems:
        typer.echo(str(problem), err=True)
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
    if json:
        _print_json(rows)
    else:
        for name, schema_id in rows.items():
            typer.echo(f"{name}: schema {schema_id}")


Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="Where Kafka and the registry keep their data.")
]
KafkaPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="9092 by default; another one where it is taken.")
]
RegistryPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="8080 by default; another one where it is taken.")
]


@dev.command("up")
def dev_up(
    data: Data = DEFAULT_DATA,
    kafka_port: KafkaPort = None,
    registry_port: RegistryPort = None,
    brokers: Annotated[int, typer.Option(min=1, max=9, help="Brokers in the cluster.")] = 1,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay, and stop it all on Ctrl-C.")
    ] = False,
    json: Json = False,
) -> None:
    """Start a real Kafka and schema registry; returns when both answer.

    The first start downloads them, about 200 MB. They go on until `bridge dev down`; their data stays.
    """
    from bridge import dev as _dev

    if foreground:
        with _dev.start(
            data, brokers=brokers, kafka_port=kafka_port, registry_port=registry_port, progress=_say
        ) as cluster:
            _print_addresses(cluster.bootstrap_servers, cluster.registry_url, json)
            _wait_for_signal()
        return
    state = _dev.up(data, brokers=brokers, kafka_port=kafka_port, registry_port=registry_port, progress=_say)
    _print_addresses(state.bootstrap_servers, state.registry_url, json)


@dev.command("down")
def dev_down(data: Data = DEFAULT_DATA) -> None:
    """Stop what `bridge dev up` started. The data stays; remove the directory to be rid of it."""
    from bridge import dev as _dev

    typer.echo("stopped" if _dev.down(data, progress=_say) else f"nothing was running in {data}")


@dev.command("status")
def dev_status(data: Data = DEFAULT_DATA, json: Json = False) -> None:
    """Show whether it runs, where it listens and what memory it takes. Exit 1 unless all of it runs."""
    from bridge import dev as _dev

    status = _dev.status(data)
    if json:
        _print_json(asdict(status))
    else:
        typer.echo(f"{status.state} in {data}")
        for member in status.members:
            how = (
                f"pid {member.pid}, {member.memory / 2**20:.0f} MB"
                if member.alive
                else f"died, see {member.log}"
            )
            typer.echo(f"  {member.name}: {how}")
        if status.state == "running":
            _print_addresses(status.bootstrap_servers, status.registry_url, json=False)
    if status.state != "running":
        raise typer.Exit(1)


@app.command()
def demo(
    seconds: Annotated[
        float | None, typer.Option(min=1, help="End after so long; by default on Ctrl-C.")
    ] = None,
    kills: Annotated[
        int, typer.Option(min=0, help="Kill the bridge so often meanwhile; needs --seconds.")
    ] = 0,
    rate: Annotated[float, typer.Option(min=1, help="Bets a second.")] = 200,
    seed: Annotated[int, typer.Option(help="Other seeds make other bets.")] = 1,
    kafka_port: KafkaPort = None,
    registry_port: RegistryPort = None,
    provider_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; a free one where it is taken.")
    ] = 8900,
) -> None:
    """Show the whole path on this machine: provider, bridge, Kafka, and a reader that checks every bet.

    The last line is a JSON object with the count. Exit 1 when a bet was lost, doubled or changed.
    """
    from bridge.demo.main import Options
    from bridge.demo.main import run as demonstrate

    if kills and seconds is None:
        raise SettingsError("--kills needs --seconds: the kills are spread over that time.")
    result = demonstrate(Options(seconds, kills, rate, seed, kafka_port, registry_port, provider_port))
    typer.echo(orjson.dumps(result))
    if result["lost"] or result["duplicates"]:
        raise typer.Exit(1)


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _print_addresses(bootstrap_servers: str, registry_url: str, json: bool) -> None:
    if json:
        _print_json({"bootstrap_servers": bootstrap_servers, "registry_url": registry_url})
    else:
        typer.echo(f"export BRIDGE_KAFKA__BOOTSTRAP_SERVERS={bootstrap_servers}")
        typer.echo(f"export BRIDGE_REGISTRY__URL={registry_url}")


def _wait_for_signal() -> None:
    """Wait for SIGINT or SIGTERM, with nothing said about it."""
    caught = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: caught.set())
    while not caught.wait(0.5):
        pass


def _with_kafka(config: Path | None) -> Settings:
    settings = load(config)
    settings.need("kafka.bootstrap_servers")
    return settings


def _print_json(value: Any) -> None:
    typer.echo(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2))


def _print_changes(changes: list[Any], json: bool) -> None:
    if json:
        _print_json([{"topic": c.topic.name, "action": c.action.value, "detail": c.detail} for c in changes])
    elif not changes:
        typer.echo("the topics are as they must be")
    else:
        for change in changes:
            typer.echo(f"{change.topic.name}: {change.action.value}: {change.detail}")


__all__ = ["SettingsError", "app", "main"]
