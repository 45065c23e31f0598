"""Storms on three real brokers and two or three bridges: faults of every kind at random from a seed.

Each round has a directory, `.chaos/storm/round-SEED`. Once the same code has finished all thirty, their sums
are in benchmarks/campaigns.md.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from benchmarks import report
from tests.chaos.rounds import ROOT, Rounds
from tests.storm.kinds import FAULTS
from tests.storm.plan import draw
from tests.storm.round import run, shortfalls

FULL = 30
ROUNDS = int(os.environ.get("ROUNDS", FULL))
FULL_SECONDS, FULL_RATE = 300, 200
SECONDS = float(os.environ.get("SECONDS", FULL_SECONDS))
SEED = int(os.environ.get("SEED", "1"))
RATE = float(os.environ.get("RATE", FULL_RATE))
KINDS = sorted(filter(None, os.environ.get("FAULTS", "").split(","))) or sorted(FAULTS)
PAGE = ROOT / "benchmarks" / "campaigns.md"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_storm(seed: int) -> None:
    rounds, name = Rounds("storm", {"seconds": SECONDS, "rate": RATE, "faults": KINDS}), f"round-{seed}"
    if (result := rounds.result(name)) is None:
        result = run(draw(seed, SECONDS, RATE, KINDS), rounds.begin(name))
        rounds.finish(name, result)
    print(json.dumps(result), flush=True)
    assert (result["anomalies"], result["ended_by_themselves"]) == ({}, [])
    assert shortfalls(result) == []
    results = [found for seed in range(1, FULL + 1) if (found := rounds.result(f"round-{seed}"))]
    if sorted(FAULTS) == KINDS and SECONDS >= FULL_SECONDS and RATE >= FULL_RATE and len(results) == FULL:
        report.put(PAGE, "storm", summary(results))


def summary(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the sums of these rounds."""
    figures = sum((Counter(result["figures"]) for result in results), Counter[str]())
    played, planned = (sum(sum(it[name].values()) for it in results) for name in ("played", "faults"))
    least = min(result["figures"]["published"] for result in results)
    return (
        f"{len(results)} storms, {figures['published']:,} messages ({least:,} in the smallest), "
        f"{played:,} of {planned:,} faults have hit something. {results[-1]['machine']}\n"
    )
