"""The judge finds three broken bridges, and nothing of the sound one in the same drill."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge_sandbox import cluster as dev
from tests.broken.campaign import ROUNDS, found, is_clean, is_found
from tests.broken.copies import copied
from tests.broken.fault import SOUND, Fault
from tests.broken.faults import FAULTS

pytestmark = pytest.mark.xdist_group("broken")
"""One sound copy is made for all of them."""
NAMES = ("last record of a batch lost", "integer through a double", "dead letter truncated")
DRILL = "replay"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bridge without a fault."""
    return copied(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("fault", [SOUND, *map(FAULTS.__getitem__, NAMES)], ids=lambda it: it.name)
async def test_judge_finds_it(fault: Fault, sound: Path, cluster: dev.Cluster, tmp_path: Path) -> None:
    """Each of them, as what it is."""
    prefix = f"broken-{''.join(c for c in fault.name if c.isalpha())}"
    rounds = ROUNDS if fault.patches else 1
    line = await found(fault, DRILL, sound, cluster, tmp_path, prefix, rounds=rounds)
    assert is_found(fault, line) if fault.patches else is_clean(line), line
