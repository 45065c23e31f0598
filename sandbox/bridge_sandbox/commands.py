"""The commands `bridge dev`, `demo` and `simulate`; the last is also `settlement-simulator`.

The simulator needs no bridge: `dev` and `demo` import what needs it when they run.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Annotated, Any

import orjson
import typer

dev = typer.Typer(
    help="Run a real Kafka and schema registry on this machine, for development.", no_args_is_help=True
)

simulator = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)

DEFAULT_DATA = Path(".bridge-dev")
Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", help="Data directory of Kafka and the registry.")
]

_say = partial(typer.echo, err=True)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def _show(data: Any, text: str, *, json: bool) -> None:
    typer.echo(orjson.dumps(data, default=str, option=orjson.OPT_INDENT_2) if json else text)


def _port(help_: str) -> Any:
    return typer.Option(min=0, max=65535, help=help_)


_BY_DEFAULT = "by default that of the last start or {}, or a free one if that is taken."
KafkaPort = Annotated[int | None, _port(f"Port of Kafka: {_BY_DEFAULT.format(9092)}")]
RegistryPort = Annotated[int | None, _port(f"Port of the registry: {_BY_DEFAULT.format(8080)}")]
ProviderPort = Annotated[
    int | None, _port("Port of the simulator: by default 8900, or a free one if that is taken.")
]
Rate = Annotated[float, typer.Option(min=0.001, help="Average messages per second.")]
Seed = Annotated[int, typer.Option(help="Seed of the random bets.")]
Odd = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        help="Share of unusual messages (0–1): both a bet and a ping, a bet without betId, or neither.",
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

    The first start downloads about 200 MB and stores 325 MB. They run until `bridge dev down`,
    which keeps their data.
    """
    from bridge_sandbox import cluster as _dev

    wanted = _dev.Wanted(brokers=brokers, kafka_port=kafka_port, registry_port=registry_port)
    if foreground:
        with _dev.start(data, progress=_say, **wanted) as cluster:
            _print_addresses(cluster.bootstrap_servers, cluster.registry_url, json)
            _wait_for_signal()
        return
    state = _dev.up(data, progress=_say, **wanted)
    _print_addresses(state.bootstrap_servers, state.registry_url, json)


@dev.command("down")
def dev_down(data: Data = DEFAULT_DATA) -> None:
    """Stop what `bridge dev up` started. Keeps the data; delete the directory to remove it."""
    from bridge_sandbox import cluster as _dev

    typer.echo("stopped" if _dev.down(data, progress=_say) else f"nothing was running in {data}")


@dev.command("status")
def dev_status(data: Data = DEFAULT_DATA, json: Json = False) -> None:
    """Show the servers, their addresses and memory. Exit 1 unless all of them run."""
    from bridge_sandbox import cluster as _dev

    found = _dev.load(data)
    if (status := found.now()) == "stopped":
        found = _dev.State()
    lines, members = [f"{status} in {data}"], []
    for member in found.members:
        name, pid, log, memory = member.name, member.identity.pid, member.log, member.memory()
        lines.append(
            f"  {name}: {f'died, see {log}' if memory is None else f'pid {pid}, {memory / 2**20:.0f} MB'}"
        )
        members.append(
            {"name": name, "pid": pid, "alive": memory is not None, "memory": memory or 0, "log": log}
        )
    addresses = {"bootstrap_servers": found.bootstrap_servers, "registry_url": found.registry_url}
    _show({"state": status, **addresses, "members": members}, "\n".join(lines), json=json)
    if status != "running":
        raise typer.Exit(1)
    if not json:
        _print_addresses(found.bootstrap_servers, found.registry_url, json=False)


def demo(
    seconds: Annotated[
        float | None, typer.Option(min=1, help="Run for this many seconds; by default until Ctrl-C.")
    ] = None,
    kills: Annotated[
        int, typer.Option(min=0, help="Kill the bridge this many times (SIGKILL); needs --seconds.")
    ] = 0,
    other: Annotated[
        Path | None,
        typer.Option(
            metavar="PYTHON",
            help="The Python of another version of the bridge, which begins and takes turns with this one at "
            "each kill: an upgrade and a rollback.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    rate: Rate = 200,
    seed: Seed = 1,
    odd: Odd = 0,
    kafka_port: KafkaPort = None,
    registry_port: RegistryPort = None,
    provider_port: ProviderPort = None,
) -> None:
    """Run everything on this machine: provider, bridge, Kafka, and a reader that checks every bet.

    Ignores BRIDGE_… variables. The last line is a JSON object with the result. Exit 1 if a bet was lost,
    duplicated or changed.
    """
    from bridge.errors import SettingsError
    from bridge_sandbox.demo.run import run as demonstrate
    from bridge_sandbox.provider.settings import SimulatorSettings

    if kills and seconds is None:
        raise SettingsError("--kills needs --seconds: the kills are spread over that time.")
    if other and not kills:
        raise SettingsError("--other needs --kills: the two take turns at each kill.")
    duration = math.inf if seconds is None else seconds
    given = {} if provider_port is None else {"port": provider_port}
    provider = SimulatorSettings(**given, rate=rate, seed=seed, odd=odd)
    pythons = [*([str(other.absolute())] if other else []), sys.executable]
    result = demonstrate(provider, duration, kills, pythons, kafka_port, registry_port)
    typer.echo(orjson.dumps(result))
    if result["lost"] or result["duplicates"]:
        raise typer.Exit(1)


def _print_addresses(bootstrap_servers: str, registry_url: str, json: bool) -> None:
    _show(
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


@simulator.command()
def simulate(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="TOML file with settings; options override it."),
    ] = None,
    bets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Play recorded bets: an Avro file that `bridge replay` has written, a directory of them, or "
            "topic:2h or topic:FROM/TO, what the topic received then. May be repeated.",
        ),
    ] = None,
    speed: Annotated[
        str,
        typer.Option(
            metavar="TIMES",
            help="How many times as fast as recorded; max is all at once, 0 waits for commands.",
        ),
    ] = "1",
    keep_times: Annotated[
        bool, typer.Option("--keep-times", help="Leave the date-times as recorded; by default moved to now.")
    ] = False,
    names: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Serve recorded translations and currencies: an Avro file or a directory of them; "
            "or topic, what the topics have now. May be repeated.",
        ),
    ] = None,
    port: ProviderPort = None,
    control_port: Annotated[int | None, _port("Port of the control endpoint; 0 is any free port.")] = None,
    rate: Rate = 200,
    seed: Seed = 1,
    history: Annotated[
        str, typer.Option(metavar="AGE", help="How far back the feed begins: 90s, 30m, 2h, 3d.")
    ] = "0s",
    odd: Odd = 0,
    limits_scale: Annotated[
        float,
        typer.Option(
            min=1,
            help="Run the limits' clocks this many times faster; set BRIDGE_LIMITS__SCALE to the same value.",
        ),
    ] = 1,
    api_rate: Annotated[
        float, typer.Option(min=0.001, help="REST requests per second; the simulator answers 429 to more.")
    ] = 10,
    api_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a REST token to this file, valid for one day.")
    ] = None,
) -> None:
    """Simulate the provider: settlement feed with replay and limits, translations, currencies, faults.

    Prints the variables that have a bridge use it, then one JSON line per connection attempt on stderr.
    docs/simulator.md lists the settings of the --config file.
    """
    from bridge_sandbox.provider import command

    renamed = {"history": "history_seconds", "api_rate": "api.rate"}
    try:
        seconds = command.age_seconds(history)
        options = {
            renamed.get(name, name): value
            for name, value in (ctx.params | {"history": seconds}).items()
            if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"
            if name not in ("config", "api_token_file")
        }
        with TemporaryDirectory() as copies:
            for option in options.keys() & {"bets", "names"}:
                options[option] = [_without_topic(option, each, Path(copies)) for each in options[option]]
            command.simulate(config or ctx.find_root().params.get("config"), options, api_token_file)
    except command.SettingsError as error:
        for line in str(error).splitlines():
            _say(f"error: {line}")
        raise typer.Exit(2) from None


def _without_topic(option: str, given: str, copies: Path) -> str:
    """Return the file or directory for `--bets` or `--names`; of a topic, one with a copy of its records."""
    if given != "topic" and not (option == "bets" and given.startswith("topic:")):
        return given
    from bridge_sandbox.provider.avro_files import write
    from bridge_sandbox.provider.command import SettingsError

    try:
        from bridge import clock
        from bridge.avro.schemas import load as schema
        from bridge.config import load
        from bridge.errors import BridgeError
        from bridge.inspection.replay import Replay, parse_window
        from bridge.inspection.selection import Selection
        from bridge.reader import BETS, Topic, read
    except ModuleNotFoundError:
        fix = 'pip install "settlement-bridge-sandbox[cluster]"'
        raise SettingsError(f"--{option} {given} needs the bridge: {fix}; or name a file") from None
    copy = Path(mkdtemp(dir=copies))
    begin, _, end = given.removeprefix("topic").removeprefix(":").partition("/")
    try:
        window = parse_window(begin or None, end or None, clock.now().wall)
        if option == "bets":
            with Replay(load(), window, Selection()) as found:
                write(copy / "bets.avro", schema("settled-bet"), (bet.value for bet in found))
            return str(copy)
        for topic, name in (("translations", "translation"), ("currencies", "currency")):
            records = read(Topic(topic, name, BETS.make))  # which has all fields of a record as its value
            write(copy / f"{name}.avro", schema(name), (record.value for record in records))
    except BridgeError as error:
        raise SettingsError(f"--{option} {given}: {error}") from None
    return str(copy)
