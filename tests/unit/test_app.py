"""What `bridge run` refuses to start with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import PATIENCE

ELSEWHERE = {
    "BRIDGE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "BRIDGE_REGISTRY__URL": "http://127.0.0.1:1",
    "BRIDGE_WEB__PORT": "0",
}
"""Nobody is there: a bridge that starts waits for them for ever."""
BEARER = {"FEED__BASE_URL": "http://127.0.0.1:1", "FEED__AUTH": "bearer"}


@pytest.mark.parametrize(
    ("settings", "variable", "file", "told"),
    [
        (BEARER, "FEED__AUTH_VALUE_FILE", None, "cannot read"),
        (BEARER, "FEED__AUTH_VALUE_FILE", "", "is empty"),
        ({"FEED__BASE_URL": "https://127.0.0.1:1"}, "FEED__CA_FILE", None, "cannot use"),
    ],
)
def test_what_the_dial_will_need_is_looked_at_before_anything_else(
    settings: dict[str, str], variable: str, file: str | None, told: str, tmp_path: Path
) -> None:
    """Otherwise a standby would pass for ready, and fail when it is needed."""
    path = tmp_path / "file"
    if file is not None:
        path.write_text(file)
    given = {**settings, variable: str(path)}
    done = subprocess.run(
        [sys.executable, "-m", "bridge", "run"],
        env=os.environ | ELSEWHERE | {f"BRIDGE_{name}": value for name, value in given.items()},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert f"BRIDGE_{variable.removesuffix('_FILE')}" in done.stderr
    assert told in done.stderr
