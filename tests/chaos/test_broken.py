"""Bridges with a deliberate fault, each in the drill in which it shows: the judge must find every one.

Results are kept in `.chaos/broken`, so that a campaign that was interrupted goes on; `FRESH=1` starts anew.
`FAULT` chooses those with this text in their name. The sound bridge is played in each drill first, and must
be clean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge_sandbox import cluster as dev
from tests.broken.campaign import found, is_clean, is_found, slug, write_summary
from tests.broken.fault import SOUND, Fault
from tests.broken.faults import FAULTS
from tests.chaos.rounds import Rounds

CHOSEN = os.environ.get("FAULT", "")
SEED = int(os.environ.get("SEED", "1"))
PLAYED = [it for it in FAULTS.values() if CHOSEN in it.name]


@pytest.fixture(scope="module")
def rounds() -> Iterator[Rounds]:
    """The results; at the end the table is written from them."""
    results = Rounds("broken", {"seed": SEED})
    yield results
    write_summary(results)


@pytest.mark.parametrize("drill", dict.fromkeys(it.drill for it in PLAYED))
async def test_broken_sound(drill: str, cluster: dev.Cluster, rounds: Rounds, tmp_path: Path) -> None:
    name = slug(f"sound {drill}")
    if (line := rounds.result(name)) is None:
        rounds.begin(name)
        line = dict(await found(SOUND, drill, cluster, tmp_path, name, seed=SEED))
        rounds.finish(name, line)
    print(json.dumps(line), flush=True)
    assert is_clean(line)


@pytest.mark.parametrize("fault", PLAYED, ids=lambda it: it.name)
async def test_broken(fault: Fault, cluster: dev.Cluster, rounds: Rounds, tmp_path: Path) -> None:
    name = slug(fault.name)
    if (line := rounds.result(name)) is None:
        rounds.begin(name)
        line = dict(await found(fault, fault.drill, cluster, tmp_path, f"b-{name}", seed=SEED))
        rounds.finish(name, line)
    print(json.dumps(line), flush=True)
    assert is_found(fault, line)
