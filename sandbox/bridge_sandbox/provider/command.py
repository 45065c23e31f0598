"""Runs the simulated provider as a process."""

from __future__ import annotations

import asyncio
import difflib
import errno
import re
import shlex
import signal
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson
import typer
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bridge_sandbox.provider.avro_files import RecordingError
from bridge_sandbox.provider.feed import Attempt
from bridge_sandbox.provider.http_server import taken
from bridge_sandbox.provider.rate_limits import LimitSettings
from bridge_sandbox.provider.recording import Recording
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from bridge_sandbox.provider.world.entities import Sizes

_LOOK_SECONDS = 0.2
RENAMED: Final = {"disorder_seconds": "max_out_of_orderness_seconds"}
"""Old name of a setting → new name. An old name is refused."""


class SettingsError(Exception):
    """A setting or an option is wrong. The text names it, and says what to do."""


def simulate(config: Path | None, options: Mapping[str, Any], api_token_file: Path | None) -> None:
    """Serve until SIGINT or SIGTERM, with the settings of `read_settings`.

    Prints what sets a bridge's variables, on stderr the addresses, then a JSON line for each connection
    attempt. Before that, a token for the translations and currencies, valid for a day, is written to
    `api_token_file`. Raises SettingsError.
    """

    def report(attempt: Attempt) -> None:
        typer.echo(orjson.dumps(asdict(attempt), default=str), err=True)

    try:
        asyncio.run(_serve(Simulator(read_settings(config, options), report), api_token_file))
    except RecordingError as error:
        raise SettingsError(str(error)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE and (port := re.search(r"(?:', |:)(\d+)[)\d, ]*: ", reason)):
            reason = f"{taken(int(port[1]))}. Stop that, or choose another; 0 is any free one."
        raise SettingsError(f"the simulator cannot start: {reason}") from None


def read_settings(config: Path | None, options: Mapping[str, Any]) -> SimulatorSettings:
    """Read a TOML file with the names of `SimulatorSettings`, then apply `options`, such as `api.rate`.

    Raises SettingsError, with one line for each wrong setting.
    """
    given = _read(config) if config else {}
    for name, value in options.items():
        section, _, key = name.rpartition(".")
        table = given.setdefault(section, {}) if section else given
        if isinstance(table, dict):  # otherwise the validation reports the section
            table[key] = value
    try:
        return SimulatorSettings(**given)
    except ValidationError as error:
        raise SettingsError("\n".join(map(_explain, error.errors()))) from None


def age_seconds(text: str) -> int:
    """Return an age (`90s`, `1h30m`) in seconds. Raises SettingsError."""
    if not re.fullmatch(r"\d{1,9}[smhd]( ?\d{1,9}[smhd])*", text, re.ASCII):
        raise SettingsError(f"--history: {text!r} is not an age such as 90s, 30m, 2h, 3d or 1h30m")
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([smhd])", text))


def _read(config: Path) -> dict[str, Any]:
    if not config.is_file():
        raise SettingsError(f"there is no settings file {config}")
    try:
        return tomllib.loads(config.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"the settings file {config} cannot be read: {error}") from None


def _explain(error: ErrorDetails) -> str:
    where = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        if where in RENAMED:
            return f"{where} is now called {RENAMED[where]}"
        sections: dict[str, type[BaseModel]] = {
            "": SimulatorSettings,
            "sizes.": Sizes,
            "limits.": LimitSettings,
            "api.": RestPolicy,
        }
        known = [section + name for section, model in sections.items() for name in model.model_fields]
        close = difflib.get_close_matches(where, known, n=1)
        return f"{where} is not a setting; {f'did you mean {close[0]}?' if close else 'remove it'}"
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


async def _serve(provider: Simulator, token_file: Path | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)

    async with provider as simulator:
        if token_file:
            # First, so that a script that waits for the address finds it.
            _write(token_file, simulator.rest.tokens.mint(simulator.clock()))
        typer.echo("\n".join(f"export BRIDGE_{line}" for line in _variables(simulator, token_file)))
        typer.echo(f"provider at {simulator.url}", err=True)
        if (port := simulator.settings.port) not in (0, simulator.port):
            typer.echo(f"{taken(port)}, using {simulator.port}", err=True)
        if simulator.control_url:
            typer.echo(f"control at {simulator.control_url}", err=True)
        if simulator.recording:
            await _play(simulator, simulator.recording, stopped)
        await stopped.wait()


async def _play(simulator: Simulator, recording: Recording, stopped: asyncio.Event) -> None:
    """Wait for the end of the recording, or the simulator's, and tell."""
    typer.echo(f"playing {recording.bets}", err=True)
    while recording.ends > simulator.now():
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await stopped.wait()
                return
    typer.echo("the recording has ended: everything is published, pings and replays go on", err=True)


def _variables(simulator: Simulator, token_file: Path | None) -> Iterator[str]:
    yield f"FEED__BASE_URL={simulator.url}"
    yield f"API__BASE_URL={simulator.url}"
    if token_file:
        yield f"API__TOKEN_FILE={shlex.quote(str(token_file.absolute()))}"
    if (scale := simulator.settings.limits_scale) != 1:
        yield f"LIMITS__SCALE={scale:g}"


def _write(file: Path, token: str) -> None:
    """Write the token to a file that only its owner can read."""
    try:
        file.touch(0o600)
        file.chmod(0o600)
        file.write_text(token)
    except OSError as error:
        raise SettingsError(
            f"--api-token-file: cannot write {file}: {error.strerror}. Name a file in a directory that "
            "exists and can be written to."
        ) from None
