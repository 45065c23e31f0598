"""What all unit tests begin with."""

from __future__ import annotations

import pytest

from bridge.kafka import outage


@pytest.fixture(autouse=True)
def quick_clients(one_authority: None) -> None:
    """Each client of HTTP reads all certificates that it trusts."""


@pytest.fixture(autouse=True)
def no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of tests before may still report theirs."""
    monkeypatch.setattr(outage, "_OUTAGES", {})
