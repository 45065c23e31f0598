"""The state file, and what status makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge.sandbox.cluster import down, state
from bridge.sandbox.cluster.process import Identity
from bridge.sandbox.cluster.state import Member, State

ALIVE = Identity.of(os.getpid())
DEAD = Identity(os.getpid(), ALIVE.started - 1000)


def cluster(*identities: Identity) -> State:
    members = tuple(
        Member(f"server-{i}", identity, Path(f"/logs/{i}.log")) for i, identity in enumerate(identities)
    )
    return State("127.0.0.1:9092", "http://127.0.0.1:8080/apis/ccompat/v7", members)


def test_a_saved_state_is_loaded_as_it_was(tmp_path: Path) -> None:
    state.save(tmp_path, cluster(ALIVE, DEAD))
    assert state.load(tmp_path) == cluster(ALIVE, DEAD)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"members": [{}]}', '{"members": 3}'])
def test_a_malformed_state_file_is_no_state(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    assert state.load(tmp_path) is None


@pytest.mark.parametrize(
    ("identities", "expected"),
    [((ALIVE, ALIVE), "running"), ((ALIVE, DEAD), "partial"), ((DEAD, DEAD), "stopped"), ((), "stopped")],
)
def test_status_is_what_the_processes_say(
    tmp_path: Path, identities: tuple[Identity, ...], expected: str
) -> None:
    """A state file alone makes nothing run."""
    state.save(tmp_path, cluster(*identities))
    assert state.status(tmp_path).state == expected


def test_status_reports_dead_servers_and_the_memory_of_the_others(tmp_path: Path) -> None:
    """Memory is in bytes, and 0 of the dead."""
    state.save(tmp_path, cluster(ALIVE, DEAD))
    first, second = state.status(tmp_path).members
    assert (first.alive, second.alive) == (True, False)
    assert first.memory > 1_000_000
    assert second.memory == 0


def test_down_leaves_a_recycled_pid_alone_and_forgets_the_state(tmp_path: Path) -> None:
    """This very process has the pid that the file names, and lives on."""
    state.save(tmp_path, cluster(DEAD))
    assert down(tmp_path) is False
    assert state.load(tmp_path) is None


def test_down_where_nothing_ever_ran_creates_nothing(tmp_path: Path) -> None:
    assert down(tmp_path / "none") is False
    assert not (tmp_path / "none").exists()
