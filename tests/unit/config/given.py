"""Settings of a test from a file or the environment, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config import load
from bridge.errors import SettingsError


def toml(tmp_path: Path, text: str, name: str = "bridge") -> Path:
    file = tmp_path / f"{name}.toml"
    file.write_text(text)
    return file


def variables(monkeypatch: pytest.MonkeyPatch, **given: str) -> None:
    """Have these settings in the environment, by their names without the prefix."""
    for name, value in given.items():
        monkeypatch.setenv(f"BRIDGE_{name}", value)


def complaint(file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(file)
    return str(caught.value)
