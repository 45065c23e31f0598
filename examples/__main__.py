"""Runs an engine with all that it needs on this machine, to look at it or to check what it prints.

Kafka, the registry, a simulated provider, `bridge run` and `bridge translations` are started first, and ended
with it. With `--bets` the provider publishes so many bets, a tenth of which it settles again, and what each
engine makes of them must be what the provider sent. Raises SystemExit with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from bridge.errors import BridgeError
from bridge_sandbox import cluster as dev
from bridge_sandbox.provider.server import Simulator
from examples.engines import ENGINES, check_of
from examples.stack import FIRST_BETS, MOST_BETS, PROVIDER, Stack, history_of, say
from examples.truth import Truth

INTERRUPTED = 130


async def show(engine: str, seconds: float | None, directory: Path, cluster: dev.Cluster) -> int:
    """Run an engine beside a live feed for so long, or until Ctrl-C. Returns the exit code."""
    stop = on_signal()
    async with Simulator(PROVIDER) as provider, Stack(cluster, provider, directory, stop) as stack:
        await stack.publish(FIRST_BETS)
        await stack.show(engine, seconds)
    return 0


async def check(engines: list[str], bets: int, directory: Path, cluster: dev.Cluster) -> int:
    """Compare what engines make of so many bets with the truth. Returns the exit code."""
    stop = on_signal()
    async with Simulator(history_of(bets)) as provider, Stack(cluster, provider, directory, stop) as stack:
        provider.stop_publishing()
        truth = await asyncio.to_thread(Truth.of, provider)
        await stack.publish(len(truth.bets))
        for engine in engines:
            began = time.monotonic()
            output = await stack.output(engine)
            if stop.is_set():
                return INTERRUPTED
            rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
            for difference in check_of(engine).differences(rows, truth):
                say(f"error: {engine}: {difference}")
                return 1
            again = len(truth.bets) - len(truth.last)
            say(
                f"{engine}: {len(rows):,} rows of {len(truth.bets):,} settlements, {again:,} of them "
                f"corrections, equal to the truth; {time.monotonic() - began:.0f} s"
            )
    return 0


def on_signal() -> asyncio.Event:
    """Return what Ctrl-C and SIGTERM set."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m examples",
        description="Run an engine beside a live feed on this machine, or check what engines print.",
    )
    parser.add_argument("engine", nargs="+", choices=ENGINES, help="one; with --bets also several")
    parser.add_argument("--seconds", type=float, help="end after so long; by default on Ctrl-C")
    parser.add_argument(
        "--bets", type=int, metavar="N", help="compare the rows of N bets, all settled before, with the truth"
    )
    options = parser.parse_args()
    if options.bets is None and len(options.engine) > 1:
        parser.error("several engines need --bets")
    if options.bets is not None and not 1 <= options.bets <= MOST_BETS:
        parser.error(f"--bets is from 1 to {MOST_BETS}")
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-examples-") as name:
        directory = Path(name)
        try:
            with dev.start(directory, kafka_port=0, registry_port=0, progress=say) as cluster:
                if options.bets is None:
                    code = asyncio.run(show(options.engine[0], options.seconds, directory, cluster))
                else:
                    code = asyncio.run(check(options.engine, options.bets, directory, cluster))
        except BridgeError as error:
            sys.exit(f"error: {error}")
        except KeyboardInterrupt:
            code = INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
