"""`bridge simulate`: the simulated provider as a process of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import orjson
from pydantic import ValidationError

from bridge.errors import SettingsError
from bridge.sandbox.provider.server import Simulator, run
from bridge.sandbox.provider.settings import SimulatorSettings, explain


def simulate(say: Callable[[str], None], *, api_token_file: Path | None = None, **settings: Any) -> None:
    """Serve until SIGINT or SIGTERM, with settings as in `SimulatorSettings`.

    `say` gets the addresses and a JSON line for each connection attempt. Before that a token for the
    translations and currencies, good for a day, is written to `api_token_file`. Raises SettingsError.
    """
    try:
        asyncio.run(
            run(
                SimulatorSettings(**settings),
                on_start=partial(_announce, say=say, token_file=api_token_file),
                on_attempt=lambda attempt: say(orjson.dumps(asdict(attempt), default=str).decode()),
            )
        )
    except ValidationError as error:
        raise SettingsError("\n".join(explain(error, "options"))) from None
    except OSError as error:
        raise SettingsError(f"the simulator cannot start: {error.strerror or error}") from None


def _announce(simulator: Simulator, *, say: Callable[[str], None], token_file: Path | None) -> None:
    if token_file:
        # First of all, so that it is there for whoever waits for the address.
        _write(token_file, simulator.rest.tokens.mint(simulator.clock()))
    say(f"provider at {simulator.url}")
    if simulator.settings.port not in (0, simulator.port):
        say(f"port {simulator.settings.port} is taken, using {simulator.port}")
    if simulator.control_url:
        say(f"control at {simulator.control_url}")


def _write(file: Path, token: str) -> None:
    """Whole or not at all, and for its owner only: a temporary file has the mode 0600."""
    try:
        descriptor, name = mkstemp(dir=file.parent, prefix=f".{file.name}.")
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "w") as opened:
                opened.write(token)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise SettingsError(
            f"--api-token-file: cannot write {file}: {error.strerror}. Name a file in a directory that "
            "exists and can be written to."
        ) from None
