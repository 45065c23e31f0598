"""The state of a running cluster for other processes: one JSON file in its directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from bridge.sandbox.cluster.files import write_atomically
from bridge.sandbox.cluster.process import Identity


@dataclass(frozen=True)
class Member:
    """One server: `kafka-1`, …, `registry`."""

    name: str
    identity: Identity
    log: Path


@dataclass(frozen=True)
class State:
    """A cluster that was started."""

    bootstrap_servers: str
    registry_url: str
    members: tuple[Member, ...]


@dataclass(frozen=True)
class MemberStatus:
    """A server as it is now. `memory` is its resident set in bytes, 0 when it has died."""

    name: str
    pid: int
    alive: bool
    memory: int
    log: Path


@dataclass(frozen=True)
class Status:
    """A cluster as it is now. `partial`: something of it has died, see `members`."""

    state: Literal["running", "partial", "stopped"]
    bootstrap_servers: str = ""
    registry_url: str = ""
    members: tuple[MemberStatus, ...] = ()


_STATE = TypeAdapter(State)


def save(data: Path, state: State) -> None:
    """Save the state for other processes."""
    write_atomically(_file(data), _STATE.dump_json(state, indent=1).decode() + "\n")


def load(data: Path) -> State | None:
    """Load the saved state; None if there is none or it is malformed."""
    try:
        return _STATE.validate_json(_file(data).read_bytes())
    except (OSError, ValidationError):
        return None


def forget(data: Path) -> None:
    """Remove the state of a cluster that was stopped."""
    _file(data).unlink(missing_ok=True)


def status(data: Path) -> Status:
    """Whether a cluster runs in the directory, where it listens and how much memory it uses."""
    state = load(data)
    members = tuple(_look(member) for member in state.members) if state else ()
    alive = [member.alive for member in members]
    if state is None or not any(alive):
        return Status("stopped")
    return Status(
        "running" if all(alive) else "partial", state.bootstrap_servers, state.registry_url, members
    )


def _file(data: Path) -> Path:
    return data / "state.json"


def _look(member: Member) -> MemberStatus:
    process = member.identity.find()
    memory = process.memory_info().rss if process else 0
    return MemberStatus(member.name, member.identity.pid, process is not None, memory, member.log)
