"""What the docstrings of `bridge.reader` and docs/reading.md show of reading is run, on a real Kafka."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import bridge.reader
from bridge_sandbox.cluster import Cluster
from tests.bets import BARE_BET
from tests.harness import PATIENCE, Place
from tests.integration.test_exports import NOW, Written, item

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reading.md").read_text("utf-8")
RUNNER = """
import builtins, sys

lines, show = 0, print


def print_(*values, **options):
    global lines
    show(*values, **options)
    lines += 1
    if lines == 2:  # what reads for ever is stopped as by Ctrl-C
        raise KeyboardInterrupt


builtins.print = print_
try:
    exec(compile(sys.stdin.read(), "documented", "exec"), {"__name__": "documented"})
except KeyboardInterrupt:
    pass
"""


def documented() -> dict[str, str]:
    """The Python that is shown, by its place. On the page, what goes on from an earlier block is with it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    batches = [block for block in blocks if "read_batches" in block]
    first, file, *others = [block for block in blocks if block not in batches]
    found = {"reading.md, with the bridge": first, "reading.md, with a file": file}
    found |= {f"reading.md, batches {number}": block for number, block in enumerate(batches)}
    found["reading.md, without it"] = "\n".join(others)
    for module in (bridge.reader, *map(_module, pkgutil.iter_modules(bridge.reader.__path__))):
        things = {module.__name__: module} | {
            f"{module.__name__}.{name}": thing for name, thing in vars(module).items() if callable(thing)
        }
        for name, thing in things.items():
            blocks = re.findall(r"(?:^    (?:from|import) .*\n(?:(?:    .*)?\n)*)", _doc(thing), re.MULTILINE)
            for number, block in enumerate(blocks):
                found[f"{name}{f' {number}' if number else ''}"] = textwrap.dedent(block)
    return found


SHOWN = {
    "reading.md, batches 0": [BARE_BET["betSettlement"], " 3"],
    "reading.md, batches 1": ["sportId", " 11 ", " 3 "],
    "reading.md, batches 2": [BARE_BET["betSettlement"], " 3 "],
}
"""What the examples of batches print of three bets with an item each."""


def _module(found: pkgutil.ModuleInfo) -> Any:
    return importlib.import_module(f"bridge.reader.{found.name}")


def _doc(thing: Any) -> str:
    return f"{getattr(thing, '__doc__', None) or ''}\n"


DOCUMENTED = documented()


def test_the_examples_are_found() -> None:
    assert {"reading.md, with the bridge", "reading.md, without it", "bridge.reader"} <= {*DOCUMENTED}


@pytest.fixture(scope="module")
def bets(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Three bets with an item each, a name of theirs, and an empty dead letter."""
    place = Place(cluster, "documented", tmp_path_factory.mktemp("documented"))
    written = Written(place)
    for number in range(3):
        written.bet(f"bet-{number}", NOW + number, selections=[item(11, 5)])
    names = {
        "kind": "selection",
        "id": item(11, 5)["selectionId"],
        "translations": {"en": "Home", "sv": "Hemma"},
        "snapshotId": "one",
    }
    missing = ("eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId")
    value = written.codecs["translation"].encode(names | dict.fromkeys(missing))
    written.produce(written.topics.translations.name, f"selection:{names['id']}", value)
    written.produce(written.topics.deadletters.name, "letter", b"", headers=[("reason", "why")])
    written.flush()
    return place


@pytest.mark.parametrize("name", DOCUMENTED)
def test_an_example_runs_and_prints(name: str, bets: Place, tmp_path: Path) -> None:
    (tmp_path / "bridge.toml").touch()
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=DOCUMENTED[name].replace('"settlement.', f'"{bets.prefix}.'),
        env={**os.environ, **bets.environment(), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    if "batches" in name:
        assert all(shown in ran.stdout for shown in SHOWN[name]), ran.stdout
        return
    assert ran.stdout.startswith(("bet-", '{"key": "bet-'))
    assert len(ran.stdout.splitlines()) >= 2
    if "without" in name:
        assert "Hemma" in ran.stdout


KCAT = shutil.which("kcat")


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed: what reading.md shows of it is not run")
def test_what_is_shown_of_kcat_runs(bets: Place) -> None:
    version = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    setup = next(line for line in PAGE.splitlines() if line.startswith("kafka="))
    lines = [line for line in PAGE.splitlines() if line.startswith("kcat -")]
    assert len(lines) > 4
    for line in lines:
        if "avro" in line and "Avro" not in version:
            continue
        script = f"{setup}\n{line}".replace("settlement.", f"{bets.prefix}.")
        ran = subprocess.run(
            ["bash", "-c", script],
            env={**os.environ, **bets.environment(), "BET": "bet-1", "SINCE": str(NOW)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        shown = ran.stdout.splitlines()
        if "grep" in line:
            assert [row.split()[-1] for row in shown] == ["bet-1"]
        elif "avro" in line:
            assert {json.loads(row)["betId"] for row in shown} == {"bet-0", "bet-1", "bet-2"}
        elif "s@" in line:
            assert sorted(row.split()[-1] for row in shown) == ["bet-0", "bet-1", "bet-2"]
        else:
            assert shown
