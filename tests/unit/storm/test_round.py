"""What a round sets, and in which order it ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.config import Settings
from bridge.kafka.topics import declare
from tests.judge import Case, Report
from tests.storm import round as storm
from tests.storm.plan import draw
from tests.storm.round import SMALL


def test_only_what_may_be_compacted_within_a_round_has_an_eager_cleaner() -> None:
    """Elsewhere its settings would do nothing: the bridge keeps bets for days, and dead letters for ever."""
    for topic, settings in SMALL.items():
        config = getattr(declare(Settings()), topic).config
        may_be = config["cleanup.policy"] == "compact" and "min.compaction.lag.ms" not in config
        assert ("min.cleanable.dirty.ratio" in settings) == may_be, topic


async def test_bridges_have_ended_before_they_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What SIGTERM makes them write is judged, too."""
    happened: list[str] = []

    async def close() -> None:
        happened.append("closed")

    def judge(case: Case, _work: Path) -> Report:
        happened.append("judged")
        return Report({}, {}, case.seed)

    def missing(*_: object) -> int:
        happened.append("caught up")
        return 0

    monkeypatch.setattr(storm, "missing", missing)
    monkeypatch.setattr(storm, "judge", judge)
    place: Any = SimpleNamespace(directory=tmp_path)
    scene: Any = SimpleNamespace(bridges={name: SimpleNamespace(close=close) for name in ("a", "b")})
    unused: Any = None
    _, _, report = await storm._Round(draw(7, 60, 100), unused, place)._judged(Case("", "", "", "", 7), scene)
    assert happened == ["caught up", "closed", "closed", "judged"]
    assert report.seed == 7
