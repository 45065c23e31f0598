"""Back: from the return of a provider that was away to the first bet that is committed, in real time.

The provider is the simulator, with the limits of the interface. It is away for who connects by the port of
`benchmarks.front`: TCP connections are refused.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.arena import Arena, Lane
from benchmarks.process import Program, bridge_of, python, running
from benchmarks.rounds import Line, Options, Result, line, measured

LONGEST = 300
"""Seconds after which a return is given up as not noticed: the figure is that or more."""
LIVE, START = "live, away for 60 s", "at a start after 2 h, away for 20 s"
_AWAY = {LIVE: 60.0, START: 20.0}
_INTERFACE = {"LIMITS__PROPER_CONNECTIONS": 5, "LIMITS__LARGE_CONNECTIONS": 5}
"""Settings of the bridge, so that the limits are those of the interface."""


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each case and build."""
    longest = options.seconds or LONGEST

    def once(case: str, name: str) -> Result:
        with arena.lane() as lane:
            return {"seconds": _return(lane, case, options.builds[name], longest)}

    for case in _AWAY:
        found = measured(case, list(options.builds), options.rounds, partial(once, case))
        for name, results in found.items():
            yield line("back", results, case=case, build=name)


def _return(lane: Lane, case: str, build: Path | None, longest: float) -> float:
    """Return the seconds from the provider's return to the first bet, at most `longest`."""
    provider, ours = _free_port(), _free_port()
    simulator = python("bridge", "simulate", "--port", provider, "--rate", 20, "--history", "2h")
    environment = lane.environment(
        FEED__BASE_URL=f"http://127.0.0.1:{ours}", FEED__START="2h" if case == START else "0", **_INTERFACE
    )
    command, more = bridge_of(build, "run")
    with running("provider", simulator, {}, lane.directory) as served, _front(lane, ours, provider) as front:
        served.wait_until(lambda: "http://" in served.text(), "has no address")
        if case == START:
            front.stop()
        with running("bridge", command, environment | more, lane.directory) as bridge:
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
