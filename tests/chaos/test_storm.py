"""Storms on three real brokers and two or three bridges: faults of every kind at random from a seed.

Each round has a directory, `.chaos/storm/round-SEED`. One that has a result is not run again.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.storm.plan import draw
from tests.storm.round import run

ROUNDS = int(os.environ.get("ROUNDS", "30"))
SECONDS = float(os.environ.get("SECONDS", "300"))
SEED = int(os.environ.get("SEED", "1"))
RATE = float(os.environ.get("RATE", "200"))
FRESH = bool(os.environ.get("FRESH"))
CAMPAIGN = Path(__file__).parents[2] / ".chaos" / "storm"


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_storm(seed: int) -> None:
    """The judge finds nothing, and no bridge has ended by itself."""
    directory = CAMPAIGN / f"round-{seed}"
    result = directory / "result.json"
    if FRESH or not result.is_file():
        shutil.rmtree(directory, ignore_errors=True)
        run(draw(seed, SECONDS, RATE), directory)
    found = json.loads(result.read_text())
    print(json.dumps(found), flush=True)
    assert (found["anomalies"], found["ended_by_themselves"]) == ({}, [])
