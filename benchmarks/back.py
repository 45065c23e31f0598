"""Back: from the return of a provider that was away to the first bet that is committed, in real time.

The provider is the simulator, with the limits of the interface. It is away for who connects by the port of
`benchmarks.front`: TCP connections are refused.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import BRIDGE
from benchmarks.figures import in_turn, summary
from benchmarks.process import Program, python, running

LONGEST = 300
"""Seconds after which a return is given up as not noticed: the figure is that or more."""
LIVE, START = "live, away for 60 s", "at a start after 2 h, away for 20 s"
_AWAY = {LIVE: 60.0, START: 20.0}
_INTERFACE = {"LIMITS__PROPER_CONNECTIONS": 5, "LIMITS__LARGE_CONNECTIONS": 5}
"""Settings of the bridge, so that the limits are those of the interface."""
OTHER = "other build"


def run(
    arena: Arena, rounds: int, longest: float, build: Path | None, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Yield a line for each case and build; `build` is another checkout, set up in its own `.venv`."""
    builds = {"bridge": None} | ({OTHER: build} if build else {})
    for case in _AWAY:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in builds}
        for number in range(rounds):
            for name in in_turn(list(builds), number):
                with arena.lane() as lane:
                    found[name].append({"seconds": _return(lane, case, builds[name], longest)})
                say(
                    f"{case}: {name} after {found[name][-1]['seconds']:.1f} s, round {number + 1} of {rounds}"
                )
        for name, results in found.items():
            yield {"bench": "back", "case": case, "build": name, "rounds": rounds, **summary(results)}


def _return(lane: Lane, case: str, build: Path | None, longest: float) -> float:
    """Return the seconds from the provider's return to the first bet, at most `longest`."""
    provider, ours = _free_port(), _free_port()
    simulator = python("bridge", "simulate", "--port", provider, "--rate", 20, "--history", "2h")
    environment = lane.environment(
        FEED__BASE_URL=f"http://127.0.0.1:{ours}", FEED__START="2h" if case == START else "0", **_INTERFACE
    )
    command = BRIDGE.command
    if build is not None:
        command = [str(build / ".venv" / "bin" / "bridge"), "run"]
        environment["PYTHONPATH"] = str(build)
    with running("provider", simulator, {}, lane.directory) as served, _front(lane, ours, provider) as front:
        served.wait_until(lambda: "http://" in served.text(), "has no address")
        if case == START:
            front.stop()
        with running("bridge", command, environment, lane.directory) as bridge:
            if case == START:
                bridge.wait_until(lambda: '"Connecting"' in bridge.text(), "makes no attempt")
            else:
                bridge.wait_until(lambda: '"Live"' in bridge.text(), "is not live")
                front.stop()
            time.sleep(_AWAY[case])
            before = lane.committed()
            _open(front)
            back = time.monotonic()
            while lane.committed() == before and time.monotonic() < back + longest:
                time.sleep(0.02)
            return min(time.monotonic() - back, longest)


@contextmanager
def _front(lane: Lane, port: int, provider: int) -> Iterator[Program]:
    with running("front", python("benchmarks.front", port, provider), {}, lane.directory) as front:
        front.told("open")
        yield front


def _open(front: Program) -> None:
    front.start()
    front.told("open")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
