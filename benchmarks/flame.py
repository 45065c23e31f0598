"""A flame graph of the bridge while it catches up: what its process computes.

    make flame                        writes docs/performance/flame.svg

perf samples the process from outside, all its threads and native code included, so the bridge runs as it
is. Compiled modules are told by function; libraries, Python's interpreter among them, as a whole: most have
no symbols. A sampler of Python's own frames would lose what it cannot walk through, half of all here.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path, PurePath

from benchmarks import arena
from benchmarks.contenders import BRIDGE
from benchmarks.plot import Stack, flame
from benchmarks.process import BenchmarkFailed, running
from benchmarks.report import PLOTS
from benchmarks.rounds import say
from bridge.errors import BridgeError

MESSAGES = 400_000
_RATE = 499
"""Samples a second; not 500, so as not to keep step with a timer."""
_SECONDS = 8
_STACK_BYTES = 32_768
"""What is copied of the stack for each sample."""
_WARM_UP_COMMITTED = 20_000
_FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<symbol>.*) \((?P<file>.*)\)$")
_COMPILED = re.compile(r"^CPy(?:Def|Py)_(?P<path>\w+)$")
_LIBRARY = re.compile(r"^(?P<name>(?:lib)?python|[^.-]+)")


def record(opened: arena.Arena, perf: str, messages: int) -> str:
    """What `perf script` says of the bridge in the middle of a catch-up. Raises BenchmarkFailed."""
    with opened.lane() as lane, lane.feed("--messages", messages) as (_, url):
        environment = lane.environment(FEED__BASE_URL=url)
        with running("bridge", BRIDGE.command, environment, lane.directory) as bridge:
            bridge.wait_until(lambda: lane.committed() > _WARM_UP_COMMITTED, "has not begun")
            data = lane.directory / "perf.data"
            how = ("--freq", _RATE, "--call-graph", f"dwarf,{_STACK_BYTES}", "--pid", bridge.pid)
            command = [perf, "record", "--output", data, *how, "--", "sleep", _SECONDS]
            with running("perf", [*map(str, command)], {}, lane.directory) as sampler:
                if not sampler.wait(_SECONDS + 60):
                    raise BenchmarkFailed(f"perf does not end\n{sampler.log_tail()}")
        fields = ("--no-inline", "--fields", "comm,ip,sym,dso", "--input", str(data))
        script = subprocess.run([perf, "script", *fields], capture_output=True, text=True, check=False)
        if not script.stdout:
            raise BenchmarkFailed(f"perf has sampled nothing\n{sampler.log_tail()}\n{script.stderr}")
        return script.stdout


def stacks(script: str) -> Counter[Stack]:
    """How often each stack was seen, the thread's name first and then the outermost call."""
    seen: Counter[Stack] = Counter()
    for sample in script.split("\n\n"):
        head, *frames = sample.strip("\n").split("\n")
        if frames:
            calls = (name for name, _ in groupby(map(_name, reversed(frames))))
            seen[(f"{head.strip()} (thread)", *calls)] += 1
    return seen


def _name(frame: str) -> str:
    """Of a line of `perf script`: a function of a compiled module, or else the library."""
    found = _FRAME.match(frame)
    if found is None:
        return "?"
    compiled = _COMPILED.match(found["symbol"])
    if compiled:
        return compiled["path"].replace("___", ".")
    library = _LIBRARY.match(PurePath(found["file"]).name.strip("[]"))
    return library["name"] if library else "?"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make flame", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--output", type=Path, default=PLOTS / "flame.svg")
    options = parser.parse_args()
    perf = shutil.which("perf")
    if perf is None:
        sys.exit("error: perf is not on PATH: install linux-perf (Debian) or linux-tools (Ubuntu)")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="settlement-bridge-flame-") as directory,
            arena.opened(Path(directory), say) as opened,
        ):
            seen = stacks(record(opened, perf, options.messages))
    except BridgeError as error:
        sys.exit(f"error: {error}")
    options.output.write_text(flame("bridge run, catching up", seen), "utf-8")
    say(f"{seen.total()} samples in {options.output.name}")


if __name__ == "__main__":
    main()
