"""The judge on topics of two sizes, as a process: its peak memory and its rate."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Place, finished, until
from tests.processes import start_cold

RECORDS = int(os.environ.get("RECORDS", "1000000"))
FEWER = min(200_000, RECORDS // 2)
"""Still more than the readers hold at a time."""
SEED = int(os.environ.get("SEED", "1"))
HISTORY_SECONDS = 60 * 3600
START_SECONDS = HISTORY_SECONDS + 300
"""Before the first message when the bridge begins, and within the memory of three days."""
PATIENCE = 8 * 3600.0
MOST_MEGABYTES = 256
MORE_MEGABYTES = 16
"""By at most so much the peak may be higher with all records than with fewer."""


async def judged(place: Place, control_url: str, work: Path) -> tuple[dict[str, Any], float]:
    """The report of `python -m tests.judge`, and the peak memory of the process in MB."""
    options = {
        "--bootstrap-servers": place.cluster.bootstrap_servers,
        "--registry-url": place.cluster.registry_url,
        "--prefix": place.prefix,
        "--control-url": control_url,
        "--start-age": str(START_SECONDS),
        "--seed": str(SEED),
        "--work": str(work),
    }
    pairs = (it for pair in options.items() for it in pair)
    return await finished(place._start(("tests.judge", "--json", *pairs), {}), PATIENCE)


async def judged_with(records: int, place: Place) -> dict[str, Any]:
    """Have a bridge publish about so many records and judge them. Returns the figures."""
    settings = SimulatorSettings(
        port=0, control_port=0, seed=SEED, rate=records / HISTORY_SECONDS, history_seconds=HISTORY_SECONDS
    )
    async with Simulator(settings) as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url, FEED__START=f"{START_SECONDS}s")
        await until(lambda: "Live" in bridge.states(), "live", PATIENCE)
        feed.stop_publishing()
        await asyncio.sleep(10)
        assert await bridge.end() == 0
        work = place.directory / "judge"
        work.mkdir()
        began = time.monotonic()
        report, megabytes = await judged(place, feed.control_url or "", work)
        took = time.monotonic() - began
    return {
        "campaign": "judge",
        **report,
        "peak_megabytes": round(megabytes),
        "took_seconds": round(took),
        "records_a_second": round(records / took),
    }


async def test_judge(place: Place, tmp_path: Path) -> None:
    peaks = []
    for records in (FEWER, RECORDS):
        directory = tmp_path / f"{records}"
        directory.mkdir()
        of_this = replace(place, prefix=f"{place.prefix}-{records}", directory=directory, start=start_cold)
        figures = await judged_with(records, of_this)
        print(json.dumps(figures), flush=True)
        assert figures["clean"]
        assert figures["figures"]["records"] > 0.9 * records
        peaks.append(figures["peak_megabytes"])
    assert peaks[1] < MOST_MEGABYTES
    assert peaks[1] - peaks[0] < MORE_MEGABYTES
