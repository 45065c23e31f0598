"""Programs that some tests need, and not every machine has."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skip the test. Fail it in CI, which has all of them: else a check would do nothing, and nobody knew."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)
