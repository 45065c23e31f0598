"""The command behind `make bench` and `make bench-check`: lines of JSON on stdout, all else on stderr."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import arena, catchup, check, growth, latency, micro, report, snapshots, start
from bridge import __version__
from bridge.avro.encoder import compiled
from bridge.errors import BridgeError

Line = dict[str, Any]
ROUNDS = 5
"""With fewer, or only some contenders, the page in docs/ is not renewed; the baseline is made of as many."""


def say(line: str) -> None:
    """On stderr: stdout is for the figures."""
    print(line, file=sys.stderr, flush=True)


def benches(opened: arena.Arena, options: argparse.Namespace) -> dict[str, Callable[[], Iterator[Line]]]:
    """Each benchmark by its name, in the order of a whole run."""
    rounds, messages = options.rounds, options.messages
    return {
        "catchup": lambda: catchup.run(opened, options.contenders, rounds, messages or catchup.MESSAGES, say),
        "latency": lambda: latency.run(opened, rounds, options.seconds, say),
        "start": lambda: start.run(opened, rounds, messages or start.ENTRIES, say),
        "growth": lambda: growth.run(opened, rounds, messages or growth.MESSAGES, say),
        "snapshots": lambda: snapshots.run(opened, rounds, say),
        "micro": lambda: micro.run(opened, rounds, say),
    }


NAMES = ("catchup", "latency", "start", "growth", "snapshots", "micro")


def measure(opened: arena.Arena, options: argparse.Namespace) -> None:
    """Run what is asked for, all of it where nothing is named."""
    known = benches(opened, options)
    for name in options.bench or NAMES:
        lines = []
        for line in known[name]():
            print(json.dumps(line), flush=True)
            lines.append(line)
        if options.rounds >= ROUNDS and not options.contenders:
            report.write(name, lines, machine())


def compare(opened: arena.Arena, *, renew: bool) -> None:
    """Hold ratios against the baseline, or write them there. Exits with 1 where one has fallen."""
    if renew:
        check.write(check.measure(opened, {"catchup", "micro"}, ROUNDS, say))
        say(f"written to {check.BASELINE.name}")
        return
    falls = check.check(check.read(), lambda wanted: check.measure(opened, wanted, check.ROUNDS, say))
    if falls:
        sys.exit("\n".join(f"error: {fall}" for fall in falls))
    say("no ratio has fallen")


def machine() -> str:
    """Where and when, for the page."""
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    python = f"Python {platform.python_version()}, encoder {form()}"
    return f"Measured {datetime.now(UTC):%Y-%m-%d} with version {__version__}, {python}, on {where}."


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def form() -> str:
    """Of what can be compiled."""
    return "compiled" if compiled() else "as plain Python"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("bench", nargs="*", metavar="BENCH", help=f"{', '.join(NAMES)}; all without one")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"every figure is a median of so many, {ROUNDS} without it"
    )
    parser.add_argument(
        "--contenders", type=_names, default=[], help="of a catch-up, such as bridge,floor; all without it"
    )
    parser.add_argument("--messages", type=int, help="in a catch-up, to fill the guard, and over time")
    parser.add_argument("--seconds", type=float, default=latency.SECONDS, help="of each run of latency")
    parser.add_argument("--check", action="store_true", help="hold ratios against the baseline")
    parser.add_argument("--write-baseline", action="store_true", help="measure and store them")
    options = parser.parse_args()
    if unknown := sorted(set(options.bench) - set(NAMES)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and leave nothing behind
    say(f"encoder {form()}")
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-bench-") as directory:
        try:
            with arena.opened(Path(directory), say) as opened:
                if options.check or options.write_baseline:
                    compare(opened, renew=options.write_baseline)
                else:
                    measure(opened, options)
        except BridgeError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
