"""What a handshake asks for, and why nobody is let in with it."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.sandbox.provider.handshake import Asked, requested
from bridge.sandbox.provider.settings import SimulatorSettings


def asked(query: str, headers: dict[str, str] | None = None, **settings: Any) -> Asked:
    return requested(SimulatorSettings(**settings), query, lambda name: (headers or {}).get(name, ""))


@pytest.mark.parametrize(("query", "revision"), [("", None), ("x=1", None), ("revision=0", 0)])
def test_the_revision_is_read(query: str, revision: int | None) -> None:
    """None without one; of several the last counts."""
    assert asked(query) == Asked(revision)
    assert asked(f"{query}&revision=1790000000") == Asked(1_790_000_000)


@pytest.mark.parametrize("revision", ["", "now", "-5", "1.5", "1e9", "٣", "1" * 16])
def test_a_revision_that_is_no_timestamp_is_refused(revision: str) -> None:
    answer = asked(f"revision={revision}")
    assert answer.revision is None
    assert answer.denied is not None
    assert answer.denied.status == 400


@pytest.mark.parametrize(
    ("auth", "query", "headers"),
    [
        ({"auth": "bearer"}, "revision=7", {"Authorization": "Bearer s3cret"}),
        ({"auth": "header", "auth_name": "X-Key"}, "revision=7", {"X-Key": "s3cret"}),
        ({"auth": "query", "auth_name": "key"}, "revision=7&key=s3cret", {}),
    ],
)
def test_without_credentials_the_answer_is_401_whatever_the_revision(
    auth: dict[str, Any], query: str, headers: dict[str, str]
) -> None:
    """Right, wrong, without any, and without any but with a revision that is wrong as well."""
    settings: dict[str, Any] = {**auth, "auth_value": "s3cret"}
    wrong = {name: f"{value}x" for name, value in headers.items()}
    assert asked(query, headers, **settings) == Asked(7)
    refused = [
        asked(query if headers else f"{query}x", wrong, **settings),
        asked("", **settings),
        asked("revision=x", **settings),
    ]
    assert [answer.denied.status for answer in refused if answer.denied] == [401] * 3
    assert [answer.revision for answer in refused] == [7, None, None]
