"""Files of settled bets."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridge.errors import BridgeError
from bridge.inspection.export import Export
from bridge.inspection.replay import Replay
from tests.unit.inspection.test_formats import bet


@pytest.fixture
def no_room() -> Iterator[None]:
    """Files have a few bytes at most."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("no_room")
def test_a_full_disk_is_reported_with_the_file(tmp_path: Path) -> None:
    class OneBet(SimpleNamespace):
        def __iter__(self) -> Iterator[Any]:
            yield bet()

    replay = cast(Replay, OneBet(ends=[1], offsets={0: 0}))
    path = tmp_path / "bets.json"
    with pytest.raises(BridgeError) as raised, closing(Export(path, "json", {})) as export:
        export.run(replay)
    assert str(raised.value) == f"{path} cannot be written: File too large. Repeat the command to resume."
    assert list(tmp_path.iterdir()) == []
