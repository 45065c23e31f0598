"""The registry's client against a local HTTP server."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bridge.avro.schemas import TOPICS, load
from bridge.config import RegistrySettings
from bridge.errors import BridgeError, IdsChanged, SchemaError, SchemaNotFound, SettingsError, TopologyError
from bridge.masking import concealed
from bridge.registry import Compatibility, Registry, RegistryUnavailable, confirm_ids
from bridge.registry import client as module
from tests.fake_registry import FakeRegistry, served
from tests.tls import Authority


def refusing(
    answer: tuple[int, Any], when: Callable[[str, str], bool] = lambda method, path: True
) -> Callable[[str, str], tuple[int, Any] | None]:
    """A refusal of these requests, by method and path."""
    return lambda method, path: answer if when(method, path) else None


NO = (403, {"error_code": 40301, "message": "no"})


def of_rules(_: str, path: str) -> bool:
    return path.startswith("/config/")


def test_a_registry_that_gives_other_ids_by_now_is_another_one(fake: FakeRegistry, url: str) -> None:
    settings = RegistrySettings(url=url)
    codecs = Registry(settings).codecs_of_owner("p")
    confirm_ids(settings, "p", codecs)
    # That of the bets is the same; checkpoints would be written with one that means something else.
    fake.subjects = {**dict(list(fake.subjects.items())[:1]), "orders-value": '"string"'}
    with pytest.raises(IdsChanged, match=r"gives the ids \[100, 102, 103\], and gave \[100, 101, 102\]"):
        confirm_ids(settings, "p", codecs)


@pytest.mark.parametrize(
    ("refused", "answer"),
    [
        (("PUT", "POST versions"), (403, {"error_code": 40301, "message": "read only"})),
        (("PUT", "POST versions"), (422, {"error_code": 42205, "message": "Subject is in read-only mode"})),
        (("PUT", "POST versions", "POST"), (405, {"message": "only GET"})),
        (("PUT", "POST versions", "GET"), (403, {"error_code": 40301, "message": "only the look-up"})),
    ],
)
def test_what_is_registered_needs_no_right_to_write(
    fake: FakeRegistry, url: str, refused: tuple[str, ...], answer: tuple[int, Any]
) -> None:
    first = Registry(RegistrySettings(url=url)).register("p")
    written = dict(fake.compatibility)

    def only_reads(method: str, path: str) -> tuple[int, Any] | None:
        is_of_versions = method == "POST" and path.partition("?")[0].endswith("/versions")
        return answer if (f"{method} versions" if is_of_versions else method) in refused else None

    fake.refusal = only_reads
    assert Registry(RegistrySettings(url=url)).register("p") == first
    fake.compatibility["p.bets-value"] = "BACKWARD"
    with capture_logs() as logged:
        assert Registry(RegistrySettings(url=url)).register("p") == first
    assert "p.bets-value" in [line["subject"] for line in logged]
    fake.refusal = lambda method, path: None
    Registry(RegistrySettings(url=url)).register("p")
    assert fake.compatibility == written


@pytest.mark.parametrize("unreadable", [(403, {"error_code": 40301, "message": "write only"}), (200, {})])
def test_what_cannot_be_read_is_written(fake: FakeRegistry, url: str, unreadable: tuple[int, Any]) -> None:
    first = Registry(RegistrySettings(url=url)).register("p")
    written, fake.compatibility = fake.compatibility, {}

    def no_reads(method: str, path: str) -> tuple[int, Any] | None:
        is_lookup = method == "POST" and not path.partition("?")[0].endswith("/versions")
        reads = path.startswith("/config/") and method == "GET", is_lookup and unreadable[0] == 403
        return unreadable if any(reads) else None

    fake.refusal = no_reads
    assert Registry(RegistrySettings(url=url)).register("p") == first
    assert fake.compatibility == written


def test_a_rule_that_may_not_be_set_is_kept_by_the_bridge(fake: FakeRegistry, url: str) -> None:
    fake.refusal = refusing(NO, of_rules)
    ids = Registry(RegistrySettings(url=url)).register("p")
    assert (len(ids), fake.compatibility) == (len(TOPICS), {})
    older = load("settled-bet") | {"fields": load("settled-bet")["fields"][:-1]}
    fake.subjects |= {"p.bets-value": json.dumps(older)}
    assert set(Registry(RegistrySettings(url=url)).register("p")) == set(ids)
    assert len(fake.versions["p.bets-value"]) == 2
    fake.subjects |= {"p.bets-value": json.dumps(older | {"name": "Other"})}
    with pytest.raises(SchemaError, match=r"subject p\.bets-value: not compatible with"):
        Registry(RegistrySettings(url=url)).register("p")


def test_what_can_neither_be_ruled_nor_compared_is_not_registered(fake: FakeRegistry, url: str) -> None:
    fake.subjects = {"p.bets-value": "{}"}
    fake.refusal = refusing(
        NO, lambda *it: of_rules(*it) or (it[0] == "GET" and it[1].endswith("/versions/1"))
    )
    with pytest.raises(TopologyError, match=r"p\.bets-value"):
        Registry(RegistrySettings(url=url)).register("p")
    assert fake.subjects["p.bets-value"] == "{}"


def test_a_registry_that_is_tired_is_not_written_to(fake: FakeRegistry, url: str) -> None:
    Registry(RegistrySettings(url=url)).register("p")
    tired = (500, {"error_code": 50002, "message": "tired"})
    fake.refusal = lambda method, path: {"GET": tired if of_rules(method, path) else None, "PUT": NO}.get(
        method
    )
    with pytest.raises(RegistryUnavailable, match="tired"):
        Registry(RegistrySettings(url=url)).register("p")


def test_compatibility_is_set_before_a_new_version(fake: FakeRegistry, url: str) -> None:
    fake.subjects = {"p.bets-value": "{}"}
    with pytest.raises(SchemaError, match=r"subject p\.bets-value.*topics\.prefix"):
        Registry(RegistrySettings(url=url)).register("p")
    assert (fake.compatibility, fake.subjects) == (
        {"p.bets-value": "FULL_TRANSITIVE"},
        {"p.bets-value": "{}"},
    )


def test_a_known_schema_needs_no_registry(fake: FakeRegistry, url: str) -> None:
    registry = Registry(RegistrySettings(url=url))
    ids = registry.register("p")
    other = Registry(RegistrySettings(url=url))
    assert other.schema_by_id(ids["feed-gap"]) == load("feed-gap")
    fake.refusal = refusing((404, {"error_code": 40403, "message": "gone"}))
    before = fake.requests
    assert other.schema_by_id(ids["feed-gap"]) == load("feed-gap")
    assert registry.schema_by_id(ids["settled-bet"]) == load("settled-bet")
    assert fake.requests == before


@pytest.mark.parametrize(
    ("status", "kind", "hint"),
    [
        (401, TopologyError, "registry.password"),
        (403, TopologyError, "registry.user"),
        (404, SchemaNotFound, "registry.url"),
        (409, SchemaError, "topics.prefix"),
        (422, SchemaError, "Confluent"),
        (405, TopologyError, "registry.url"),
    ],
)
def test_refusals_are_explained(
    fake: FakeRegistry, url: str, status: int, kind: type[BridgeError], hint: str
) -> None:
    answer = (status, {"error_code": status, "message": "because"})
    fake.refusal = refusing(answer, lambda method, path: method == "POST")
    with pytest.raises(kind, match=r"p\.bets-value") as caught:
        Registry(RegistrySettings(url=url)).register("p")
    assert type(caught.value) is kind
    assert hint in str(caught.value)
    assert "because" in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {"title": "not found", "status": 404}), "HTTP 404 and JSON without an error_code"),
        ((404, b""), "HTTP 404 and no JSON"),
        ((404, b"<html>none</html>"), "HTTP 404 and no JSON"),
        ((400, b"<html>bad</html>"), "HTTP 400 and no JSON"),
        ((302, b""), "HTTP 302 and no JSON"),
        ((421, b""), "HTTP 421 and no JSON"),
        ((200, b"<html>hello</html>"), "HTTP 200 and no JSON"),
        ((200, b""), "HTTP 200 and no JSON"),
        ((200, []), "HTTP 200 and no JSON"),
        ((200, {"status": "ok"}), "HTTP 200 and no JSON"),
    ],
)
def test_what_no_registry_answers_is_waited_for(
    fake: FakeRegistry, url: str, answer: tuple[int, Any], said: str
) -> None:
    """A load balancer may answer first; or the path is wrong. It says what came, and what is expected.

    No reader passes it over as a record of somebody's, and it is forgotten when the registry is there.
    """
    ids = Registry(RegistrySettings(url=url)).register("p")
    there, fake.refusal = fake.refusal, lambda method, path: answer
    registry = Registry(RegistrySettings(url=url))
    for call in (
        lambda: registry.register("p"),
        lambda: registry.compatibility("p"),
        lambda: registry.schema_by_id(ids["feed-gap"]),
    ):
        with pytest.raises(
            RegistryUnavailable, match=rf"{url} .*{said}.*BRIDGE_REGISTRY__URL.*/apis/ccompat/v7"
        ) as caught:
            call()
        assert "None" not in str(caught.value)
    fake.refusal = there
    assert registry.register("p") == ids
    assert set(registry.compatibility("p").values()) == {Compatibility.REGISTERED}
    assert Registry(RegistrySettings(url=url)).schema_by_id(ids["feed-gap"]) == load("feed-gap")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_errors_are_distinguished(fake: FakeRegistry, url: str, status: int) -> None:
    fake.refusal = lambda method, path: (status, {"error_code": 50001, "message": "tired"})
    with pytest.raises(RegistryUnavailable, match="tired"):
        Registry(RegistrySettings(url=url)).schema_by_id(1)


def test_a_closed_port_is_worth_a_retry() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(RegistryUnavailable, match=rf"{address}.*registry\.url"):
            Registry(RegistrySettings(url=address)).register("p")


def test_a_schema_that_comes_late_is_waited_for_and_one_that_is_gone_is_asked_for_again(
    fake: FakeRegistry, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, unknown = 1000.0, (404, {"error_code": 40403, "message": "not yet"})

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    gap = Registry(RegistrySettings(url=url)).register("p")["feed-gap"]
    registry = Registry(RegistrySettings(url=url))
    lagging = iter([True, True])
    fake.refusal = lambda method, path: unknown if next(lagging, False) else None
    assert registry.schema_by_id(gap) == load("feed-gap")
    fake.refusal, registry = lambda method, path: unknown, Registry(RegistrySettings(url=url))
    before = fake.requests
    for wanted, requests in ((gap, 11), (7, 1), (gap, 0), (7, 0)):
        with pytest.raises(SchemaError, match="not yet"):
            registry.schema_by_id(wanted)
        assert (fake.requests - before) == pytest.approx(requests, abs=requests > 1)
        before = fake.requests
    fake.refusal = lambda method, path: None
    now += 61
    assert registry.schema_by_id(gap) == load("feed-gap")


def test_user_and_password_are_sent_and_never_shown(fake: FakeRegistry, url: str, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("geheim\n")
    plain = RegistrySettings(url=url, user="u", password=SecretStr("geheim"))
    for settings in (plain, RegistrySettings(url=url, user="u", password_file=secret)):
        Registry(settings).register("p")
    in_address = Registry(RegistrySettings(url=url.replace("http://", "http://u:geheim@")))
    fake.refusal = lambda method, path: (401, {"error_code": 401, "message": "no"})
    for registry in (Registry(plain), in_address):
        with pytest.raises(TopologyError) as caught:
            registry.register("p")
        assert "geheim" not in str(caught.value)
    assert fake.users == {"u:geheim"}


@pytest.mark.parametrize("padding", range(100, 200, 7))
def test_of_a_refusal_that_quotes_the_password_no_part_is_shown(
    fake: FakeRegistry, url: str, padding: int
) -> None:
    password = "S3cretPassw0rd-of-the-registry-of-forty-one"
    settings = RegistrySettings(url=url, user="bridge", password=SecretStr(password))
    basic = base64.b64encode(f"bridge:{password}".encode()).decode()
    text = f"{'x' * padding} authorization: Basic {basic}"
    fake.refusal = lambda method, path: (401, {"error_code": 401, "message": text})
    with pytest.raises(TopologyError) as caught:
        Registry(settings).register("p")
    shown = concealed(str(caught.value))
    assert not [n for n in range(len(basic) - 8) if basic[n : n + 8] in shown]


def test_wrong_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="BRIDGE_REGISTRY__URL"):
        Registry(RegistrySettings())
    with pytest.raises(SettingsError, match=r"registry\.ca_file"):
        Registry(RegistrySettings(url="https://localhost", ca_file=tmp_path / "none.pem"))


def test_it_identifies_itself_to_a_registry_that_asks(fake: FakeRegistry, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client_files()
    with served(fake, authority.server_context("127.0.0.1", asks=True)) as url:
        stranger = RegistrySettings(url=url, ca_file=authority.certificate)
        known = stranger.model_copy(update={"client_certificate_file": certificate, "client_key_file": key})
        with Registry(known) as registry:
            assert set(registry.register("p")) == set(TOPICS)
        with (
            Registry(stranger) as registry,
            pytest.raises(RegistryUnavailable, match=r"or registry\.client_certificate_file, and"),
        ):
            registry.register("p")


def test_a_ca_file_that_is_missing_later_is_waited_for(url: str, tmp_path: Path) -> None:
    settings = RegistrySettings(url=url.replace("http:", "https:"), ca_file=Authority(tmp_path).certificate)
    Registry(settings).close()
    assert settings.ca_file
    settings.ca_file.unlink()
    with pytest.raises(RegistryUnavailable, match=r"registry\.ca_file or .* cannot be used"):
        Registry(settings)


def test_files_and_password_are_read_again_after_a_failure(fake: FakeRegistry, tmp_path: Path) -> None:
    (old := tmp_path / "old").mkdir()
    (password := tmp_path / "password").write_text("before")
    authority, former = Authority(tmp_path), Authority(old)
    with served(fake, authority.server_context("127.0.0.1")) as url:
        settings = RegistrySettings(url=url, ca_file=former.certificate, user="u", password_file=password)
        with Registry(settings) as registry:
            with pytest.raises(RegistryUnavailable):
                registry.register("p")
            former.certificate.write_bytes(authority.certificate.read_bytes())
            password.write_text("after")
            assert set(registry.register("p")) == set(TOPICS)
    assert fake.users == {"u:after"}


def test_a_new_certificate_is_used_without_a_failure(fake: FakeRegistry, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client_files("before")
    with served(fake, authority.server_context("127.0.0.1", asks=True)) as url:
        settings = RegistrySettings(
            url=url, ca_file=authority.certificate, client_certificate_file=certificate, client_key_file=key
        )
        with Registry(settings) as registry:
            registry.register("p")
            for file, new in zip((certificate, key), authority.client_files("after"), strict=True):
                file.write_bytes(new.read_bytes())
            registry.register("p")
    assert fake.names == ["before", "after"]


def test_a_new_password_is_used_without_a_failure(fake: FakeRegistry, url: str, tmp_path: Path) -> None:
    (password := tmp_path / "password").write_text("before")
    with Registry(RegistrySettings(url=url, user="u", password_file=password)) as registry:
        registry.register("p")
        assert fake.users == {"u:before"}
        fake.users.clear()
        password.write_text("after")
        registry.register("p")
    assert fake.users == {"u:after"}


def test_what_is_compatible_does_not_depend_on_the_rule_of_the_moment(fake: FakeRegistry, url: str) -> None:
    older = load("settled-bet") | {"fields": load("settled-bet")["fields"][:-1]}
    fake.subjects = {"p.bets-value": json.dumps(older), "p.gaps-value": "{}"}
    fake.compatibility = dict.fromkeys(fake.subjects, "NONE")
    found = Registry(RegistrySettings(url=url)).compatibility("p")
    assert found.pop("p.bets-value") is Compatibility.COMPATIBLE
    assert found.pop("p.gaps-value") is Compatibility.INCOMPATIBLE
    assert {*found.values()} == {Compatibility.NEW}
