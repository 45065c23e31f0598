"""A storm of a minute on three brokers, as `make chaos CAMPAIGN=storm` has them for hours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.storm.kinds import FAULTS
from tests.storm.plan import draw
from tests.storm.round import run, shortfalls

SEED = 86
DEAR = {"registry-down", "restart-broker", "rolling-update", "quota", "hung-log"}
"""What starts many processes or takes long, which takes the other tests their time."""
LASTING = {"topic-anew", "partitions-added", "lagging-mirror", "id-given-away"}
"""What is not over when it ends, and is for storms of five minutes."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of `list_groups`, for which see `election.look`
@pytest.mark.skipif(sys.platform != "linux", reason="the links need the addresses of 127.0.0.0/8")
def test_a_storm(tmp_path: Path) -> None:
    result = run(draw(SEED, 60, 100, FAULTS.keys() - DEAR - LASTING), tmp_path)
    assert (result["anomalies"], result["ended_by_themselves"]) == ({}, []), result
    assert shortfalls(result) == []
