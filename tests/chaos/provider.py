"""A simulated provider as a process of its own, controlled over HTTP."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2

from tests.harness import Bridge, Place, until


class Provider:
    """`bridge simulate` with these settings of `SimulatorSettings`, on free ports."""

    def __init__(self, process: Bridge, url: str, control_url: str) -> None:
        self.process, self.url, self.control_url = process, url, control_url

    @classmethod
    async def start(cls, place: Place, **settings: object) -> Provider:
        """Start it, and return once it answers. It ends with the processes of the place."""
        config = place.directory / "provider.toml"
        given = {"port": 0, "control_port": 0, **settings}
        lines = (f"{name} = {_toml(value)}\n" for name, value in given.items())
        config.write_text("".join(lines), "utf-8")
        process = place.bridge("simulate", "--config", str(config))
        await until(lambda: "control at " in process.text(), "the provider", so_far=process.text)
        addresses = dict(re.findall(r"^(provider|control) at (\S+)$", process.text(), re.MULTILINE))
        return cls(process, addresses["provider"], addresses["control"])

    async def get(self, path: str) -> Any:
        """Get a path of the control endpoint."""
        return await self._ask("GET", path)

    async def post(self, path: str, **parameters: object) -> Any:
        """Change something by the control endpoint."""
        return await self._ask("POST", path, parameters)

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            answer = await client.request(method, f"{self.control_url}{path}", json=body)
        assert answer.status_code == 200, f"{method} {path}: {answer.text}"
        return answer.json()


def _toml(value: object) -> str:
    """Return a setting as TOML writes it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)} = {_toml(it)}' for name, it in value.items())}}}"
    return json.dumps(value)
