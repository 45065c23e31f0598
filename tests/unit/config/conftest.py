"""Settings are read from the environment of the test alone."""

from __future__ import annotations

import os

import pytest

from bridge.config.names import ENV_PREFIX


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all settings from the environment."""
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        monkeypatch.delenv(name)
