"""The state file, and what status makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from bridge_sandbox.cluster import down, state
from bridge_sandbox.cluster.process import Identity
from bridge_sandbox.cluster.state import Member, State

ALIVE = Identity(os.getpid(), psutil.Process().create_time())
DEAD = Identity(os.getpid(), ALIVE.started - 1000)


def cluster(*identities: Identity) -> State:
    members = tuple(
        Member(f"server-{i}", identity, Path(f"/logs/{i}.log")) for i, identity in enumerate(identities)
    )
    return State("127.0.0.1:9092", "http://127.0.0.1:8080/apis/ccompat/v7", members)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"members": [{}]}', '{"members": 3}'])
def test_a_malformed_state_file_is_no_state(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    assert state.load(tmp_path) == State()


@pytest.mark.parametrize(
    ("identities", "expected"),
    [((ALIVE, ALIVE), "running"), ((ALIVE, DEAD), "partial"), ((DEAD, DEAD), "stopped"), ((), "stopped")],
)
def test_a_cluster_runs_while_its_processes_do(identities: tuple[Identity, ...], expected: str) -> None:
    assert cluster(*identities).now() == expected


def test_down_leaves_a_recycled_pid_alone_and_keeps_only_the_addresses(tmp_path: Path) -> None:
    state.save(tmp_path, cluster(DEAD))
    assert down(tmp_path) is False
    assert state.load(tmp_path) == cluster()


def test_down_where_nothing_ever_ran_creates_nothing(tmp_path: Path) -> None:
    assert down(tmp_path / "none") is False
    assert not (tmp_path / "none").exists()
