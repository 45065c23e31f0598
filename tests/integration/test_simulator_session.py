"""The session that the documentation begins with, as it is printed there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bridge_sandbox.cluster.ports import free_port

pytestmark = pytest.mark.long
SECTION = "## A first session"
MARK = "@@@"
"""What the shell prints between the outputs of two commands."""


def session() -> list[tuple[str, str]]:
    """The commands of the section with what they print."""
    document = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text("utf-8")
    section = document.partition(SECTION)[2].partition("\n## ")[0]
    shown = "".join(re.findall(r"```console\n(.*?)```", section, re.DOTALL))
    parts = [part.partition("\n") for part in re.split(r"^\$ ", shown, flags=re.MULTILINE)[1:]]
    return [(command, output.strip()) for command, _, output in parts]


def pattern(printed: str) -> str:
    """What is left out may be anything, and another day has other numbers."""
    pieces = [re.sub(r"\d{4,}(\\\.\d+)?", r"\\d+(\\.\\d+)?", re.escape(p)) for p in printed.split("…")]
    return ".*".join(pieces)


def test_the_session_goes_as_it_is_printed(tmp_path: Path) -> None:
    ports = {"8900": str(first := free_port()), "8901": str(free_port([first]))}
    (start, addresses), *steps, (end, nothing) = session()
    assert (start[:16], start[-2:], end, nothing) == ("bridge simulate ", " &", "kill %1", "")
    for documented, free in ports.items():
        start = start.replace(f":{documented}", f":{free}").replace(f"port {documented}", f"port {free}")
        addresses = addresses.replace(documented, free)
        steps = [(command.replace(documented, free), output) for command, output in steps]
    arguments = start.removesuffix(" &").replace("bridge", "-m bridge", 1).split()
    command = [sys.executable, *arguments, "--port", ports["8900"]]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as provider:
        try:
            assert provider.stdout is not None
            said = [provider.stdout.readline().strip() for _ in range(5)]
            script = f"\necho; echo {MARK}\n".join(command.replace("curl", "curl -s") for command, _ in steps)
            shell = subprocess.run(
                ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
            )
        finally:
            provider.terminate()
    assert said == addresses.replace("/home/me", str(tmp_path)).splitlines()
    outputs = [output.strip() for output in shell.stdout.split(MARK)]
    for (command_line, printed), output in zip(steps, outputs, strict=True):
        assert re.fullmatch(pattern(printed), output), f"{command_line}\n{output}"
    assert provider.returncode == 0
