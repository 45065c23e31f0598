"""The faults of the broken bridges fit the bridge as it is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broken.copies import START
from tests.broken.drills import DRILLS
from tests.broken.fault import Fault, Patch, StaleError
from tests.broken.faults import FAULTS
from tests.judge import Anomaly
from tests.repo.source import PACKAGE, ROOT

LEAST = 40


def patched(fault: Fault) -> dict[str, str]:
    """The patched files of a fault. Raises StaleError."""
    found: dict[str, str] = {}
    for patch in fault.patches:
        source = found.get(patch.file) or (PACKAGE / patch.file).read_text("utf-8")
        found[patch.file] = patch.applied(source)
    return found


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda it: it.name)
def test_a_fault_fits(fault: Fault) -> None:
    """Each patch applies exactly once, and what comes out is Python."""
    files = patched(fault)
    assert files
    for source in files.values():
        ast.parse(source)
    assert fault.drill in DRILLS
    assert fault.expected
    assert fault.shown_by.keys() <= set(fault.expected)
    # A feed without any checkpoint does not balance either.
    assert Anomaly.COUNTERS not in fault.expected or Anomaly.COUNTERS in fault.shown_by


def test_there_are_enough() -> None:
    """All of them differ, by more than their name."""
    assert len(FAULTS) >= LEAST
    assert len({tuple(sorted(patched(it).items())) for it in FAULTS.values()}) == len(FAULTS)


@pytest.mark.parametrize("old", ["nowhere to be found", "import"])
def test_a_patch_that_does_not_apply_once_is_refused(old: str) -> None:
    """The bridge has changed, and the fault with it."""
    with pytest.raises(StaleError, match=r"feed/position\.py has"):
        Patch("feed/position.py", old, "").applied((PACKAGE / "feed/position.py").read_text("utf-8"))


def test_a_process_with_another_module_than_the_patched_one_does_not_start(tmp_path: Path) -> None:
    """Such as a compiled one, or one of the checkout."""
    ran = subprocess.run(
        [sys.executable, str(START), str(tmp_path), "bridge.feed.position", "", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "is not the module of the copy" in ran.stderr
