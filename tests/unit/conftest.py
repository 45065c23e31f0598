"""What all unit tests begin with."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quick_clients(one_authority: None) -> None:
    """Each client of HTTP reads all certificates that it trusts."""
