"""What all tests of Kafka's clients begin with."""

from __future__ import annotations

import pytest

from bridge.kafka.patience import patience


@pytest.fixture(autouse=True)
def usual_time_outs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the process has waited for before."""
    monkeypatch.setattr(patience, "factor", 1.0)
