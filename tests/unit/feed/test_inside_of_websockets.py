"""`bridge.feed.client` overrides the inside of websockets, which is as it assumes."""

from __future__ import annotations

import inspect
import tomllib
from importlib.metadata import version

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.client import ClientProtocol
from websockets.uri import parse_uri

from bridge.feed.client import Connection, _Once
from tests.repo.source import ROOT

OVERRIDDEN = [
    (Connection, ClientConnection, name)
    for name in ("data_received", "process_event", "eof_received", "connection_lost")
] + [(_Once, connect, "process_redirect")]


@pytest.mark.parametrize(("ours", "theirs", "name"), OVERRIDDEN, ids=[name for *_, name in OVERRIDDEN])
def test_what_is_overridden_exists_with_the_same_arguments(ours: type, theirs: type, name: str) -> None:
    assert name in vars(ours)
    assert [*inspect.signature(getattr(theirs, name)).parameters] == [
        *inspect.signature(getattr(ours, name)).parameters
    ]


def test_nothing_else_of_it_is_overridden_by_chance() -> None:
    for ours, theirs in ((Connection, ClientConnection), (_Once, connect)):
        shared = {name for name in vars(ours) if hasattr(theirs, name) and not name.startswith("__")}
        assert shared == {name for owner, _, name in OVERRIDDEN if owner is ours}


def test_what_is_read_of_it_is_there() -> None:
    protocol = ClientProtocol(parse_uri("ws://127.0.0.1"))
    read = {"state", "close_rcvd", "parser_exc", "close_exc", "close_code", "send_text"}
    assert read <= {*dir(protocol)}
    assert hasattr(ClientConnection, "send_data")


def test_only_versions_that_were_tried_are_allowed() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    [bound] = [it for it in declared if it.startswith("websockets")]
    assert bound == f"websockets>=16,<{int(version('websockets').split('.')[0]) + 1}"
