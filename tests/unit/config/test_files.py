"""A settings file, or a variable, that is none: told in a line, and never waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge import config
from bridge.config import load
from bridge.errors import SettingsError


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the test's own."""
    for name in os.environ:
        if name.startswith(config.ENV_PREFIX):
            monkeypatch.delenv(name)


def complaint(file: Path | None = None) -> str:
    """What is said of the settings, in a line that is no longer than one can read."""
    with pytest.raises(SettingsError) as caught:
        load(file)
    said = str(caught.value)
    assert len(said) < 500
    assert "\n" not in said
    return said


def test_a_path_that_names_no_file_is_told(tmp_path: Path) -> None:
    """One that is too long, one through a file, one that leads in a circle, a directory and a pipe."""
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("missing", "there is no settings file"),
        ("x" * 300, "cannot be read: File name too long"),
        ("file/x", "cannot be read: Not a directory"),
        ("circle", "cannot be read: Too many levels of symbolic links"),
        ("a\0b", "cannot be read: embedded null byte"),
        ("", "is not a regular file but a directory"),
        ("pipe", "is not a regular file but a directory, a pipe"),
    ):
        assert said in complaint(tmp_path / name), name


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    """With the reason."""
    file = tmp_path / "bridge.toml"
    file.touch(0)
    assert "cannot be read: [Errno 13] Permission denied" in complaint(file)


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)),
        b"x = " + b"[" * 100_000,
        b"[batch]\nmax_records = " + b"9" * 5_000,
        b"[feed]\nname = '" + b"x" * 1_000_000 + b"'",
    ],
    ids=["binary", "deep", "digits", "long"],
)
def test_a_file_that_holds_what_nobody_wrote_is_told(content: bytes, tmp_path: Path) -> None:
    """Whatever it is, in a line."""
    file = tmp_path / "bridge.toml"
    file.write_bytes(content)
    complaint(file)


@pytest.mark.parametrize("name", ["BRIDGE_API__LANGUAGES", "BRIDGE_FEED"])
def test_a_variable_that_is_too_deep_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is no JSON at all."""
    monkeypatch.setenv(name, "[" * 100_000)
    assert "JSON" in complaint()


@pytest.mark.parametrize(
    "value", ["0", "-1", "3600001", "1e300", "1.5", "10_000", " 5000", "0x10", "nan", "", "9" * 5_000, "٣"]
)
def test_a_session_is_so_many_milliseconds(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bridge counts on it, and Kafka's library takes of a number what it can read: 1 of 1e300."""
    monkeypatch.setenv("BRIDGE_KAFKA__SESSION_TIMEOUT_MS", value)
    assert complaint().endswith("session_timeout_ms must be a whole number from 1 to 3600000")


@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "1.5"])
def test_a_property_of_kafka_is_no_fraction(value: str, tmp_path: Path) -> None:
    """None of its numbers is one, and it would be cut to something else."""
    file = tmp_path / "bridge.toml"
    file.write_text(f"[kafka]\nlinger_ms = {value}\n")
    assert complaint(file) == "kafka (BRIDGE_KAFKA): linger_ms must be a whole number"
