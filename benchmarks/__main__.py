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

from benchmarks import (
    arena,
    catchup,
    check,
    contenders,
    growth,
    latency,
    learn,
    micro,
    report,
    snapshots,
    start,
)
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
    rounds, messages, seconds = options.rounds, options.messages, options.seconds or latency.SECONDS
    return {
        "catchup": lambda: catchup.run(opened, options.contenders, rounds, messages or catchup.MESSAGES, say),
        "latency": lambda: latency.run(opened, options.rates, rounds, seconds, say),
        "start": lambda: start.run(opened, rounds, messages or start.ENTRIES, say),
        "growth": lambda: growth.run(opened, rounds, messages or growth.MESSAGES, say),
        "snapshots": lambda: snapshots.run(opened, rounds, say),
        "learn": lambda: learn.run(opened, rounds, messages or learn.BETS, say),
        "micro": lambda: micro.run(opened, rounds, say),
    }


NAMES = ("catchup", "latency", "start", "growth", "snapshots", "learn", "micro")


def measure(opened: arena.Arena, options: argparse.Namespace) -> None:
    """Run what is asked for, all of it where nothing is named."""
    known = benches(opened, options)
    for name in options.bench or NAMES:
        lines = []
        for line in known[name]():
            print(json.dumps(line | {"compiled": compiled()}), flush=True)
            lines.append(line)
        if options.rounds >= ROUNDS and not options.contenders and not options.rates:
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


def _contenders(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    there = [contender.name for contender in contenders.available()]
    if unknown := [name for name in names if name not in there]:
        raise argparse.ArgumentTypeError(f"none here is called {unknown[0]!r}; there are {', '.join(there)}")
    return names


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number above 0, not {text!r}")
    return int(text)


def _counts(text: str) -> list[int]:
    return [_count(number.strip()) for number in text.split(",")]


USES = {
    "contenders": ("catchup",),
    "messages": ("catchup", "start", "growth", "learn"),
    "seconds": ("latency",),
    "rates": ("latency",),
}
"""Options that are not for every benchmark."""


def form() -> str:
    """Of what can be compiled."""
    return "compiled" if compiled() else "as plain Python"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("bench", nargs="*", metavar="BENCH", help=f"{', '.join(NAMES)}; all without one")
    parser.add_argument(
        "--rounds",
        type=_count,
        default=ROUNDS,
        help=f"every figure is a median of so many, {ROUNDS} without it",
    )
    parser.add_argument(
        "--contenders",
        type=_contenders,
        default=[],
        help="of a catch-up, such as bridge,floor; all without it",
    )
    parser.add_argument(
        "--messages", type=_count, help="in a catch-up, to fill the deduplicator, and over time"
    )
    parser.add_argument("--seconds", type=_count, help="of each run of latency, after its warm-up")
    parser.add_argument(
        "--rates", type=_counts, default=[], help="of latency, messages a second, such as 500,1000"
    )
    parser.add_argument("--check", action="store_true", help="hold ratios against the baseline")
    parser.add_argument("--write-baseline", action="store_true", help="measure and store them")
    options = parser.parse_args()
    if unknown := sorted(set(options.bench) - set(NAMES)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name, users in USES.items():
        if getattr(options, name) and options.bench and not set(options.bench) & set(users):
            parser.error(f"--{name} is only for {', '.join(users)}")
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
