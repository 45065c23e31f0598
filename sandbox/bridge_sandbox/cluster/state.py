"""The state of a running cluster for other processes: one JSON file in its directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from bridge_sandbox.cluster.files import write_atomically
from bridge_sandbox.cluster.process import Identity


@dataclass(frozen=True)
class Member:
    """One server: `kafka-1`, …, `registry`."""

    name: str
    identity: Identity
    log: Path

    def memory(self) -> int | None:
        """Return its resident set in bytes, None when it has died."""
        process = self.identity.find()
        return process.memory_info().rss if process else None


@dataclass(frozen=True)
class State:
    """A cluster that was started; without members, the addresses of the last one, if any."""

    bootstrap_servers: str = ""
    registry_url: str = ""
    members: tuple[Member, ...] = ()

    @property
    def ports(self) -> list[int]:
        """The ports of the registry and of each broker; none without addresses."""
        addresses = [self.registry_url, *(f"//{server}" for server in self.bootstrap_servers.split(","))]
        return [port for address in addresses if (port := urlsplit(address).port)]

    def now(self) -> Literal["running", "partial", "stopped"]:
        """Return whether all servers, some or none run now."""
        alive = [member.identity.find() is not None for member in self.members]
        return "stopped" if not any(alive) else "running" if all(alive) else "partial"


_STATE = TypeAdapter(State)


def save(data: Path, state: State) -> None:
    """Save the state for other processes."""
    write_atomically(_file(data), _STATE.dump_json(state, indent=1).decode() + "\n")


def load(data: Path) -> State:
    """Load the saved state; one without members if there is none or it is malformed."""
    try:
        return _STATE.validate_json(_file(data).read_bytes())
    except (OSError, ValidationError):
        return State()


def stopped(data: Path) -> None:
    """Save that the cluster was stopped. Its ports are the default of the next start."""
    if (last := load(data)).members:
        save(data, replace(last, members=()))


def _file(data: Path) -> Path:
    return data / "state.json"
