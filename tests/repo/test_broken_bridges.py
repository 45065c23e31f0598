"""The faults of the broken bridges fit the bridge as it is."""

from __future__ import annotations

import os
import sys

from tests.broken.drills import DRILLS, PLAIN
from tests.broken.fault import SOUND
from tests.broken.faults import FAULTS
from tests.judge import Anomaly
from tests.tools import ran

LEAST = 60
CHECK = """
from bridge.kafka.partitioner import partition_of
from bridge.service import pipeline
from tests.broken.fault import Fault
from tests.broken.faults import FAULTS

for fault in FAULTS.values():
    assert not fault.misfits(), fault.misfits()
for by in (lambda of, key: 0, lambda of, key, number: 0, lambda key, partitions: 0):
    assert Fault("", {}, "", {partition_of: by}).misfits()
FAULTS["keys are hashed by CRC32, as librdkafka does by default"].apply()
assert pipeline.partition_of(b"123456789", 7) == 0xCBF43926 % 7
"""


def test_there_are_enough_faults_and_each_can_be_found() -> None:
    assert len(FAULTS) >= LEAST
    assert SOUND.name not in FAULTS
    for name, fault in FAULTS.items():
        assert fault.rules, name
        assert fault.drill in DRILLS, name
        assert fault.expected, name
        # A feed without any checkpoint does not balance either.
        assert fault.expected.get(Anomaly.COUNTERS) != "", name


def test_rules_can_be_called_like_what_they_replace() -> None:
    done = ran(sys.executable, "-c", CHECK, env=os.environ | PLAIN)
    assert done.returncode == 0, done.stderr


def test_a_compiled_bridge_is_not_started() -> None:
    done = ran(sys.executable, "-m", "tests.broken.start", SOUND.name, "", "--version")
    assert "cannot be replaced" in done.stderr
