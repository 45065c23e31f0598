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
from typing import NamedTuple

from benchmarks import (
    arena,
    audit,
    back,
    catchup,
    check,
    contenders,
    first,
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
from benchmarks.rounds import Line, Options, say
from bridge import __version__
from bridge.avro.encoder import compiled
from bridge.errors import BridgeError


class Bench(NamedTuple):
    """A benchmark: what runs it, its number of rounds, the options that it has."""

    run: Callable[[arena.Arena, Options], Iterator[Line]]
    rounds: int = 3
    uses: tuple[str, ...] = ()
    is_default: bool = True
    """Whether it runs when none is named."""


def _replay(opened: arena.Arena, o: Options) -> Iterator[Line]:
    return replay.run(opened, o.rounds, o.messages or replay.BETS, o.build, say)


BENCHES = {
    "catchup": Bench(catchup.run, 5, ("contenders", "messages")),
    "latency": Bench(latency.run, 4, ("seconds", "rates")),
    "start": Bench(start.run, uses=("messages",)),
    "growth": Bench(growth.run, uses=("messages",)),
    "snapshots": Bench(snapshots.run),
    "learn": Bench(learn.run, uses=("messages", "build")),
    "first": Bench(first.run, 1, ("build",), is_default=False),
    "micro": Bench(micro.run, 5),
    "limit": Bench(limit.run, uses=("messages",)),
    "quota": Bench(quota.run, uses=("rates", "seconds"), is_default=False),
    "replay": Bench(_replay, uses=("messages", "build"), is_default=False),
    "scale": Bench(scale.run, uses=("seconds",), is_default=False),
    "back": Bench(back.run, uses=("seconds", "build"), is_default=False),
    "join": Bench(join.run, uses=("messages",), is_default=False),
    "audit": Bench(audit.run, uses=("messages", "build"), is_default=False),
}
"""By name, in the order of a whole run."""
ONLY_OF_SOME = ("contenders", "messages", "seconds", "build", "rates")
"""Options that only some benchmarks have."""


def measure(opened: arena.Arena, options: argparse.Namespace) -> None:
    """Run the named benchmarks, or all that are default, and compare their ratios with the baseline.

    With fewer rounds, or only some contenders or rates, the page in docs/ stays as it is.
    """
    measured: check.Ratios = {}
    for name in options.bench or [name for name, bench in BENCHES.items() if bench.is_default]:
        bench = BENCHES[name]
        rounds = options.rounds or bench.rounds
        lines = []
        asked = Options(rounds, **{option: getattr(options, option) for option in ONLY_OF_SOME})
        for line in bench.run(opened, asked):
            print(json.dumps(line | {"compiled": compiled()}), flush=True)
            lines.append(line)
        measured |= check.ratios(lines)
        if name in report.PAGES and rounds >= bench.rounds and not options.contenders and not options.rates:
            report.write(name, lines, machine())
    for compared in check.report(check.read(), measured):
        say(compared)
    if options.write_baseline:
        check.write(measured)
        say(f"written to {check.BASELINE.name}")


def gate(opened: arena.Arena) -> None:
    """Exit with 1 if a ratio has fallen."""
    falls = check.check(check.read(), lambda wanted: check.measure(opened, wanted))
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


def form() -> str:
    """Say whether the modules that can be compiled are."""
    return "compiled" if compiled() else "as plain Python"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    apart = ", ".join(name for name, bench in BENCHES.items() if not bench.is_default)
    named = f"{', '.join(BENCHES)}; all but {apart} without one"
    parser.add_argument("bench", nargs="*", metavar="BENCH", help=named)
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
        "--build",
        type=Path,
        help="of audit, back, learn, replay: another checkout with a .venv, beside this one",
    )
    parser.add_argument("--check", action="store_true", help="fail if a ratio has fallen; takes minutes")
    parser.add_argument("--write-baseline", action="store_true", help="store the ratios that are measured")
    options = parser.parse_args()
    if unknown := sorted(set(options.bench) - set(BENCHES)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    for option in ONLY_OF_SOME:
        users = [name for name, bench in BENCHES.items() if option in bench.uses]
        if getattr(options, option) and options.bench and not set(options.bench) & set(users):
            parser.error(f"--{option} is only for {', '.join(users)}")
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
