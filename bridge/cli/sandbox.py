"""Commands for trying things out on one machine: dev, demo and simulate."""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer

from bridge.cli.output import Json, print_json, say
from bridge.config import age_seconds, read_secret
from bridge.errors import SettingsError

dev = typer.Typer(
    help="A real Kafka and schema registry on this machine, for trying things out.", no_args_is_help=True
)

DEFAULT_DATA = Path(".bridge-dev")
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
    from bridge.sandbox import cluster as _dev

    if foreground:
        with _dev.start(
            data, brokers=brokers, kafka_port=kafka_port, registry_port=registry_port, progress=say
        ) as cluster:
            _print_addresses(cluster.bootstrap_servers, cluster.registry_url, json)
            _wait_for_signal()
        return
    state = _dev.up(data, brokers=brokers, kafka_port=kafka_port, registry_port=registry_port, progress=say)
    _print_addresses(state.bootstrap_servers, state.registry_url, json)


@dev.command("down")
def dev_down(data: Data = DEFAULT_DATA) -> None:
    """Stop what `bridge dev up` started. The data stays; remove the directory to be rid of it."""
    from bridge.sandbox import cluster as _dev

    typer.echo("stopped" if _dev.down(data, progress=say) else f"nothing was running in {data}")


@dev.command("status")
def dev_status(data: Data = DEFAULT_DATA, json: Json = False) -> None:
    """Show whether it runs, where it listens and what memory it takes. Exit 1 unless all of it runs."""
    from bridge.sandbox import cluster as _dev

    status = _dev.status(data)
    if json:
        print_json(asdict(status))
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


def demo(
    seconds: Annotated[
        float | None, typer.Option(min=1, help="End after so long; by default on Ctrl-C.")
    ] = None,
    kills: Annotated[
        int, typer.Option(min=0, help="Kill the bridge so often meanwhile; needs --seconds.")
    ] = 0,
    rate: Annotated[float, typer.Option(min=1, help="Bets a second.")] = 200,
    seed: Annotated[int, typer.Option(help="Other seeds make other bets.")] = 1,
    odd: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Share of odd messages: a ping beside the bet, no betId, or neither."
        ),
    ] = 0,
    kafka_port: KafkaPort = None,
    registry_port: RegistryPort = None,
    provider_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; a free one where it is taken.")
    ] = 8900,
) -> None:
    """Show the whole path on this machine: provider, bridge, Kafka, and a reader that checks every bet.

    It makes its own settings: BRIDGE_… in the environment does not count.

    The last line is a JSON object with the count. Exit 1 when a bet was lost, doubled or changed.
    """
    from bridge.sandbox.demo.run import Options
    from bridge.sandbox.demo.run import run as demonstrate

    if kills and seconds is None:
        raise SettingsError("--kills needs --seconds: the kills are spread over that time.")
    result = demonstrate(Options(seconds, kills, rate, seed, odd, kafka_port, registry_port, provider_port))
    typer.echo(orjson.dumps(result))
    if result["lost"] or result["duplicates"]:
        raise typer.Exit(1)


def _print_addresses(bootstrap_servers: str, registry_url: str, json: bool) -> None:
    if json:
        print_json({"bootstrap_servers": bootstrap_servers, "registry_url": registry_url})
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


_listening = partial(typer.Option, rich_help_panel="Where it listens")
_message = partial(typer.Option, rich_help_panel="What it publishes")
_connection = partial(typer.Option, rich_help_panel="Connections, replays and refusals")
_credential = partial(typer.Option, rich_help_panel="Credentials of the feed")
_rest = partial(typer.Option, rich_help_panel="Translations and currencies")
_world = partial(typer.Option, min=1, rich_help_panel="How much there is in its world")


def simulate(
    host: Annotated[str, _listening(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int,
        _listening(min=0, max=65535, help="Port to listen on; a free one where it is taken."),
    ] = 8900,
    control_port: Annotated[
        int | None,
        _listening(
            min=0,
            max=65535,
            help="Port of the control endpoint: faults and the truth over HTTP; 0 is any free one.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        _listening(help="PEM file with certificate and key: use TLS."),
    ] = None,
    skew: Annotated[float, _listening(help="Seconds by which its clock is ahead.")] = 0,
    rate: Annotated[float, _message(min=0.001, help="Messages a second, on average.")] = 200,
    seed: Annotated[int, _message(help="The same seed makes the same bets.")] = 1,
    history: Annotated[
        str,
        _message(metavar="AGE", help="How long the feed has already run, for replays: 90s, 30m, 2h, 3d."),
    ] = "0s",
    ping: Annotated[float, _message(min=0.01, help="Seconds between pings.")] = 5,
    resettle: Annotated[
        float,
        _message(min=0, max=1, help="Share of messages that settle a bet again."),
    ] = 0.05,
    disorder: Annotated[
        float,
        _message(min=0, help="How many seconds before its publication a settlementTime may lie."),
    ] = 2,
    odd: Annotated[
        float,
        _message(
            min=0, max=1, help="Share of messages with a ping beside the bet, no betId, or neither of both."
        ),
    ] = 0,
    burst: Annotated[
        int,
        _message(min=1, max=1_000_000, help="So many messages come at one moment."),
    ] = 1,
    large_every: Annotated[int, _message(min=0, help="Of so many bets one is large; 0: none.")] = 0,
    large_bytes: Annotated[
        int,
        _message(min=1, max=64 * 1024 * 1024, help="The least size of a large bet's message."),
    ] = 1_000_000,
    fragment_bytes: Annotated[
        int,
        _message(min=0, help="Messages go out in frames of at most so many bytes; 0: in one."),
    ] = 0,
    replay_rate: Annotated[float, _connection(min=1, help="Messages a second in a replay.")] = math.inf,
    zero: Annotated[
        Literal["nothing", "everything"],
        _connection(help="What revision 0 replays."),
    ] = "nothing",
    too_old: Annotated[
        Literal["edge", "refuse"],
        _connection(help="A revision older than the memory is replayed from its edge, or refused."),
    ] = "edge",
    second: Annotated[
        Literal["refuse", "replace"],
        _connection(help="A second connection is refused, or replaces the first."),
    ] = "refuse",
    limits_scale: Annotated[
        float,
        _connection(
            min=1, help="Time in the limits runs this many times faster; set BRIDGE_LIMITS__SCALE alike."
        ),
    ] = 1,
    refusal: Annotated[
        Literal["status", "close"],
        _connection(help="A refusal is an HTTP status, or a close code right after the handshake."),
    ] = "status",
    refusal_status: Annotated[
        int,
        _connection(min=200, max=599, help="HTTP status of a refusal for a limit."),
    ] = 429,
    refusal_close_code: Annotated[int, _connection(help="Close code of a refusal for a limit.")] = 1008,
    second_status: Annotated[
        int,
        _connection(min=200, max=599, help="HTTP status of the refusal of a second connection."),
    ] = 409,
    second_close_code: Annotated[
        int, _connection(help="Close code of the refusal of a second connection.")
    ] = 1008,
    auth: Annotated[
        Literal["none", "bearer", "header", "query"],
        _credential(help="Credentials it asks for."),
    ] = "none",
    auth_name: Annotated[str | None, _credential(help="Name of the header or the parameter.")] = None,
    auth_value_file: Annotated[Path | None, _credential(help="File with the credential.")] = None,
    api_token_file: Annotated[
        Path | None,
        _rest(metavar="FILE", help="Where a token that is good for a day is written at the start."),
    ] = None,
    api_secret_file: Annotated[
        Path | None,
        _rest(metavar="FILE", help="File with the key of the tokens, where others make them too."),
    ] = None,
    api_rate: Annotated[float, _rest(min=0.001, help="Requests a second that are answered; then 429.")] = 10,
    api_languages: Annotated[
        str, _rest(metavar="CODES", help="The languages that there are, with commas.")
    ] = "en,de,sv,el,ja,ar",
    sports: Annotated[int, _world(help="Sports.")] = 12,
    regions: Annotated[int, _world(help="Regions.")] = 20,
    leagues: Annotated[int, _world(help="Leagues.")] = 200,
    competitors: Annotated[int, _world(help="Competitors, at least two for each league.")] = 1000,
    events: Annotated[int, _world(help="Events, each with one to seven markets.")] = 2000,
) -> None:
    """Be the provider: settlement feed with replay and limits, translations, currencies, and faults.

    Prints its address, then one JSON line for each connection attempt. Point BRIDGE_FEED__BASE_URL at it.
    """
    from bridge.sandbox.provider.command import simulate as serve

    api: dict[str, Any] = {"rate": api_rate, "languages": api_languages.split(",")}
    if api_secret_file is not None:
        api["secret"] = read_secret("--api-secret-file", api_secret_file)
    serve(
        say,
        host=host,
        port=port,
        control_port=control_port,
        certificate=certificate,
        clock_skew_seconds=skew,
        rate=rate,
        seed=seed,
        history_seconds=age_seconds(history),
        ping_seconds=ping,
        resettle=resettle,
        max_out_of_orderness_seconds=disorder,
        odd=odd,
        burst=burst,
        large_every=large_every,
        large_bytes=large_bytes,
        fragment_bytes=fragment_bytes,
        replay_rate=replay_rate,
        zero=zero,
        too_old=too_old,
        second=second,
        limits_scale=limits_scale,
        refusal=refusal,
        refusal_status=refusal_status,
        refusal_close_code=refusal_close_code,
        second_status=second_status,
        second_close_code=second_close_code,
        auth=auth,
        auth_name=auth_name,
        auth_value=None if auth_value_file is None else read_secret("--auth-value-file", auth_value_file),
        api_token_file=api_token_file,
        api=api,
        sizes={
            "sports": sports,
            "regions": regions,
            "leagues": leagues,
            "competitors": competitors,
            "events": events,
        },
    )
