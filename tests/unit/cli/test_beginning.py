"""What `bridge init` writes, from options and from answers on a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import beginning
from bridge.config import load
from bridge.errors import SettingsError

OPTIONS: dict[str, Any] = {
    "provider": "https://p.example",
    "bootstrap_servers": "k:9092",
    "registry": "https://r.example",
}


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that the doctor is asked about, in an empty directory with two secrets."""
    monkeypatch.chdir(tmp_path)
    for name in ("token", "password"):
        (tmp_path / name).write_text(f"secret-{name}")
    files = list[Path]()
    monkeypatch.setattr(beginning, "doctor", files.append)
    return files


def test_the_file_has_what_the_options_say_and_no_secret(asked: list[Path]) -> None:
    sasl: dict[str, Any] = {"username": "me", "password_file": Path("password"), "ca_file": Path("token")}
    beginning.init(**OPTIONS, **sasl, security="SASL_PLAINTEXT", token_file=Path("token"), prefix="mine")
    assert asked == [Path("bridge.toml")]
    text, settings = Path("bridge.toml").read_text(), load()
    assert "# Where a first start begins: " in text
    assert "secret-" not in text
    assert settings.feed.base_url == settings.api.base_url == OPTIONS["provider"]
    assert (settings.registry.url, settings.topics.prefix) == (OPTIONS["registry"], "mine")
    assert [secret.read() for secret in settings.secrets("feed", "api")] == ["secret-token"] * 2
    assert settings.kafka.properties() == {
        "bootstrap.servers": OPTIONS["bootstrap_servers"],
        "security.protocol": "SASL_PLAINTEXT",
        "ssl.ca.location": str(Path("token").absolute()),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "secret-password",
    }


def test_only_force_overwrites() -> None:
    (file := Path("bridge.toml")).write_text("mine")
    with pytest.raises(SettingsError, match="there already"):
        beginning.init(**OPTIONS)
    assert file.read_text() == "mine"
    beginning.init(**OPTIONS, force=True)
    assert load().feed.base_url == OPTIONS["provider"]


def test_a_file_that_would_be_refused_is_not_written() -> None:
    with pytest.raises(SettingsError, match=r"^topics.prefix \(bridge.toml\)"):
        beginning.init(**OPTIONS, prefix="a prefix")
    assert not Path("bridge.toml").exists()


def test_a_terminal_is_asked_for_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = os.openpty()
    answers = [OPTIONS["provider"], "", "SASL_SSL", "", "me", "password", OPTIONS["registry"], ""]
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        beginning.init(bootstrap_servers="k:9093")
    os.close(ours)
    questions = capsys.readouterr().err
    assert "Kafka's user:" in questions
    assert "brokers" not in questions
    settings = load()
    assert (settings.feed.auth, settings.topics.prefix) == ("none", "settlement")
    assert settings.kafka.properties() == {
        "bootstrap.servers": "k:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "secret-password",
    }
