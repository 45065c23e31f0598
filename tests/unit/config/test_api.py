"""Settings of the REST side: accepted values, and the errors of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.config import ApiSettings, load
from bridge.errors import SettingsError
from tests.unit.config.given import toml


def with_(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> ApiSettings:
    """Return settings with one from the environment."""
    monkeypatch.setenv(f"BRIDGE_API__{name.upper()}", value)
    return load().api


@pytest.mark.parametrize(
    "code", ["e", "zh-Hans-CN", "en_GB.UTF-8", "français", "日本語", "pt (BR)", "12", "%", "x" * 64]
)
def test_a_language_code_has_no_fixed_format(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_(monkeypatch, "languages", json.dumps([code])).languages == (code,)
    assert with_(monkeypatch, "language_keys", json.dumps({"any/key?": code})).language_keys == {
        "any/key?": code
    }


@pytest.mark.parametrize(
    "code", ["", " ", "a/b", "a?b", "a#b", "a\\b", "a\nb", "\x00", ".", "..", "x" * 65, "all"]
)
def test_a_code_that_leads_to_another_path_is_refused(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^api\.languages \(BRIDGE_API__LANGUAGES\): "):
        with_(monkeypatch, "languages", json.dumps([code]))


def test_parameters_may_repeat_and_have_placeholders(tmp_path: Path) -> None:
    file = toml(tmp_path, '[api.query]\nleagues = { a = ["x", "{language}"], "{b}" = "{{x}} {sportId}" }\n')
    assert load(file).api.query == {"leagues": {"a": ["x", "{language}"], "{b}": "{{x}} {sportId}"}}


@pytest.mark.parametrize(
    ("endpoint", "name", "value", "said"),
    [
        ("sports", "s", "{sportId}", "{sportId} is not available, only {language};"),
        ("leagues", "e", ["1", "{eventId}"], "{eventId} is not available, only {language}, "),
        ("all-markets", "l", "{language}", "{language} is not available, only {eventId}, "),
        ("markets", "x", "{sport}", "{sport} is not available, only {eventId}, {language}, "),
        ("markets", "x", "{}", "{} is not available"),
        ("markets", "x", "{", "Single '{' encountered in format string; write `{{` for a brace"),
        ("markets", "x", "a}", "Single '}' encountered"),
        ("markets", "x", "{language:>9}", "a placeholder must be a name in braces"),
        ("markets", "x", "{language!r}", "a placeholder must be a name in braces"),
    ],
)
def test_an_unknown_placeholder_is_refused(
    endpoint: str, name: str, value: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError) as caught:
        with_(monkeypatch, "query", json.dumps({endpoint: {name: value}}))
    assert str(caught.value).startswith(f"api.query (BRIDGE_API__QUERY): {endpoint}.{name}: {said}")


def test_an_unknown_endpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^api\.query \(BRIDGE_API__QUERY\): must be 'sports'"):
        with_(monkeypatch, "query", json.dumps({"sport": {}}))
