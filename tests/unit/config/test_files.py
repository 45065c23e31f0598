"""A settings file or variable that cannot be read is an error of one line, and never blocks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.config import given


def complaint(file: Path | None = None) -> str:
    """The error of the settings, checked to be one short line."""
    said = given.complaint(file)
    assert len(said) < 500
    assert "\n" not in said
    return said


def test_a_path_that_names_no_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("missing", "missing; `bridge init` begins one"),
        ("x" * 300, "cannot be read: File name too long"),
        ("file/x", "cannot be read: Not a directory"),
        ("circle", "cannot be read: Too many levels of symbolic links"),
        ("a\0b", "embedded null"),
        ("", "cannot be read: Is a directory"),
        ("pipe", "cannot be read: it is not a regular file but a pipe"),
    ):
        assert said in complaint(tmp_path / name), name


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_file_without_read_permission_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "bridge.toml"
    file.touch(0)
    assert "cannot be read: Permission denied" in complaint(file)


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
def test_a_file_of_garbage_is_an_error(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bridge.toml"
    file.write_bytes(content)
    complaint(file)


@pytest.mark.parametrize("name", ["BRIDGE_API__LANGUAGES", "BRIDGE_FEED"])
def test_a_deeply_nested_variable_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "[" * 100_000)
    assert "JSON" in complaint()


@pytest.mark.parametrize(
    "value", ["0", "-1", "3600001", "1e300", "1.5", "10_000", " 5000", "0x10", "nan", "", "9" * 5_000, "٣"]
)
def test_a_session_time_out_is_a_plain_number_of_milliseconds(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_KAFKA__SESSION_TIMEOUT_MS", value)
    assert complaint().endswith("SESSION_TIMEOUT_MS): must be a whole number from 1 to 3600000")


@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "1.5"])
def test_a_property_of_kafka_is_no_fraction(value: str, tmp_path: Path) -> None:
    file = given.toml(tmp_path, f"[kafka]\nlinger_ms = {value}\n")
    assert complaint(file) == f"kafka.linger_ms ({file}): must be a whole number"
