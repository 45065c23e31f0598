"""The real registry answers as its profile, which the others' are written like."""

from __future__ import annotations

import pytest

from tests.contracts.registry import RegistryContract
from tests.fake_registry import APICURIO, Profile
from tests.harness import Place


class TestReal(RegistryContract):
    """The suite."""

    @pytest.fixture
    def profile(self) -> Profile:
        return APICURIO

    @pytest.fixture
    def url(self, place: Place) -> str:
        return place.cluster.registry_url

    @pytest.fixture
    def prefix(self, place: Place) -> str:
        return place.prefix
