"""The units of systemd: valid, hardened, and in agreement with the page, the manifests and what they run."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer

from bridge.cli import app
from bridge.config import Settings, load
from bridge.errors import GapError, LeftOut, Unconvertible
from bridge.observability import health
from bridge.service import systemd_watchdog
from tests.repo.source import ROOT
from tests.repo.test_k8s import FINAL, NEEDS, spec
from tests.tools import lacking, ran

FOLDER = ROOT / "systemd"
RUN, SNAPSHOT = FOLDER / "settlement-bridge.service", FOLDER / "settlement-bridge-snapshot@.service"
TIMERS = sorted(FOLDER.glob("*.timer"))
INSTALL = (ROOT / "docs" / "install.md").read_text("utf-8")
PAGE = INSTALL.partition("\n## With systemd\n")[2].partition("\n## ")[0]
WORST_EXPOSURE = 15
"""Tenths, as `systemd-analyze security` rates; a unit without any protection has 96."""
PROCESSES = {
    "bridge": (RUN, "run"),
    "translations": (SNAPSHOT, "translations"),
    "currencies": (SNAPSHOT, "currencies"),
}
"""Component → its unit, and the command that the unit runs for it."""
each_unit = pytest.mark.parametrize("unit", [RUN, SNAPSHOT], ids=lambda unit: unit.name)
each_process = pytest.mark.parametrize("component", PROCESSES)


def directives(unit: Path) -> dict[str, list[str]]:
    """Directive → its values, in order, of all sections."""
    found = defaultdict(list)
    for name, value in re.findall(r"^(\w+)=(.*)$", unit.read_text("utf-8"), re.MULTILINE):
        found[name].append(value)
    return found


@pytest.fixture
def analyzed(tmp_path: Path) -> Path:
    """The units, with a program that is here instead of the one that is to be installed."""
    if shutil.which("systemd-analyze") is None:
        lacking("there is no systemd here")
    for file in FOLDER.iterdir():
        (tmp_path / file.name).write_text(
            file.read_text("utf-8").replace("/opt/bridge/bin/bridge", sys.executable)
        )
    return tmp_path


def test_systemd_finds_nothing_wrong(analyzed: Path) -> None:
    units = [str(file) for file in sorted(analyzed.iterdir())]
    found = ran("systemd-analyze", "verify", "--man=no", *units)
    assert (found.returncode, found.stderr) == (0, "")


@each_unit
def test_systemd_rates_it_as_well_protected(analyzed: Path, unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", f"--threshold={WORST_EXPOSURE}", "--no-pager"]
    found = ran(*command, analyzed / unit.name)
    assert found.returncode == 0, found.stdout


@each_process
def test_it_runs_a_command_of_the_bridge(component: str) -> None:
    unit, instance = PROCESSES[component]
    [command] = directives(unit)["ExecStart"]
    program, name, *options = command.replace("%i", instance).split()
    assert program == "/opt/bridge/bin/bridge"
    group: Any = typer.main.get_command(app)
    assert options == ["--config", "/etc/settlement-bridge/bridge.toml"]
    group.commands[name].make_context(name, [options[0], str(ROOT / "bridge.example.toml")])


@pytest.fixture
def settings(component: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Those of the page's file and of the unit."""
    for name in [name for name in os.environ if name.startswith("BRIDGE_")]:
        monkeypatch.delenv(name)
    for variable in directives(PROCESSES[component][0])["Environment"]:
        name, _, value = variable.partition("=")
        monkeypatch.setenv(name, value)
    [text] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "bridge.toml"
    file.write_text(text)
    return load(file)


@each_process
def test_nothing_is_missing_of_what_its_command_needs(component: str, settings: Settings) -> None:
    assert settings.missing(*NEEDS[component]) == []


@each_unit
def test_secrets_are_credentials_that_the_page_installs(unit: Path) -> None:
    given = directives(unit)
    credentials = dict(value.split(":") for value in given["LoadCredential"])
    variables = dict(value.split("=") for value in given["Environment"])
    files = [value for name, value in variables.items() if name.endswith("_FILE")]
    assert sorted(files) == sorted(f"%d/{name}" for name in credentials)
    installed = set(re.findall(r"^install -m 600 \S+ (\S+)$", PAGE, re.MULTILINE))
    assert set(credentials.values()) <= installed


def test_the_shell_of_the_runbook_has_what_the_units_have() -> None:
    runbook = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    section = runbook.partition("\n## A shell\n")[2].partition("\n## ")[0]
    exported = dict(re.findall(r"^export (\w+)=(\S+)$", section, re.MULTILINE))
    given: dict[str, str] = {}
    for unit in (RUN, SNAPSHOT):
        places = dict(value.split(":") for value in directives(unit)["LoadCredential"])
        for name, value in (variable.split("=") for variable in directives(unit)["Environment"]):
            given[name] = places[value.removeprefix("%d/")] if value.startswith("%d/") else value
    assert exported == given


def test_it_is_not_started_again_where_a_person_has_to_act() -> None:
    [codes] = directives(RUN)["RestartPreventExitStatus"]
    final = {error.exit_code for error in (*FINAL, GapError, Unconvertible)} - {LeftOut.exit_code}
    assert {int(code) for code in codes.split()} == final


def test_a_bridge_that_hangs_is_ended_and_started_again() -> None:
    given = directives(RUN)
    assert given["NotifyAccess"] == ["main"]
    assert "AF_UNIX" in given["RestrictAddressFamilies"][0]
    assert given["Restart"] == ["on-failure"]
    assert given["LimitCORE"] == ["0"], "a core would keep the secrets on the disk"
    # A pause of the event loop that the bridge itself forgives must not end in a restart.
    [seconds] = given["WatchdogSec"]
    assert int(seconds) * (1 - 1 / systemd_watchdog.BEATS) > health.LOOP_SECONDS


def test_it_has_the_bounds_of_the_manifests() -> None:
    for component, (unit, _) in PROCESSES.items():
        given, pod = directives(unit), spec(component)
        assert given["TimeoutStopSec"] == [str(pod["terminationGracePeriodSeconds"])]
        memory = pod["containers"][0]["resources"]["limits"]["memory"]
        assert given["MemoryMax"] == [memory.removesuffix("i")]


def test_the_timers_start_the_jobs() -> None:
    units = {re.sub(r".*-(\w+)\.timer", r"\1", timer.name): directives(timer)["Unit"] for timer in TIMERS}
    assert units == {
        job: [f"settlement-bridge-snapshot@{job}.service"] for job in ("translations", "currencies")
    }


PYTHON = """\
#!/bin/sh
set -e
case "$*" in
    "-m pip wheel --no-deps --wheel-dir dist .")
        mkdir -p dist build
        touch "build/$RELEASE"
        touch "dist/settlement_bridge-$(ls build | tr -d '\\n').whl" ;;
    "-m venv "*)
        mkdir -p "$3/bin" && cp "$STAND_INS/pip" "$3/bin/pip" ;;
    *) echo "not known here: python3 $*" >&2; exit 1 ;;
esac
"""
PIP = """\
#!/bin/sh
set -e
case "$*" in
    "install --require-hashes -r requirements/runtime.txt") ;;
    "install --no-deps dist/"*)
        test $# = 3  # one wheel
        test ! -e "$(dirname "$0")/bridge"  # what is installed stays
        printf '#!/bin/sh\\necho %s' "$3" > "$(dirname "$0")/bridge" && chmod +x "$(dirname "$0")/bridge" ;;
    *) echo "not known here: pip $*" >&2; exit 1 ;;
esac
"""
GIT = """\
#!/bin/sh
test "$*" = "describe --tags --always" && echo "$RELEASE"
"""


def test_the_commands_that_install_also_upgrade(tmp_path: Path) -> None:
    section = INSTALL.partition("\n## A wheel\n")[2].partition("\n## ")[0]
    commands = re.findall(r"```\n(.*?)```", section, re.DOTALL)[0].replace("/opt/", f"{tmp_path}/opt/")
    (tmp_path / "opt").mkdir()
    stand_ins = tmp_path / "stand-ins"
    stand_ins.mkdir()
    for name, script in {"python3": PYTHON, "pip": PIP, "git": GIT}.items():
        (stand_ins / name).write_text(script)
        (stand_ins / name).chmod(0o755)
    given = {"STAND_INS": str(stand_ins), "PATH": f"{stand_ins}{os.pathsep}{os.environ['PATH']}"}
    for release in ("v1", "v2"):
        environment = os.environ | given | {"RELEASE": release}
        done = ran("bash", "-euo", "pipefail", "-c", commands, cwd=tmp_path, env=environment)
        assert (done.returncode, done.stdout) == (0, f"dist/settlement_bridge-{release}.whl\n"), done.stderr
    assert len(list(tmp_path.glob("opt/*/bin/bridge"))) == 3
    assert (tmp_path / "opt" / "bridge").is_symlink()
