"""`bridge simulate`: the simulated provider as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson
from pydantic import ValidationError

from bridge.errors import SettingsError
from bridge.simulator.server import run
from bridge.simulator.settings import SimulatorSettings


def simulate(say: Callable[[str], None], **settings: Any) -> None:
    """Serve until SIGINT or SIGTERM, with settings as in `SimulatorSettings`.

    `say` gets the address and a JSON line for each connection attempt. Raises SettingsError.
    """
    try:
        chosen = SimulatorSettings(**settings)
        asyncio.run(
            run(
                chosen,
                on_start=lambda simulator: say(f"provider at {simulator.url}"),
                on_attempt=lambda attempt: say(orjson.dumps(asdict(attempt), default=str).decode()),
            )
        )
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc'])) or 'options'}: {e['msg']}" for e in error.errors()]
        raise SettingsError("\n".join(wrong)) from None
    except OSError as error:
        raise SettingsError(f"cannot listen on {settings.get('host')}: {error}") from None
