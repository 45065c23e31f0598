"""Secrets: nothing shows them, and the last value counts while a file is missing."""

from __future__ import annotations

import base64
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError
from structlog.testing import capture_logs

from bridge.config import ApiSettings, FeedSettings, KafkaSettings, RegistrySettings, Settings, load
from bridge.config.kafka import SECRETS
from bridge.errors import SettingsError
from bridge.masking import MASK, concealed
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.unit.config.given import complaint, variables


def feed(file: Path) -> Callable[[], object]:
    return FeedSettings(auth="bearer", auth_value_file=file).secret.read


def registry(file: Path) -> Callable[[], object]:
    return RegistrySettings(user="me", password_file=file).secret.read


def api(file: Path) -> Callable[[], object]:
    return ApiSettings(token_file=file).secret.read


def kafka(name: str) -> Callable[[Path], Callable[[], object]]:
    def read(file: Path) -> Callable[[], object]:
        settings, key = KafkaSettings.model_validate({f"{name}_file": str(file)}), name.replace("_", ".")
        assert f"{key}.file" not in settings.properties()
        return lambda: settings.properties()[key]

    read.__name__ = name
    return read


@pytest.mark.parametrize(
    "content", [None, b"", b" \n", b"\xff\xfe"], ids=["away", "empty", "blank", "no text"]
)
@pytest.mark.parametrize("of", [feed, registry, api, *map(kafka, SECRETS)], ids=lambda of: of.__name__)
def test_the_last_value_counts_until_there_is_another(
    of: Callable[[Path], Callable[[], object]], content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text(" one-hush\n")
    read = of(file)
    assert read() == "one-hush"
    assert concealed("one-hush") == MASK
    for _ in range(2):
        file.unlink() if content is None else file.write_bytes(content)
        with capture_logs() as logged:
            assert [read() for _ in range(3)] == ["one-hush"] * 3
        (line,) = logged
        assert (line["log_level"], line["file"]) == ("warning", str(file))
        assert "hush" not in str(line)
        file.write_text("one-hush\n")
        assert read() == "one-hush"
    file.write_text("another")
    assert read() == "another"


# The log masks secrets.


ADDRESSES = (
    *("FEED__BASE_URL", "FEED__PROXY", "API__BASE_URL", "API__PROXY"),
    *("REGISTRY__URL", "REGISTRY__TOKEN_ENDPOINT_URL"),
)


@pytest.mark.parametrize("name", ADDRESSES)
def test_the_password_in_an_address_is_a_secret_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"BRIDGE_{name}", "https://me:hush%40hush@host.example")
    if "TOKEN" in name:  # which needs a client
        variables(monkeypatch, REGISTRY__USER="me", REGISTRY__PASSWORD="another")
    load()
    basic = base64.b64encode(b"me:hush@hush").decode()
    assert concealed(f"hush%40hush hush@hush {basic} host.example") == f"{MASK} {MASK} {MASK} host.example"


VARIABLES = (
    "FEED__AUTH_VALUE",
    "REGISTRY__PASSWORD",
    "API__TOKEN",
    *(f"KAFKA__{n.upper()}" for n in SECRETS),
)


def test_the_log_masks_each_secret_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    variables(monkeypatch, **(names := {name: f"s3cret-of-{name}" for name in VARIABLES}))
    settings = load()
    for section in (settings.feed, settings.registry, settings.api):
        section.secret.read()
    settings.kafka.properties()
    assert [concealed(value) for value in names.values()] == [MASK] * len(names)


@pytest.mark.parametrize("prefix", ["sasl_oauthbearer_client", "sasl.oauthbearer.client.credentials.client"])
def test_the_secret_of_an_oauth_client_is_masked_as_an_issuer_gets_it(prefix: str) -> None:
    dot = "." if "." in prefix else "_"
    given = {f"{prefix}{dot}id": "bridge-1", f"{prefix}{dot}secret": "hush-0123456789"}
    KafkaSettings.model_validate(given).properties()
    basic = base64.b64encode(b"bridge-1:hush-0123456789").decode()
    assert concealed(f"Authorization: Basic {basic}") == f"Authorization: Basic {MASK}"


@pytest.mark.parametrize(
    ("auth", "trouble"),
    [
        ("header", "cannot be sent in a header: give one line of ASCII characters"),
        ("bearer", "holds a text that cannot be a bearer token"),
    ],
)
def test_a_credential_that_cannot_be_sent_is_half_written(
    auth: str, trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    variables(monkeypatch, FEED__AUTH=auth, FEED__AUTH_NAME="X-Key", FEED__AUTH_VALUE_FILE=str(file))
    feed = load().feed
    assert (feed.secret.read(), feed.secret.problem()) == ("first", "")
    for unfit in ("a second\nline", "a secönd one"):
        file.write_text(unfit)
        assert feed.secret.read() == "first"
        assert trouble in feed.secret.problem()
        assert concealed(unfit) == MASK
    file.write_text("second")
    assert (feed.secret.read(), feed.secret.problem()) == ("second", "")
    other = tmp_path / "other"
    other.write_text("two\nlines")
    monkeypatch.setenv("BRIDGE_FEED__AUTH_VALUE_FILE", str(other))
    with pytest.raises(SettingsError, match=trouble):
        load().feed.secret.read()


# Settings do not show them.


def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """A model of settings, and those of its sections."""
    yield model
    for field in model.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from models(field.annotation)


SUGGESTIVE = re.compile(r"auth_value|clients|jaas|pass|pem|secret|token")


def test_every_setting_that_suggests_a_secret_is_one() -> None:
    suggestive = {
        f"{model.__name__}.{name}": str(field.annotation)
        for root in (Settings, SimulatorSettings)
        for model in models(root)
        for name, field in model.model_fields.items()
        if SUGGESTIVE.search(name) and not name.endswith(("_file", "_url"))
    }
    assert len(suggestive) == 6
    assert [name for name, kind in suggestive.items() if "SecretStr" not in kind] == []


MARKER = "m4rk3r"


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every secret is the marker, also the passwords in addresses."""
    address = f"http://me:{MARKER}@host.example/path"
    given = dict.fromkeys(VARIABLES, MARKER) | dict.fromkeys(ADDRESSES, address)
    variables(monkeypatch, REGISTRY__USER="me", **given)


@pytest.mark.usefixtures("marked")
def test_no_text_of_the_settings_shows_a_secret() -> None:
    settings = load()
    for one in (settings, *(getattr(settings, section) for section in Settings.model_fields)):
        texts = [repr(one), str(one), repr(one.model_dump()), one.model_dump_json()]
        texts.append(repr(one.model_dump(mode="json")))
        assert [text for text in texts if MARKER in text] == []
    assert "http://me:**********@host.example/path" in repr(settings)
    used = {settings.feed.secret.read(), settings.registry.secret.read(), settings.api.secret.read()}
    used |= {str(settings.kafka.properties()[name.replace("_", ".")]) for name in SECRETS}
    assert used == {MARKER}
    assert settings.registry.url == f"http://me:{MARKER}@host.example/path"


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FEED__AUTH", "header"),
        ("FEED__COLOUR", "red"),
        ("FEED__IDLE_TIMEOUT_SECONDS", "-1"),
        ("FEED__PROXY", f"ftp://me:{MARKER}@host"),
        ("FEED", f'{{"auth_value": "{MARKER}"'),
        ("API__TOKEN_FILE", "file"),
        ("API__RECENT_DAYS", "31"),
        ("REGISTRY__URL", f"http://me:{MARKER}@host.example/?query"),
        ("KAFKA__ACKS", "1"),
        ("KAFKA__SASL_PASSWORDS", MARKER),
        ("KAFKA__SASL_PASSWORD_FILE", "file"),
        ("LIMITS__SCALE", "1e9"),
    ],
)
def test_no_error_of_the_settings_shows_a_secret(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"BRIDGE_{name}", value)
    with pytest.raises(SettingsError) as caught:
        load()
    assert MARKER not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "section",
    [
        {"feed": {"auth": "header", "auth_value": MARKER}},
        {"registry": {"password": [MARKER]}},
        {"api": {"token": MARKER, "token_file": "file"}},
        {"kafka": {"sasl_password": [MARKER]}},
        {"kafka": {"sasl_password": MARKER, "ssl_key_pem": MARKER, "acks": MARKER}},
        {"kafka": {"sasl.password": MARKER, "sasl_password_file": "file"}},
    ],
)
def test_no_error_of_a_model_shows_a_secret(section: dict[str, dict[str, object]]) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(section)
    assert MARKER not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize(
    ("section", "secret"),
    [("REGISTRY", "PASSWORD"), ("API", "TOKEN"), *(("KAFKA", n.upper()) for n in SECRETS)],
)
def test_a_secret_is_given_once(section: str, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{section}__{secret}"
    variables(monkeypatch, **{name: "hush", f"{name}_FILE": "file"})
    assert f"give either {secret.lower()} or {secret.lower()}_file, not both" in complaint()
