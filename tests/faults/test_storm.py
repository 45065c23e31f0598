"""A storm of a minute on three brokers, as `make chaos CAMPAIGN=storm` has them for hours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.storm.faults import FAULTS
from tests.storm.plan import draw
from tests.storm.round import run, shortfalls

SEED = 86
DEAR = {"registry-down", "restart-broker", "rolling-update"}
"""What starts many processes, which takes the other tests their time."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
@pytest.mark.skipif(sys.platform != "linux", reason="the links need the addresses of 127.0.0.0/8")
def test_a_storm(tmp_path: Path) -> None:
    """The judge finds nothing, and no bridge has ended by itself."""
    result = run(draw(SEED, 60, 100, FAULTS.keys() - DEAR), tmp_path)
    assert (result["anomalies"], result["ended_by_themselves"]) == ({}, []), result
    assert shortfalls(result) == []
