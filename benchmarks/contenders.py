"""The programs that are measured, and their commands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.process import ROOT, python
from bridge.avro.encoder import compiled

PEERS = ROOT / "benchmarks" / "peers"
PEER_PYTHON = ROOT / ".venv" / "bench" / "bin" / "python"
"""The environment of peers written in Python; `make bench` sets it up."""


@dataclass(frozen=True)
class Contender:
    """A program that publishes the feed, or, with `--messages N`, messages that it makes itself."""

    name: str
    command: list[str]
    reads_feed: bool = True
    server: tuple[str, ...] = ()
    """Arguments of its server of messages."""
    share: float = 1.0
    """Its share of the messages of a catch-up. A slow contender gets fewer: its rate does not change."""
    environment: Mapping[str, str] = field(default_factory=dict)


_OF_THE_SLOW = 0.2
BRIDGE = Contender("bridge", python("bridge", "run"))
BY_PYDANTIC = Contender("bridge by pydantic", python("benchmarks.by_pydantic", "run"), share=0.5)
UNKNOWN_FIELD, UNKNOWN_FIELD_BY_PYDANTIC = (
    replace(bridge, name=f"{bridge.name} (unknown field)", server=("--unknown-field",))
    for bridge in (BRIDGE, BY_PYDANTIC)
)
"""Every message has a field that the interface does not know."""
FLOOR = Contender("floor", python("benchmarks.floor"), share=_OF_THE_SLOW)
CEILING = Contender("ceiling", python("benchmarks.ceiling"), reads_feed=False)
RELAY = Contender("relay", python("benchmarks.relay"))
CONNECT = "redpanda-connect"


def available() -> list[Contender]:
    """Return all contenders that this machine can run, the bridge first."""
    by_pydantic = (BY_PYDANTIC, UNKNOWN_FIELD_BY_PYDANTIC) if compiled() else ()
    found = [BRIDGE, *other_build(), UNKNOWN_FIELD, *by_pydantic, FLOOR, CEILING]
    if PEER_PYTHON.exists():
        found.append(Contender("quix", [str(PEER_PYTHON), "-m", "benchmarks.peers.quix"], share=_OF_THE_SLOW))
    if connect := redpanda_connect():
        found.append(connect)
    return found


def other_build() -> list[Contender]:
    """Return the bridge that is installed for the Python named by OTHER, to be measured beside this one."""
    if not (other := os.environ.get("OTHER")):
        return []
    # Neither this directory nor PYTHONPATH, which both hold this build, goes before what is installed.
    command = [str(Path(other).absolute()), "-P", "-m", "bridge", "run"]
    return [Contender("bridge of another build", command, environment={"PYTHONPATH": ""})]


def redpanda_connect(configuration: str = "redpanda-connect.yaml") -> Contender | None:
    """Return Redpanda Connect if its binary is on PATH, by itself or as part of rpk."""
    for name, *arguments in (("redpanda-connect", "run"), ("rpk", "connect", "run")):
        if path := shutil.which(name):
            command = [str(Path(path).resolve()), *arguments, str(PEERS / configuration)]
            return Contender(CONNECT, command, share=_OF_THE_SLOW)
    return None
