"""Settings of the REST side: accepted values, and the errors of others."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bridge.config import ApiSettings, load
from bridge.errors import SettingsError

DAY_SECONDS = 86_400


def with_(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> ApiSettings:
    """Return settings with one from the environment."""
    monkeypatch.setenv(f"BRIDGE_API__{name.upper()}", value)
    return load().api


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("requests_per_second", 0.001, 10_000),
        ("concurrency", 1, 100),
        ("timeout_seconds", 0.1, 3600),
        ("max_answer_bytes", 1 << 20, 1 << 30),
        ("max_clock_skew_seconds", 2, 366 * DAY_SECONDS),
        ("attempts", 1, 100),
        ("refresh_hours", 5e-324, 480_000),
        ("max_left_out_share", 0, 1),
        ("max_shrink_share", 0, 1),
    ],
)
def test_every_number_has_bounds(
    name: str, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (least, most):
        assert getattr(with_(monkeypatch, name, str(value)), name) == value
    for value in (-1, most * 1.01, 1e300, float("nan"), float("inf")):
        with pytest.raises(SettingsError, match=rf"^api\.{name} \(BRIDGE_API__{name.upper()}\): "):
            with_(monkeypatch, name, str(value))


@pytest.mark.parametrize("name", ["recent_days", "keep_days"])
def test_the_longest_retention_begins_after_1970(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_API__KEEP_DAYS", "20000")
    assert getattr(with_(monkeypatch, name, "20000"), name) == 20_000
    assert time.time() - 20_000 * DAY_SECONDS > 0
    for value in ("0", "20001", "36500", "1e300", "nan", "inf"):
        with pytest.raises(SettingsError, match=rf"^api\.{name} \(BRIDGE_API__{name.upper()}\): "):
            with_(monkeypatch, name, value)


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
    file = tmp_path / "bridge.toml"
    file.write_text('[api.query]\nleagues = { a = ["x", "{language}"], "{b}" = "{{x}} {sportId}" }\n')
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
