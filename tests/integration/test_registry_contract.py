"""What the tests of the registry's client rely on, of a real registry."""

from __future__ import annotations

import pytest

from tests.contracts.registry import RegistryContract
from tests.harness import Place


class TestReal(RegistryContract):
    """The suite."""

    @pytest.fixture
    def url(self, place: Place) -> str:
        return place.cluster.registry_url

    @pytest.fixture
    def prefix(self, place: Place) -> str:
        return place.prefix
