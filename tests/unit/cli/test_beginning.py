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
    beginning.init(**OPTIONS, **sasl, security="SASL_SSL", token_file=Path("token"), prefix="mine")
    assert asked == [Path("bridge.toml")]
    text, settings = Path("bridge.toml").read_text(), load()
    assert "# Where a first start begins: " in text
    assert "secret-" not in text
    assert settings.feed.base_url == settings.api.base_url == OPTIONS["provider"]
    assert (settings.registry.url, settings.topics.prefix) == (OPTIONS["registry"], "mine")
    assert [secret.read() for secret in settings.secrets("feed", "api")] == ["secret-token"] * 2
    assert settings.kafka.properties() == {
        "bootstrap.servers": OPTIONS["bootstrap_servers"],
        "security.protocol": "SASL_SSL",
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


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"token_file": Path("a-secret" * 40)}, "--token-file is not a file"),
        ({"username": "me"}, "--username is not used with --security PLAINTEXT"),
        ({"password_file": Path("password"), "security": "SSL"}, "--password-file is not used"),
        ({"ca_file": Path("token"), "security": "PLAINTEXT"}, "--ca-file is not used"),
        ({"provider": "https://user:12/secret@p.example"}, "--provider has a user or password"),
        ({"config": Path("nosuch/b.toml")}, "nosuch/b.toml cannot be written"),
        ({"config": Path(), "force": True}, " cannot be written"),
    ],
)
def test_what_cannot_be_used_is_refused_without_being_shown(given: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why) as refused:
        beginning.init(**OPTIONS | given)
    assert "secret" not in str(refused.value)
    assert not Path("bridge.toml").exists()


def test_the_file_of_the_environment_is_begun(monkeypatch: pytest.MonkeyPatch, asked: list[Path]) -> None:
    monkeypatch.setenv("BRIDGE_CONFIG", "mine.toml")
    beginning.init(**OPTIONS)
    assert asked == [Path("mine.toml")]


SASL = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "me", "sasl.password": "secret-password"}


@pytest.mark.parametrize(
    ("protocol", "answers", "properties"),
    [
        ("", [], {"security.protocol": "PLAINTEXT"}),
        ("SSL", ["token"], {"security.protocol": "SSL", "ssl.ca.location": "token"}),
        ("SASL_SSL", ["", "me", "password"], {"security.protocol": "SASL_SSL", **SASL}),
        ("SASL_PLAINTEXT", ["me", "password"], {"security.protocol": "SASL_PLAINTEXT", **SASL}),
    ],
)
def test_a_terminal_is_asked_for_what_is_missing(
    protocol: str, answers: list[str], properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    wrong = ["p.example", OPTIONS["provider"], "nosuch", ""]
    typed = [*wrong, protocol, *answers, OPTIONS["registry"], "mine"]
    os.write(ours, "".join(f"{answer}\n" for answer in [*typed, "\x04"]).encode())  # Ctrl-D: no more
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        beginning.init(bootstrap_servers="k:9093")
    os.close(ours)
    settings = load()
    assert (settings.feed.auth, settings.topics.prefix) == ("none", "mine")
    if path := properties.get("ssl.ca.location"):
        properties["ssl.ca.location"] = str(Path(path).absolute())
    assert settings.kafka.properties() == {"bootstrap.servers": "k:9093", **properties}
