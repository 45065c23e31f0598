"""The judge finds three broken bridges, and nothing of the sound one in the same drill."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge_sandbox import cluster as dev
from tests.broken.campaign import ROUNDS, found, is_clean, is_found
from tests.broken.fault import SOUND, Fault
from tests.broken.faults import FAULTS

NAMES = (
    "a batch is sealed without its last record",
    "amounts above 2^53 lose their last digits",
    "dead letters are cut to 20 bytes",
)
DRILL = "replay"


@pytest.mark.parametrize("fault", [SOUND, *map(FAULTS.__getitem__, NAMES)], ids=lambda it: it.name)
async def test_judge_finds_it(fault: Fault, cluster: dev.Cluster, tmp_path: Path) -> None:
    prefix = f"broken-{''.join(c for c in fault.name if c.isalpha())}"
    rounds = 1 if fault is SOUND else ROUNDS
    line = await found(fault, DRILL, cluster, tmp_path, prefix, rounds=rounds)
    assert is_clean(line) if fault is SOUND else is_found(fault, line), line
