"""`bridge simulate`: the simulated provider as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson
from pydantic import ValidationError

from bridge.errors import SettingsError
from bridge.simulator.server import Simulator, run
from bridge.simulator.settings import SimulatorSettings


def simulate(say: Callable[[str], None], **settings: Any) -> None:
    """Serve until SIGINT or SIGTERM, with settings as in `SimulatorSettings`.

    `say` gets the addresses and a JSON line for each connection attempt. Raises SettingsError.
    """
    try:
        chosen = SimulatorSettings(**settings)
        asyncio.run(
            run(
                chosen,
                on_start=lambda simulator: _say_where(simulator, say),
                on_attempt=lambda attempt: say(orjson.dumps(asdict(attempt), default=str).decode()),
            )
        )
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, e['loc'])) or 'options'}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        ]
        raise SettingsError("\n".join(wrong)) from None
    except OSError as error:
        raise SettingsError(f"the simulator cannot start: {error.strerror or error}") from None


def _say_where(simulator: Simulator, say: Callable[[str], None]) -> None:
    say(f"provider at {simulator.url}")
    if simulator.control_url:
        say(f"control at {simulator.control_url}")
