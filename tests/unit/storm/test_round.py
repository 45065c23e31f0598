"""What a round sets, and in which order it ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.config import Settings
from bridge.ownership.group import Group, Member
from bridge.records.topics import declare
from tests.chaos.owners import Members
from tests.judge import Report
from tests.storm import round as storm
from tests.storm.operator import Hanging
from tests.storm.plan import draw
from tests.storm.round import SMALL


def test_only_what_may_be_compacted_within_a_round_has_an_eager_cleaner() -> None:
    for topic, settings in SMALL.items():
        config = getattr(declare(Settings()), topic).config
        may_be = config["cleanup.policy"] == "compact" and "min.compaction.lag.ms" not in config
        assert ("min.cleanable.dirty.ratio" in settings) == may_be, topic


@pytest.mark.parametrize(
    ("looks", "wrong"),
    [
        (["a b", "a*", "a* b"], False),
        (["a b"], True),
        (["a*"], True),
        (["a* b dead"], True),
        (["a* b*"], True),
    ],
)
async def test_a_bridge_that_runs_and_does_not_stand_by_is_found(
    looks: list[str], wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def group(_: object) -> Group:
        seen = looks.pop(0) if len(looks) > 1 else looks[0]
        return Group(tuple(Member(it, it.rstrip("*"), "here", "*" in it) for it in seen.split()))

    monkeypatch.setattr(Members, "group", group)
    monkeypatch.setattr(Members, "name", lambda _, bridge: bridge)
    monkeypatch.setattr(storm, "JOINED_SECONDS", 0.1)
    monkeypatch.setattr(storm, "ASK_SECONDS", 0.01)
    place: Any = SimpleNamespace(admin=lambda: None, directory=tmp_path)
    scene: Any = SimpleNamespace(bridges={it: SimpleNamespace(bridge=it) for it in "ab"})
    unused: Any = None
    found = await storm._Round(draw(7, 60, 100), unused, place)._group(scene)
    assert [it.partition(":")[0] for it in found] == ["all bridges"] * wrong


@pytest.mark.parametrize(
    ("waited", "aborted", "excused", "found"),
    [
        (60.0, None, 10, []),
        (61.0, None, 10, ["all bridges: they took 61 s to catch up"]),
        (200.0, [Hanging("t", 0, 7, 5.0)], 10, []),
        (50.0, [], 10, ["all bridges: the operator had to restart them, and no transaction hung"]),
        (60.0, None, 11, ["all bridges: 2 excuses for 11 attempts"]),
    ],
)
def test_what_no_sound_bridges_do_together_is_found(
    waited: float, aborted: list[Hanging] | None, excused: int, found: list[str]
) -> None:
    scene: Any = SimpleNamespace(made_anew={}, moved_to=[], gaps=[])
    assert storm.troubles(waited, aborted, 2, Report({}, {"excused": excused}, 1), scene) == found


@pytest.mark.parametrize(
    ("topic", "gaps", "silent"),
    [("bets", 0, True), ("gaps", 1, True), ("gaps", 0, False), ("checkpoints", 1, False)],
)
def test_bridges_must_say_that_a_topic_is_another_where_records_can_lack(
    topic: str, gaps: int, silent: bool
) -> None:
    scene: Any = SimpleNamespace(made_anew={topic: 5.0}, moved_to=[], gaps=[None] * gaps)
    found = storm.troubles(0, None, 0, Report({}, {"excused": 0}, 1), scene)
    assert found == [f"all bridges: none has said that topics are others ({topic})"] * silent
