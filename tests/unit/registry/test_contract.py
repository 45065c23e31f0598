"""The registry in memory keeps what a real one keeps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.registry import RegistryContract
from tests.fake_registry import FakeRegistry, served


class TestFake(RegistryContract):
    """The suite."""

    @pytest.fixture
    def url(self) -> Iterator[str]:
        with served(FakeRegistry()) as url:
            yield url

    @pytest.fixture
    def prefix(self) -> str:
        return "p"
