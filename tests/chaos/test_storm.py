"""Storms on three real brokers and two or three bridges: faults of every kind at random from a seed.

Each round has a directory, `.chaos/storm/round-SEED`, and a row in docs/reliability.md if it was long enough.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from benchmarks import report
from tests.chaos.rounds import ROOT, Rounds
from tests.storm.plan import draw
from tests.storm.round import run

ROUNDS = int(os.environ.get("ROUNDS", "30"))
FULL_SECONDS, FULL_RATE = 300, 200
SECONDS = float(os.environ.get("SECONDS", FULL_SECONDS))
SEED = int(os.environ.get("SEED", "1"))
RATE = float(os.environ.get("RATE", FULL_RATE))
PLAYED = 0.6
"""The least share of the planned faults that must hit something: what is down already cannot be hit again.
Nine of ten do in a full round; in a short one the share varies more."""
DUE = 0.5
"""The least share of the bets of an undisturbed round that must be due: `forget` takes some away."""
PAGE = ROOT / "docs" / "reliability.md"
HEAD = ("storm", "on", "bridges", "faults", "messages", "bets", "dead letters", "gaps", "attempts", "found")


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_storm(seed: int) -> None:
    """The judge finds nothing, and no bridge has ended by itself."""
    rounds, name = Rounds("storm", {"seconds": SECONDS, "rate": RATE}), f"round-{seed}"
    if (result := rounds.result(name)) is None:
        result = run(draw(seed, SECONDS, RATE), rounds.begin(name))
        rounds.finish(name, result)
        if SECONDS >= FULL_SECONDS and RATE >= FULL_RATE:
            report.put(PAGE, "storm", table(PAGE.read_text("utf-8"), result))
    print(json.dumps(result), flush=True)
    assert (result["anomalies"], result["ended_by_themselves"]) == ({}, [])
    assert shortfalls(result) == []


def shortfalls(result: Mapping[str, Any]) -> list[str]:
    """Return what makes a round too calm to prove anything."""
    planned, played = (sum(result[name].values()) for name in ("faults", "played"))
    figures = {"faults": played, **result["figures"]}
    least = {
        "faults": PLAYED * planned,
        "bets": DUE * result["rate"] * result["seconds"],
        "attempts": 2,
        "dead letters": 1,
    }
    return [f"{figures[name]} {name}, fewer than {it:g}" for name, it in least.items() if figures[name] < it]


def table(page: str, result: Mapping[str, Any]) -> str:
    """Return the table of the page with the row of a round, in place of an earlier one of its seed."""
    rows = [line.strip("| ").split(" | ") for line in report.content(page, "storm").splitlines()]
    found = {int(row[0]): row for row in rows if row[0].isdigit()}
    found[result["seed"]] = _row(result)
    return report.table(HEAD, [found[seed] for seed in sorted(found)])


def _row(result: Mapping[str, Any]) -> list[str]:
    figures = result["figures"]
    return [
        f"{result['seed']}",
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"{result['bridges']}",
        f"{sum(result['played'].values())} of {sum(result['faults'].values())}",
        *(f"{figures[name]:,}" for name in ("published", "bets", "dead letters", "gaps", "attempts")),
        ", ".join([*result["anomalies"], *result["ended_by_themselves"]]) or "nothing",
    ]
