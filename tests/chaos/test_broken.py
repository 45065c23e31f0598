"""Bridges with a deliberate fault, each in the drill in which it shows: the judge must find every one.

Results are kept in `.chaos/broken`, so that a campaign that was interrupted goes on; `FRESH=1` starts anew.
`FAULT` chooses one fault by its name. The sound bridge is played in each drill first, and must be clean.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.sandbox import cluster as dev
from tests.broken.campaign import ROOT, found, is_found, kept, write_table
from tests.broken.copies import copied
from tests.broken.fault import SOUND, Fault
from tests.broken.faults import FAULTS

CHOSEN = os.environ.get("FAULT")
SEED = int(os.environ.get("SEED", "1"))
PLAYED = [it for it in FAULTS.values() if CHOSEN in (None, it.name)]
RESULTS = ROOT / ".chaos" / "broken"


@pytest.fixture(scope="module")
def results() -> Iterator[Path]:
    """The directory of the results; at the end the table is written from them."""
    if os.environ.get("FRESH"):
        shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    yield RESULTS
    if CHOSEN is None:
        write_table(RESULTS)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bridge without a fault."""
    return copied(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("drill", dict.fromkeys(it.drill for it in PLAYED))
async def test_broken_sound(
    drill: str, sound: Path, cluster: dev.Cluster, results: Path, tmp_path: Path
) -> None:
    """The judge finds nothing of the sound bridge."""
    file = kept(results, f"sound {drill}")
    if not file.exists():
        report, line = await found(SOUND, drill, sound, cluster, tmp_path, f"s-{file.stem}", SEED)
        print(json.dumps(line), flush=True)
        assert report, str(report)
        file.write_text(json.dumps(line), "utf-8")


@pytest.mark.parametrize("fault", PLAYED, ids=lambda it: it.name)
async def test_broken(fault: Fault, sound: Path, cluster: dev.Cluster, results: Path, tmp_path: Path) -> None:
    """The judge finds the fault."""
    file = kept(results, fault.name)
    if not file.exists():
        report, line = await found(fault, fault.drill, sound, cluster, tmp_path, f"b-{file.stem}", SEED)
        print(json.dumps(line), flush=True)
        assert is_found(line), str(report)
        file.write_text(json.dumps(line), "utf-8")
