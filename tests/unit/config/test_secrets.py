"""Secrets: the last value counts while a file is missing, and the log masks all of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bridge.config import ApiSettings, FeedSettings, KafkaSettings, RegistrySettings, load
from bridge.log import MASK, concealed


def feed(file: Path) -> Callable[[], object]:
    return FeedSettings(auth="bearer", auth_value_file=file).auth_secret


def registry(file: Path) -> Callable[[], object]:
    return RegistrySettings(user="me", password_file=file).secret


def api(file: Path) -> Callable[[], object]:
    return ApiSettings(token_file=file).bearer


def kafka(name: str) -> Callable[[Path], Callable[[], object]]:
    def read(file: Path) -> Callable[[], object]:
        settings, key = KafkaSettings.model_validate({f"{name}_file": str(file)}), name.replace("_", ".")
        assert f"{key}.file" not in settings.properties()
        return lambda: settings.properties()[key]

    return read


@pytest.mark.parametrize(
    "content", [None, b"", b" \n", b"\xff\xfe"], ids=["away", "empty", "blank", "no text"]
)
@pytest.mark.parametrize(
    "of", [feed, registry, api, kafka("sasl_password"), kafka("ssl_key_password")], ids=lambda of: of.__name__
)
def test_the_last_value_counts_until_there_is_another(
    of: Callable[[Path], Callable[[], object]], content: bytes | None, tmp_path: Path
) -> None:
    """One warning each time, with the place and without the secret, however often the file is read."""
    file = tmp_path / "file"
    file.write_text(" one hush\n")
    read = of(file)
    assert read() == "one hush"
    assert concealed("one hush") == MASK
    for _ in range(2):
        file.unlink() if content is None else file.write_bytes(content)
        with capture_logs() as logged:
            assert [read() for _ in range(3)] == ["one hush"] * 3
        (line,) = logged
        assert (line["log_level"], line["file"]) == ("warning", str(file))
        assert "hush" not in str(line)
        file.write_text("one hush\n")
        assert read() == "one hush"
    file.write_text("another")
    assert read() == "another"


# The log masks secrets.


@pytest.mark.parametrize(
    "name", ["FEED__BASE_URL", "FEED__PROXY", "API__BASE_URL", "API__PROXY", "REGISTRY__URL"]
)
def test_the_password_in_an_address_is_a_secret_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As written there, and decoded."""
    monkeypatch.setenv(f"BRIDGE_{name}", "https://me:hush%40hush@host.example")
    load()
    basic = base64.b64encode(b"me:hush@hush").decode()
    assert concealed(f"hush%40hush hush@hush {basic} host.example") == f"{MASK} {MASK} {MASK} host.example"


SECRETS = (
    "FEED__AUTH_VALUE",
    "REGISTRY__PASSWORD",
    "API__TOKEN",
    "KAFKA__SASL_PASSWORD",
    "KAFKA__SSL_KEY_PASSWORD",
    "KAFKA__SSL_KEY_PEM",
    "KAFKA__SASL_OAUTHBEARER_CLIENT_SECRET",
    "KAFKA__SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_PASSPHRASE",
)


def test_the_log_masks_each_secret_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {name: f"s3cret of {name}" for name in SECRETS}
    for name, value in names.items():
        monkeypatch.setenv(f"BRIDGE_{name}", value)
    settings = load()
    (
        settings.feed.auth_secret(),
        settings.registry.secret(),
        settings.api.bearer(),
        settings.kafka.properties(),
    )
    assert [concealed(value) for value in names.values()] == [MASK] * len(names)
