"""Who takes part in the catch-up, and how each is started."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.process import ROOT, python
from bridge.avro.encoder import compiled

PEERS = ROOT / "benchmarks" / "peers"
PEER_PYTHON = ROOT / ".venv" / "bench" / "bin" / "python"
"""The environment of what others need; `make bench` sets it up."""


@dataclass(frozen=True)
class Contender:
    """A program that publishes the feed. `command` is told how many messages there will be."""

    name: str
    command: Callable[[int], list[str]]
    reads_feed: bool = True
    environment: dict[str, str] = field(default_factory=dict)


BRIDGE = Contender("bridge", lambda _: python("bridge", "run"))
PLAIN = Contender(
    "bridge plain", BRIDGE.command, environment={"PYTHONPATH": f"{ROOT / 'tests' / 'plain'}:{ROOT}"}
)
"""What is compiled runs as plain Python."""
COMPILED = Contender("bridge compiled", BRIDGE.command, environment={"BRIDGE_FEED__CONVERTER": "compiled"})
"""The other way to convert a message: by a setting."""
FLOOR = Contender("floor", lambda _: python("benchmarks.floor"))
CEILING = Contender("ceiling", lambda n: python("benchmarks.ceiling", "--messages", n), reads_feed=False)


def available() -> list[Contender]:
    """All that can be run on this machine, the bridge first: one, where nothing of it is compiled."""
    found = [BRIDGE, *((COMPILED, PLAIN) if compiled() else ()), FLOOR, CEILING]
    if PEER_PYTHON.exists():
        found.append(Contender("quix", lambda _: [str(PEER_PYTHON), "-m", "benchmarks.peers.quix"]))
    if connect := _redpanda_connect():
        found.append(
            Contender("redpanda-connect", lambda _: [*connect, str(PEERS / "redpanda-connect.yaml")])
        )
    return found


def _redpanda_connect() -> list[str] | None:
    """Its command, by the names of its binary: as part of rpk, by itself, as its forebear."""
    for name, arguments in (("redpanda-connect", ["run"]), ("rpk", ["connect", "run"])):
        if path := shutil.which(name):
            return [str(Path(path).resolve()), *arguments]
    return None
