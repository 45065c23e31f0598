"""Commands for one machine: dev, demo and simulate."""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from bridge.cli.output import Json, say, show
from bridge.config import age_seconds
from bridge.errors import SettingsError

dev = typer.Typer(
    help="Run a real Kafka and schema registry on this machine, for development.", no_args_is_help=True
)

DEFAULT_DATA = Path(".bridge-dev")
Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="Data directory of Kafka and the registry.")
]
KafkaPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port of Kafka: 9092 by default, or a free one if that is taken."),
]
RegistryPort = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, help="Port of the registry: 8080 by default, or a free one if that is taken."
    ),
]
ProviderPort = Annotated[
    int, typer.Option(min=0, max=65535, help="Port of the simulator, or a free one if that is taken.")
]
Rate = Annotated[float, typer.Option(min=0.001, help="Average messages per second.")]
Seed = Annotated[int, typer.Option(help="Seed of the random bets.")]
Odd = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Share of messages with a bet and a ping, with a bet without betId, or with neither.",
    ),
]


@dev.command("up")
def dev_up(
    data: Data = DEFAULT_DATA,
    kafka_port: KafkaPort = None,
    registry_port: RegistryPort = None,
    brokers: Annotated[int, typer.Option(min=1, max=9, help="Brokers in the cluster.")] = 1,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run in the foreground until Ctrl-C.")
    ] = False,
    json: Json = False,
) -> None:
    """Start a real Kafka and schema registry, and return when both answer.

    The first start downloads about 200 MB. They run until `bridge dev down`, which keeps their data.
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
    """Stop what `bridge dev up` started. Keeps the data; delete the directory to remove it."""
    from bridge.sandbox import cluster as _dev

    typer.echo("stopped" if _dev.down(data, progress=say) else f"nothing was running in {data}")


@dev.command("status")
def dev_status(data: Data = DEFAULT_DATA, json: Json = False) -> None:
    """Show the servers, their addresses and memory. Exit 1 unless all of them run."""
    from bridge.sandbox import cluster as _dev

    status = _dev.status(data)
    lines = [f"{status.state} in {data}"]
    for member in status.members:
        lives = f"pid {member.pid}, {member.memory / 2**20:.0f} MB"
        lines.append(f"  {member.name}: {lives if member.alive else f'died, see {member.log}'}")
    show(asdict(status), "\n".join(lines), json=json)
    if status.state == "running" and not json:
        _print_addresses(status.bootstrap_servers, status.registry_url, json=False)
    if status.state != "running":
        raise typer.Exit(1)


def demo(
    seconds: Annotated[
        float | None, typer.Option(min=1, help="Run for this many seconds; by default until Ctrl-C.")
    ] = None,
    kills: Annotated[
        int, typer.Option(min=0, help="Kill the bridge this many times (SIGKILL); needs --seconds.")
    ] = 0,
    rate: Rate = 200,
    seed: Seed = 1,
    odd: Odd = 0,
    kafka_port: KafkaPort = None,
    registry_port: RegistryPort = None,
    provider_port: ProviderPort = 8900,
) -> None:
    """Run everything on this machine: provider, bridge, Kafka, and a reader that checks every bet.

    Ignores BRIDGE_… variables. The last line is a JSON object with the result. Exit 1 if a bet was lost,
    duplicated or changed.
    """
    from bridge.sandbox.demo.run import Options
    from bridge.sandbox.demo.run import run as demonstrate

    if kills and seconds is None:
        raise SettingsError("--kills needs --seconds: the kills are spread over that time.")
    duration = math.inf if seconds is None else seconds
    result = demonstrate(Options(duration, kills, rate, seed, odd, kafka_port, registry_port, provider_port))
    typer.echo(orjson.dumps(result))
    if result["lost"] or result["duplicates"]:
        raise typer.Exit(1)


def _print_addresses(bootstrap_servers: str, registry_url: str, json: bool) -> None:
    show(
        {"bootstrap_servers": bootstrap_servers, "registry_url": registry_url},
        f"export BRIDGE_KAFKA__BOOTSTRAP_SERVERS={bootstrap_servers}\n"
        f"export BRIDGE_REGISTRY__URL={registry_url}",
        json=json,
    )


def _wait_for_signal() -> None:
    """Wait for SIGINT or SIGTERM without printing anything."""
    caught = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: caught.set())
    while not caught.wait(0.5):
        pass


def simulate(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings; options override it."),
    ] = None,
    port: ProviderPort = 8900,
    control_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of the control endpoint; 0 is any free port."),
    ] = None,
    rate: Rate = 200,
    seed: Seed = 1,
    history: Annotated[
        str, typer.Option(metavar="AGE", help="How far back the feed begins: 90s, 30m, 2h, 3d.")
    ] = "0s",
    odd: Odd = 0,
    limits_scale: Annotated[
        float,
        typer.Option(
            min=1, help="Factor by which time runs faster in the limits; set BRIDGE_LIMITS__SCALE to it."
        ),
    ] = 1,
    api_rate: Annotated[
        float,
        typer.Option(min=0.001, help="REST requests per second; the simulator answers 429 to more."),
    ] = 10,
    api_token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a REST token to this file, valid for one day."),
    ] = None,
) -> None:
    """Simulate the provider: settlement feed with replay and limits, translations, currencies, faults.

    Prints its address, then one JSON line per connection attempt. Set BRIDGE_FEED__BASE_URL to the address.
    docs/simulator.md lists the settings of the file.
    """
    from bridge.sandbox.provider.command import simulate as serve

    options = {
        "port": port,
        "control_port": control_port,
        "rate": rate,
        "seed": seed,
        "history": age_seconds(history),
        "odd": odd,
        "limits_scale": limits_scale,
        "api_rate": api_rate,
    }
    names = {"history": "history_seconds", "api_rate": "api.rate"}
    given = {
        names.get(name, name): value
        for name, value in options.items()
        if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"
    }
    serve(say, config, given, api_token_file=api_token_file)
