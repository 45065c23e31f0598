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
from typing import Any, NamedTuple

from benchmarks import (
    arena,
    back,
    catchup,
    check,
    contenders,
    growth,
    join,
    latency,
    learn,
    limit,
    micro,
    quota,
    replay,
    report,
    scale,
    snapshots,
    start,
)
from bridge import __version__
from bridge.avro.encoder import compiled
from bridge.errors import BridgeError

Line = dict[str, Any]


def say(line: str) -> None:
    """Print to stderr; stdout is for the figures."""
    print(line, file=sys.stderr, flush=True)


class Bench(NamedTuple):
    """A benchmark: its number of rounds, and a function that runs a number of rounds."""

    rounds: int
    run: Callable[[arena.Arena, argparse.Namespace, int], Iterator[Line]]
    is_default: bool = True
    """Whether it runs when none is named."""


BENCHES = {
    "catchup": Bench(
        5, lambda at, o, n: catchup.run(at, o.contenders, n, o.messages or catchup.MESSAGES, say)
    ),
    "latency": Bench(4, lambda at, o, n: latency.run(at, o.rates, n, o.seconds or latency.SECONDS, say)),
    "start": Bench(3, lambda at, o, n: start.run(at, n, o.messages or start.ENTRIES, say)),
    "growth": Bench(3, lambda at, o, n: growth.run(at, n, o.messages or growth.MESSAGES, say)),
    "snapshots": Bench(3, lambda at, _, n: snapshots.run(at, n, say)),
    "learn": Bench(3, lambda at, o, n: learn.run(at, n, o.messages or learn.BETS, say)),
    "micro": Bench(5, lambda at, _, n: micro.run(at, n, say)),
    "limit": Bench(3, lambda at, o, n: limit.run(at, n, o.messages or limit.MESSAGES, say)),
    "quota": Bench(
        3, lambda at, o, n: quota.run(at, o.rates or quota.QUOTAS, n, o.seconds or quota.SECONDS, say), False
    ),
    "replay": Bench(
        3, lambda at, o, n: replay.run(at, n, o.messages or replay.BETS, o.build, say), is_default=False
    ),
    "scale": Bench(3, lambda at, o, n: scale.run(at, n, o.seconds or scale.SECONDS, say), is_default=False),
    "back": Bench(
        3, lambda at, o, n: back.run(at, n, o.seconds or back.LONGEST, o.build, say), is_default=False
    ),
    "join": Bench(3, lambda at, o, n: join.run(at, n, o.messages or join.BETS, say), is_default=False),
}
"""By name, in the order of a whole run."""


def measure(opened: arena.Arena, options: argparse.Namespace) -> None:
    """Run the named benchmarks, or all that are default, and compare their ratios with the baseline.

    With fewer rounds, or only some contenders or rates, the page in docs/ stays as it is.
    """
    measured: check.Ratios = {}
    for name in options.bench or [name for name, bench in BENCHES.items() if bench.is_default]:
        bench = BENCHES[name]
        rounds = options.rounds or bench.rounds
        lines = []
        for line in bench.run(opened, options, rounds):
            print(json.dumps(line | {"compiled": compiled()}), flush=True)
            lines.append(line)
        measured |= check.ratios(lines)
        if rounds >= bench.rounds and not options.contenders and not options.rates:
            report.write(name, lines, machine())
    for compared in check.report(check.read(), measured):
        say(compared)
    if options.write_baseline:
        check.write(measured)
        say(f"written to {check.BASELINE.name}")


def gate(opened: arena.Arena) -> None:
    """Exit with 1 if a ratio has fallen."""
    falls = check.check(check.read(), lambda wanted: check.measure(opened, wanted, say))
    if falls:
        sys.exit("\n".join(f"error: {fall}" for fall in falls))
    say("no ratio has fallen")


def machine() -> str:
    """Describe where and when the figures were measured."""
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    python = f"Python {platform.python_version()}, encoder {form()}"
    return f"Measured {datetime.now(UTC):%Y-%m-%d} with version {__version__}, {python}, on {where}."


def _contenders(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    there = [contender.name for contender in contenders.available()]
    if unknown := [name for name in names if name not in there]:
        raise argparse.ArgumentTypeError(
            f"there is no contender {unknown[0]!r}; there are {', '.join(there)}"
        )
    return names


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number above 0, not {text!r}")
    return int(text)


def _counts(text: str) -> list[int]:
    return [_count(number.strip()) for number in text.split(",")]


USES = {
    "contenders": ("catchup",),
    "messages": ("catchup", "start", "growth", "learn", "limit", "join", "replay"),
    "seconds": ("latency", "scale", "back", "quota"),
    "build": ("back", "replay"),
    "rates": ("latency", "quota"),
}
"""Options that only some benchmarks have."""


def form() -> str:
    """Say whether the modules that can be compiled are."""
    return "compiled" if compiled() else "as plain Python"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "bench", nargs="*", metavar="BENCH", help=f"{', '.join(BENCHES)}; all but scale and join without one"
    )
    parser.add_argument("--rounds", type=_count, help="every figure is the median of this many rounds")
    parser.add_argument(
        "--contenders",
        type=_contenders,
        default=[],
        help="of a catch-up, such as bridge,floor; all without it",
    )
    parser.add_argument(
        "--messages", type=_count, help="in a catch-up, to fill the deduplicator, and over time"
    )
    parser.add_argument(
        "--seconds", type=_count, help="of each run of latency or scale, or the longest of back"
    )
    parser.add_argument(
        "--rates",
        type=_counts,
        default=[],
        help="of latency, messages a second, such as 500,1000; of quota, kilobytes a second",
    )
    parser.add_argument(
        "--build", type=Path, help="of back, replay: another checkout with a .venv, beside this one"
    )
    parser.add_argument("--check", action="store_true", help="fail if a ratio has fallen; takes minutes")
    parser.add_argument("--write-baseline", action="store_true", help="store the ratios that are measured")
    options = parser.parse_args()
    if unknown := sorted(set(options.bench) - set(BENCHES)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    for name, users in USES.items():
        if getattr(options, name) and options.bench and not set(options.bench) & set(users):
            parser.error(f"--{name} is only for {', '.join(users)}")
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # so that all processes are stopped
    say(f"encoder {form()}")
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-bench-") as directory:
        try:
            with arena.opened(Path(directory), say) as opened:
                if options.check:
                    gate(opened)
                else:
                    measure(opened, options)
        except BridgeError as error:
            sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
