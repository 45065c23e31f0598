"""A flame graph of the bridge while it catches up: what its process computes.

    make flame                        writes docs/performance/flame.svg

py-spy samples the process from outside, native code included, so the bridge runs as it is. What holds
the interpreter's lock is counted, so that threads that wait do not hide those that work.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from benchmarks import arena
from benchmarks.__main__ import say
from benchmarks.contenders import BRIDGE, PEER_PYTHON
from benchmarks.process import running
from benchmarks.report import PLOTS

SPY = PEER_PYTHON.with_name("py-spy")
MESSAGES = 400_000
_RATE = 100
"""Samples a second."""
_SECONDS = 10
_WARM_UP_COMMITTED = 20_000
_NAME = "bridge run, catching up"
_TITLE = re.compile(r'(<text id="title"[^>]*>)[^<]*(</text>)')
"""py-spy puts its command line there, with paths of this machine."""


def flame(opened: arena.Arena, messages: int, output: Path) -> None:
    """Let the bridge catch up, and sample it in the middle. Raises BenchmarkFailed."""
    with opened.lane() as lane, lane.feed("--messages", messages) as (_, url):
        environment = lane.environment(FEED__BASE_URL=url)
        with running("bridge", BRIDGE.command(messages), environment, lane.directory) as bridge:
            bridge.wait_until(lambda: lane.committed() > _WARM_UP_COMMITTED, "has not begun")
            drawn = lane.directory / "flame.svg"
            target = ("--pid", bridge.pid, "--output", drawn, "--format", "flamegraph")
            how = ("--native", "--gil", "--rate", _RATE, "--duration", _SECONDS)
            command = [str(SPY), "record", *map(str, (*target, *how))]
            with running("py-spy", command, {}, lane.directory) as spy:
                spy.wait(2 * _SECONDS + 60)
                say(spy.log_tail())
    output.write_text(_TITLE.sub(rf"\g<1>{_NAME}\g<2>", drawn.read_text("utf-8")), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make flame", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--output", type=Path, default=PLOTS / "flame.svg")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="settlement-bridge-flame-") as directory,
        arena.opened(Path(directory), say) as opened,
    ):
        flame(opened, options.messages, options.output.resolve())


if __name__ == "__main__":
    main()
