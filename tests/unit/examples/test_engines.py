"""What each engine's folder has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from examples.engines import ENGINES, FOLDER, check_of, command_of


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_has_a_page_and_a_check(engine: str) -> None:
    page = (FOLDER / engine / "README.md").read_text("utf-8")
    assert f"make example ENGINE={engine}" in page
    assert callable(check_of(engine).differences)


@pytest.mark.parametrize("engine", ["flink-sql", "kafkajs", "quix-join"])
def test_an_engine_whose_packages_are_not_installed_says_what_installs_them(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(BridgeError, match=f"`make example ENGINE={engine}`"):
        command_of(engine)
