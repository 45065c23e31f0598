"""The tree of errors: exit codes, and texts that an operator reads."""

from __future__ import annotations

import re

import pytest

from bridge import errors
from bridge.errors import (
    ApiError,
    BridgeError,
    ConversionError,
    FeedRefused,
    ProviderPause,
    RegistryUnavailable,
)


def tree(root: type[BridgeError]) -> list[type[BridgeError]]:
    """A class and all below it that are declared in the module."""
    below = [error for child in root.__subclasses__() for error in tree(child)]
    return [root, *(error for error in below if error.__module__ == errors.__name__)]


def drawn() -> list[tuple[int, str, str]]:
    """The tree in the docstring: depth, name and exit code (or —) of each line."""
    lines = re.findall(r"^ {4}([│├└─ ]*)(\w+) +(exit \d+|—)", errors.__doc__ or "", re.MULTILINE)
    return [(len(branch) // 4, name, code) for branch, name, code in lines]


def test_the_drawing_shows_the_tree() -> None:
    parents: list[str] = []
    found: dict[str, tuple[str | None, str]] = {}
    for depth, name, code in drawn():
        parents = [*parents[:depth], name]
        found[name] = (parents[depth - 1] if depth else None, code)
    assert set(found) == {error.__name__ for error in tree(BridgeError)}
    codes = {error.__name__: error.exit_code for error in tree(BridgeError)}
    for error in tree(BridgeError)[1:]:
        parent, code = found[error.__name__]
        assert parent == error.__mro__[1].__name__
        usual = error.exit_code == codes[error.__mro__[1].__name__] == 1
        assert code == ("—" if usual else f"exit {error.exit_code}")


def test_exit_codes_are_not_shared_by_strangers() -> None:
    coded = [error for error in tree(BridgeError) if "exit_code" in vars(error)]
    coded.remove(ProviderPause)  # it is no ApiError, which leaves one thing out and goes on
    assert ProviderPause.exit_code == ApiError.exit_code
    coded.remove(RegistryUnavailable)  # it is a TopologyError that a retry may mend
    assert RegistryUnavailable.exit_code == BridgeError.exit_code
    assert len({error.exit_code for error in coded}) == len(coded)
    assert {error.exit_code for error in coded} == set(range(1, 12))


@pytest.mark.parametrize(
    ("detail", "text"),
    [
        ("", "the provider refused the connection: HTTP 429"),
        ("later", "the provider refused the connection: HTTP 429: later"),
    ],
)
def test_a_refusal_has_its_status(detail: str, text: str) -> None:
    error = FeedRefused("HTTP 429", detail, 429)
    assert (str(error), error.status) == (text, 429)
    assert FeedRefused("close code 1013").status is None


def test_a_conversion_error_remembers_the_ping() -> None:
    error = ConversionError("data.betId: wrong", ping_id="7")
    assert (str(error), error.reason, error.ping_id) == ("data.betId: wrong", "data.betId: wrong", "7")
